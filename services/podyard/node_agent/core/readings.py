"""From synthetic signals to what the eviction manager reads, and to what the agent reports."""

from collections.abc import Iterable

from podyard.node_agent.core.eviction.requests import of_container
from podyard.node_agent.core.eviction.stats import ContainerStats, FsUsage, Observation, PodStats, Summary
from podyard.objects.pod import Pod
from podyard.proto.signals import NodeSignals, NodeUsage, PodUsage


def summary(signals: NodeSignals, observed_at: float, pods: Iterable[Pod]) -> Summary:
    """The node as the signals describe it.

    A pod that they do not name is idle: synthetic statistics know every pod. (A pod without statistics would
    be evicted first.)

    :param observed_at: UTC seconds, of all signals
    :param pods: the active pods of the node
    """
    usage = {(one.namespace, one.name): one for one in signals.pods}
    return Summary(
        signals={
            name: Observation(available=value.available, capacity=value.capacity, observed_at=observed_at)
            for name, value in signals.signals.items()
        },
        pods={pod.metadata.uid: _stats(pod, usage.get(pod.key)) for pod in pods},
    )


def report(signals: NodeSignals, observed_at: float, pods: Iterable[Pod]) -> NodeUsage:
    """What is published as the node's usage: the signals, and the usage of those pods that still are
    there."""
    alive = {pod.key for pod in pods}
    return NodeUsage(
        node=signals.node,
        signals=signals.signals,
        pods=tuple(one for one in signals.pods if (one.namespace, one.name) in alive),
        at=observed_at,
    )


def _stats(pod: Pod, usage: PodUsage | None) -> PodStats:
    used = usage if usage is not None else PodUsage(namespace=pod.metadata.namespace, name=pod.metadata.name)
    names = [container.name for container in pod.spec.containers]
    weights = [int(of_container(container, "memory")) for container in pod.spec.containers]
    memory = shares(used.memory_bytes, weights)
    disk, inodes = shares(used.disk_bytes, weights), shares(used.inodes, weights)
    return PodStats(
        memory_bytes=used.memory_bytes,
        processes=used.processes,
        containers=tuple(
            ContainerStats(
                name=name,
                memory_bytes=memory[index],
                rootfs=FsUsage(used_bytes=disk[index], inodes=inodes[index]),
                logs=FsUsage(used_bytes=0, inodes=0),
            )
            for index, name in enumerate(names)
        ),
        ephemeral_bytes=used.disk_bytes,
    )


def shares(total: int, weights: list[int]) -> list[int]:
    """`total` in whole parts in proportion to `weights` (equal parts if all are 0); what is left over goes to
    the first."""
    if not weights:
        return []
    if not any(weights):
        weights = [1] * len(weights)
    parts = [total * weight // sum(weights) for weight in weights]
    parts[0] += total - sum(parts)
    return parts
