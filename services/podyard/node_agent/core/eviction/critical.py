"""Pods that the eviction manager never touches, and quality of service.

Source: pkg/kubelet/types/pod_update.go, IsCriticalPod; pkg/apis/core/v1/helper/qos, ComputePodQOS (v1.36.2).
"""

from typing import Final

from podyard.node_agent.core.eviction import amounts
from podyard.objects import priority
from podyard.objects.containers import Container
from podyard.objects.pod import Pod

SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_COMPUTE: Final = ("cpu", "memory")


def is_critical(pod: Pod) -> bool:
    """Whether the pod is static (not from the API), a mirror of a static one, or of system priority."""
    return bool(why_critical(pod))


def why_critical(pod: Pod) -> str:
    """Why the pod never goes; empty if it may."""
    if is_static(pod):
        return "static"
    if MIRROR_ANNOTATION in pod.metadata.annotations:
        return "mirror of a static pod"
    return f"critical: priority {priority.pod_priority(pod)}" if priority.is_critical(pod) else ""


def is_static(pod: Pod) -> bool:
    """Whether the pod does not come from the API. Source: IsStaticPod."""
    return pod.metadata.annotations.get(SOURCE_ANNOTATION, "api") != "api"


def quality_of_service(pod: Pod) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`; what the status says is believed."""
    if pod.status.qos_class:
        return pod.status.qos_class
    if pod.spec.resources is not None:
        return _class_of([(pod.spec.resources.requests, pod.spec.resources.limits)])
    containers: list[Container] = [*pod.spec.containers, *pod.spec.init_containers]
    return _class_of([(container.resources.requests, container.resources.limits) for container in containers])


def _class_of(resources: list[tuple[dict[str, str], dict[str, str]]]) -> str:
    named = [(_positive(requests), _positive(limits)) for requests, limits in resources]
    if not any(requests or limits for requests, limits in named):
        return "BestEffort"
    for requests, limits in named:
        if set(limits) != set(_COMPUTE) or any(requests.get(name, limits[name]) != limits[name] for name in _COMPUTE):
            return "Burstable"
    return "Guaranteed"


def _positive(quantities: dict[str, str]) -> dict[str, amounts.Amount]:
    amounts_by_name = {name: amounts.exact(quantities[name]) for name in _COMPUTE if name in quantities}
    return {name: amount for name, amount in amounts_by_name.items() if amount > 0}
