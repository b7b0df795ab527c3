"""The order in which pods are evicted for one signal: the first goes first.

Quality of service plays no part, nor does being critical: the manager skips critical pods when it comes to
them. Source: pkg/kubelet/eviction/helpers.go, rankMemoryPressure, rankPIDPressure, rankDiskPressureFunc,
buildSignalToRankFunc.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from podyard.node_agent.core.eviction import signals
from podyard.node_agent.core.eviction.amounts import Amount
from podyard.node_agent.core.eviction.file_systems import PARTS, Layout, Part
from podyard.node_agent.core.eviction.requests import request
from podyard.node_agent.core.eviction.stats import FsUsage, PodStats
from podyard.objects.pod import Pod
from podyard.objects.volumes import Volume

Key: TypeAlias = tuple[Amount | bool, ...]
KeyName: TypeAlias = Literal["noUsage", "request", "priority", "usage", "name"]


class Use(NamedTuple):
    """What a pod uses of what is to be relieved, what it requests of it, and the overrun it is ranked by."""

    used: Amount
    requested: Amount
    over: Amount


def rank(signal: str, pods: Sequence[Pod], stats: dict[str, PodStats], layout: Layout = Layout.SINGLE) -> list[Pod]:
    """`pods` in the order in which they are evicted for `signal`; pods that compare equal by namespace and
    name.

    :param stats: by uid; a pod without stats goes before all of its rank
    """
    return sorted(pods, key=lambda pod: (*sort_key(signal, pod, stats.get(pod.metadata.uid), layout), *_name(pod)))


def sort_key(signal: str, pod: Pod, stats: PodStats | None, layout: Layout = Layout.SINGLE) -> Key:
    """What the reference compares, smallest first: over its request, priority, size of the overrun
    (docs/rules.md, rank-by-overrun-then-priority)."""
    priority = pod.spec.priority or 0
    if signal == signals.PID_AVAILABLE:
        return (priority, False, 0) if stats is None else (priority, True, -stats.processes)
    if stats is None:
        return (False, False, priority, 0)
    found = use(signal, pod, stats, layout)
    return (True, found.used <= found.requested, priority, -found.over)


def decided_by(signal: str, first: Key, second: Key) -> KeyName:
    """By what `first` goes before `second`, two keys of `sort_key`."""
    names: tuple[KeyName, ...] = ("noUsage", "request", "priority", "usage")
    if signal == signals.PID_AVAILABLE:
        names = ("priority", "noUsage", "usage")
    for name, one, other in zip(names, first, second, strict=True):
        if one != other:
            return name
    return "name"


def use(signal: str, pod: Pod, stats: PodStats, layout: Layout = Layout.SINGLE) -> Use:
    """What the pod is ranked by, bytes or pieces; of processes nothing is requested."""
    resource = signals.ALL[signal].resource
    if resource == signals.PIDS:
        return Use(stats.processes, 0, stats.processes)
    used = (
        (stats.memory_bytes or 0) if resource == signals.MEMORY else _disk_usage(signal, resource, pod, stats, layout)
    )
    # An oddity of the reference: inodes exceed a request of 0, but the overrun is measured against ephemeral
    # storage.
    subtracted = signals.EPHEMERAL_STORAGE if resource == signals.INODES else resource
    return Use(used, request(pod, resource), used - request(pod, subtracted))


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _disk_usage(signal: str, resource: str, pod: Pod, stats: PodStats, layout: Layout) -> int:
    parts = PARTS[layout, signal.partition(".")[0]]
    usages: list[FsUsage | None] = []
    for container in stats.containers:
        usages += [container.rootfs] if Part.ROOTFS in parts else []
        usages += [container.logs] if Part.LOGS in parts else []
    if Part.VOLUMES in parts:
        local = {volume.name for volume in pod.spec.volumes if _is_local(volume)}
        usages += {volume.name: volume.usage for volume in reversed(stats.volumes) if volume.name in local}.values()
    return sum(_amount(usage, resource) for usage in usages if usage is not None)


def _amount(usage: FsUsage, resource: str) -> int:
    return (usage.inodes if resource == signals.INODES else usage.used_bytes) or 0


def _is_local(volume: Volume) -> bool:
    """Whether what is in it lies on the node's own disk."""
    if volume.host_path is not None or volume.git_repo is not None or volume.config_map is not None:
        return True
    return volume.empty_dir is not None and volume.empty_dir.medium == ""
