"""Which of several pods matters most: the order in which potential victims are spared.

Source: kube-scheduler v1.36.2, pkg/scheduler/util/utils.go (GetPodStartTime, GetEarliestPodStartTime,
MoreImportantPod).
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final, TypeAlias

from podyard.cluster.node_table import PlacedPod
from podyard.objects import times

StartTime: TypeAlias = tuple[float, int]
"""Seconds since 1970; then, for pods that have not started (infinite: "now", in the reference), the position
they were placed at.

The scheduler does not follow what agents say of pods, so most pods have no start time here: their placements'
order stands for it.
"""

PRIORITY_SHIFT: Final = 1 << 31
"""Makes every priority positive: one pod of priority -10 must cost less than two. Source: MaxInt32+1 in
preemption.go."""


def start_time(pod: PlacedPod) -> StartTime:
    """When the pod was started."""
    fact = pod.status
    text = (fact.start_time if fact is not None else "") or pod.stored.status.start_time
    seconds = times.seconds_or(text, inf)  # no time at all: as if it had not started
    return seconds, pod.bound.decided_at if seconds == inf and pod.bound is not None else 0


def most_important_first(pods: Iterable[PlacedPod]) -> list[PlacedPod]:
    """Higher priority, then earlier start; equal ones as they came."""
    return sorted(pods, key=lambda pod: (-pod.priority, start_time(pod)))


def earliest_start(victims: Sequence[PlacedPod]) -> StartTime:
    """The earliest start among those of the highest priority.

    :param victims: at least one
    """
    highest = max(pod.priority for pod in victims)
    return min(start_time(pod) for pod in victims if pod.priority == highest)


def terminating_by_preemption(pod: PlacedPod) -> bool:
    """Whether the pod is being deleted because a scheduler preempted it; a pod that is deleted for another
    reason is not.

    Source: default_preemption.go, podTerminatingByPreemption: the first DisruptionTarget condition decides.
    """
    if not pod.deleting:
        return False
    for condition in pod.pod.status.conditions:
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False
