"""What a workload asks of a pod: does it count, is it ready, since when.

Source: pkg/controller/controller_utils.go (IsPodActive, FilterActivePods), pkg/api/v1/pod/util.go
(IsPodReady, IsPodAvailable).
"""

from typing import Final

from podyard.cluster.pods import PodView
from podyard.objects import times
from podyard.objects.meta import Condition
from podyard.objects.pod import ENDED
from podyard.workloads.core.receipts import Receipts

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
READY: Final = "Ready"


def phase(pod: PodView) -> str:
    """What its agent says, else what its creator wrote; Pending if nobody said anything."""
    if pod.status is not None:
        return pod.status.phase
    return pod.stored.status.phase or PENDING


def is_active(pod: PodView) -> bool:
    """Whether it counts as a replica: it has not ended and is not being deleted. A released pod never runs
    again."""
    return not pod.deleting and not pod.released and phase(pod) not in ENDED


def is_terminating(pod: PodView) -> bool:
    """Whether somebody asked for its end and it has not come."""
    return pod.deleting and not pod.released and phase(pod) not in ENDED


def ready_condition(pod: PodView) -> Condition | None:
    """The condition Ready of the joined pod."""
    for condition in pod.pod.status.conditions:
        if condition.type == READY:
            return condition
    return None


def is_ready(pod: PodView) -> bool:
    """Whether its agent says that it serves."""
    condition = ready_condition(pod)
    return condition is not None and condition.status == "True"


def ready_since(pod: PodView) -> float:
    """Seconds since 1970 at which it became ready; 0 if it is not, or nobody said when."""
    condition = ready_condition(pod)
    if condition is None or condition.status != "True" or not condition.last_transition_time:
        return 0.0
    return times.seconds_or(condition.last_transition_time, 0.0)


def created_at(pod: PodView) -> float:
    """Seconds since 1970; 0 if nobody said when."""
    return times.seconds_or(pod.stored.metadata.creation_timestamp, 0.0)


def ended_at(pod: PodView, receipts: Receipts, now: float) -> float:
    """Seconds since 1970 at which it ended, as its agent says; if none says anything, the end of the grace
    period of its deletion; 0 if nobody said when."""
    said = pod.status.at if pod.status is not None else pod.stored.metadata.deletion_timestamp or ""
    return receipts.since(pod.uid, times.seconds_or(said, 0.0), now)


def available_at(pod: PodView, min_ready_s: int, receipts: Receipts, now: float) -> float | None:
    """When it has been ready for long enough, seconds since 1970; None: it is not ready."""
    if not is_ready(pod):
        return None
    return receipts.since(pod.uid, ready_since(pod), now) + min_ready_s if min_ready_s else 0.0
