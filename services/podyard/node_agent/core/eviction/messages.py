"""What an evicted pod is told, word for word as the kubelet says it, the blank at the end included.

Source: pkg/kubelet/eviction/helpers.go, evictionMessage (v1.36.2).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podyard.node_agent.core.eviction import amounts, signals
from podyard.node_agent.core.eviction.stats import ContainerStats, PodStats, Summary
from podyard.node_agent.core.eviction.thresholds import Threshold
from podyard.objects.pod import Pod
from podyard.proto.operations import Reason

REASON: Final = Reason("Evicted")
OFFENDING_CONTAINERS: Final = "offending_containers"
OFFENDING_CONTAINERS_USAGE: Final = "offending_containers_usage"
OFFENDING_POD: Final = "offending_pod"
OFFENDING_POD_USAGE: Final = "offending_pod_usage"
STARVED_RESOURCE: Final = "starved_resource"


class Explanation(NamedTuple):
    """The message for the pod, and annotations of its event."""

    message: str
    annotations: dict[str, str]


def explain(resource: str, pod: Pod, summary: Summary, starved: Sequence[Threshold]) -> Explanation:
    """Why `pod` goes. `starved` are all thresholds that are met, the first of this resource gives the
    quantity."""
    message = f"The node was low on resource: {resource}. {_threshold_text(resource, summary, starved)}"
    stats = summary.pods.get(pod.metadata.uid)
    if stats is None:
        return Explanation(message, {})
    pod_text, annotations = _pod_overrun(resource, pod, stats)
    overruns = _container_overruns(resource, pod, stats)
    message += pod_text + "".join(
        f"Container {name} was using {usage}, request is {requested}, has larger consumption of {resource}. "
        for name, usage, requested in overruns
    )
    annotations |= {
        OFFENDING_CONTAINERS: ",".join(name for name, _, _ in overruns),
        OFFENDING_CONTAINERS_USAGE: ",".join(usage for _, usage, _ in overruns),
        STARVED_RESOURCE: resource,
    }
    return Explanation(message, annotations)


def _threshold_text(resource: str, summary: Summary, starved: Sequence[Threshold]) -> str:
    for threshold in starved:
        signal = signals.ALL[threshold.signal]
        observed = summary.signals.get(threshold.signal)
        if signal.resource == resource and observed is not None:
            available = amounts.binary if signal.in_bytes else amounts.decimal
            quantity = threshold.value.text(observed.capacity)
            return f"Threshold quantity: {quantity}, available: {available(observed.available)}. "
    return ""


def _pod_overrun(resource: str, pod: Pod, stats: PodStats) -> tuple[str, dict[str, str]]:
    """A pod with a pod-level memory request is named as a whole, whether it uses more or not."""
    resources = pod.spec.resources
    if resource != signals.MEMORY or resources is None or signals.MEMORY not in resources.requests:
        return "", {}
    if stats.memory_bytes is None:
        return "", {}
    usage, requested = amounts.binary(stats.memory_bytes), amounts.canonical(resources.requests[signals.MEMORY])
    name = pod.metadata.name
    text = f"Pod {name} was using {usage}, request is {requested}, has larger consumption of {resource}. "
    return text, {OFFENDING_POD: name, OFFENDING_POD_USAGE: usage}


def _container_overruns(resource: str, pod: Pod, stats: PodStats) -> list[tuple[str, str, str]]:
    """(container, usage, request) of those that use more than they request, in the order of the stats."""
    containers = {container.name: container for container in (*pod.spec.init_containers, *pod.spec.containers)}
    found: list[tuple[str, str, str]] = []
    for measured in stats.containers:
        container, used = containers.get(measured.name), _used(resource, measured)
        if container is None or used is None:
            continue
        requested = container.resources.requests.get(resource, "0")
        if used > amounts.exact(requested):
            found.append((container.name, amounts.binary(used), amounts.canonical(requested)))
    return found


def _used(resource: str, measured: ContainerStats) -> int | None:
    if resource == signals.MEMORY:
        return measured.memory_bytes
    if resource != signals.EPHEMERAL_STORAGE or measured.rootfs is None or measured.logs is None:
        return None
    if measured.rootfs.used_bytes is None or measured.logs.used_bytes is None:
        return None
    return measured.rootfs.used_bytes + measured.logs.used_bytes
