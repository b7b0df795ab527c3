"""In which order the pods of a node are considered, where it matters who goes first.

Source: pkg/descheduler/pod/pods.go, SortPodsBasedOnPriorityLowToHigh; pkg/utils/qos.go, GetPodQOS (v0.36.0).
"""

from collections.abc import Iterable
from typing import Final

from podyard.descheduler.core.evictor_args import NO_EVICTION_ANNOTATION
from podyard.objects import quantity
from podyard.objects.pod import Pod

BEST_EFFORT: Final = "BestEffort"
BURSTABLE: Final = "Burstable"
GUARANTEED: Final = "Guaranteed"
_RANKS: Final = {BEST_EFFORT: 0, BURSTABLE: 1, GUARANTEED: 2}
_COUNTED: Final = frozenset({"cpu", "memory"})


def least_important_first(pods: Iterable[Pod]) -> list[Pod]:
    """By priority, none lowest; then by quality of service; then those that would rather stay last."""
    return sorted(pods, key=_importance)


def priority_rank(pod: Pod) -> tuple[bool, int]:
    """For sorting by priority: a pod without one comes before all others."""
    return pod.spec.priority is not None, pod.spec.priority or 0


def _importance(pod: Pod) -> tuple[tuple[bool, int], int, bool]:
    rank = _RANKS.get(quality_of_service(pod), len(_RANKS))
    return priority_rank(pod), rank, NO_EVICTION_ANNOTATION in pod.metadata.annotations


def quality_of_service(pod: Pod) -> str:
    """What the status says, or else what requests and limits of containers and init containers come to."""
    if pod.status.qos_class:
        return pod.status.qos_class
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    limited = True
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        _add(requests, container.resources.requests)
        limited &= _add(limits, container.resources.limits) == _COUNTED
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if limited and requests == limits else BURSTABLE


def _add(total: dict[str, int], amounts: dict[str, str]) -> frozenset[str]:
    """Add what counts and is more than nothing; returns which resources did."""
    counted: set[str] = set()
    for name in _COUNTED.intersection(amounts):
        amount = quantity.nano(amounts[name])
        if amount > 0:
            counted.add(name)
            total[name] = total.get(name, 0) + amount
    return frozenset(counted)
