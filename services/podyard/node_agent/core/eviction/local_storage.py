"""Pods that use more local storage than they may: they go whatever the node has left.

Source: pkg/kubelet/eviction/eviction_manager.go (v1.36.2), localStorageEviction.
"""

from typing import Final, NamedTuple

from podyard.node_agent.core.eviction import amounts
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.signals import EPHEMERAL_STORAGE
from podyard.node_agent.core.eviction.stats import ContainerStats, FsUsage, PodStats
from podyard.objects.containers import Container
from podyard.objects.pod import Pod
from podyard.objects.quantity import Quantity, parse

EMPTY_DIR: Final = "emptydirfs.limit"
POD: Final = "ephemeralpodfs.limit"
CONTAINER: Final = "ephemeralcontainerfs.limit"
LIMITS: Final = (EMPTY_DIR, POD, CONTAINER)


class Excess(NamedTuple):
    """A limit that a pod exceeds: what metrics call it, and what the pod is told."""

    limit: str
    message: str


def excess(pod: Pod, stats: PodStats, layout: Layout) -> Excess | None:
    """The first limit that the pod exceeds: of a volume, of the pod, of a container."""
    return _empty_dir(pod, stats) or _pod(pod, stats) or _container(pod, stats, layout)


def _empty_dir(pod: Pod, stats: PodStats) -> Excess | None:
    used = {volume.name: volume.usage.used_bytes for volume in stats.volumes}
    for volume in pod.spec.volumes:
        limit = volume.empty_dir.size_limit if volume.empty_dir is not None else None
        amount = used.get(volume.name)
        if limit is not None and amount is not None and 0 < amounts.exact(limit) < amount:
            told = f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{amounts.canonical(limit)}". '
            return Excess(EMPTY_DIR, told)
    return None


def _pod(pod: Pod, stats: PodStats) -> Excess | None:
    limit = pod_limit(pod)
    if limit is None or (stats.ephemeral_bytes or 0) <= amounts.of(limit):
        return None
    return Excess(POD, f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ")


def _container(pod: Pod, stats: PodStats, layout: Layout) -> Excess | None:
    limits = {one.name: one.resources.limits.get(EPHEMERAL_STORAGE, "0") for one in pod.spec.containers}
    for measured in stats.containers:
        limit = limits.get(measured.name, "0")
        if amounts.exact(limit) and amounts.exact(limit) < _used(measured, layout):
            shown = amounts.canonical(limit)
            told = f'Container {measured.name} exceeded its local ephemeral storage limit "{shown}". '
            return Excess(CONTAINER, told)
    return None


def _used(measured: ContainerStats, layout: Layout) -> int:
    """Logs, and the writable layer where images have no file system of their own."""
    return _bytes(measured.logs) + (_bytes(measured.rootfs) if layout is Layout.SINGLE else 0)


def _bytes(usage: FsUsage | None) -> int:
    return usage.used_bytes or 0 if usage is not None else 0


def pod_limit(pod: Pod) -> Quantity | None:
    """What the pod's containers may use together; None if none of them has a limit.

    Sidecars are added, init containers count if their peak is higher, overhead is added to a limit that is
    not 0. Source: component-helpers/resource/helpers.go (v0.36.2), PodLimits.
    """
    total: Quantity | None = None
    for container in pod.spec.containers:
        total = _sum(total, _limit(container))
    sidecars: Quantity | None = None
    peak: Quantity | None = None
    for container in pod.spec.init_containers:
        limit = _limit(container)
        if container.restart_policy == "Always":
            total, sidecars = _sum(total, limit), _sum(sidecars, limit)
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, _sum(limit, sidecars))
    total = _larger(total, peak)
    overhead = pod.spec.overhead.get(EPHEMERAL_STORAGE)
    return _sum(total, parse(overhead)) if total is not None and total.nano and overhead is not None else total


def _limit(container: Container) -> Quantity | None:
    text = container.resources.limits.get(EPHEMERAL_STORAGE)
    return None if text is None else parse(text)


def _sum(one: Quantity | None, other: Quantity | None) -> Quantity | None:
    """Written as the first is, if that is not 0. Source: apimachinery/pkg/api/resource, Quantity.Add."""
    if one is None or other is None:
        return other if one is None else one
    return Quantity(one.nano + other.nano, one.format if one.nano else other.format)


def _larger(one: Quantity | None, other: Quantity | None) -> Quantity | None:
    if one is None or other is None:
        return other if one is None else one
    return other if other.nano > one.nano else one
