"""Whether a pod is scheduled, as its condition PodScheduled says it: told from facts that exist, when
somebody reads. Pure.

Initialized, ContainersReady and Ready are the words of its node's agent; before that speaks nobody says them,
as in the reference.

Sources: kubernetes v1.36.2, pkg/registry/core/pod/strategy.go (applySchedulingGatedCondition),
pkg/registry/core/pod/storage/storage.go (assignPod: setPodNodeAndMetadata), pkg/scheduler/schedule_one.go
(handleSchedulingFailure).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from podyard.cluster.pods import PodView
from podyard.objects.meta import Condition
from podyard.objects.times import rfc3339
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import PodScheduledFact
from podyard.telling.events import FAILURES

POD_SCHEDULED: Final = "PodScheduled"
GATED: Final = "SchedulingGated"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
BLOCKED: Final = "Scheduling is blocked due to non-empty scheduling gates"


class Evidence(NamedTuple):
    """What is known of a pod besides object and status."""

    bound_at: float = 0.0
    """Seconds since 1970; 0: not known."""
    attempts: Sequence[AttemptRecord] = ()
    """Of this uid, oldest first; maybe the last one alone."""
    topology: tuple[tuple[str, str], ...] = ()
    """Labels that the pod has of its node since it was bound, as far as they are known."""
    refusal: PodScheduledFact | None = None
    """Why it is not scheduled, if that is stored."""


NOTHING: Final = Evidence()


def is_told(view: PodView) -> bool:
    """Whether somebody else says already whether it is scheduled. Who says that it is not is believed as long
    as it is not bound."""
    placed = view.bound is not None or view.release is not None
    return any(one.type == POD_SCHEDULED and (not placed or one.status == "True") for one in view.pod.status.conditions)


def scheduled(view: PodView, evidence: Evidence = NOTHING) -> Condition | None:
    """The condition PodScheduled; None: nobody has tried yet, or what became of it cannot be read."""
    if view.bound is not None or view.release is not None:
        return Condition(type=POD_SCHEDULED, status="True", last_transition_time=_time(evidence.bound_at))
    if view.unknown_place:
        return None
    if view.stored.spec.scheduling_gates:
        since = view.stored.metadata.creation_timestamp
        return Condition(type=POD_SCHEDULED, status="False", reason=GATED, message=BLOCKED, last_transition_time=since)
    if evidence.refusal is not None:
        told = evidence.refusal
        return Condition(
            type=POD_SCHEDULED,
            status="False",
            reason=told.reason,
            message=told.message,
            last_transition_time=_time(told.since),
        )
    failed = [one for one in evidence.attempts if one.uid == view.uid and one.outcome in FAILURES]
    if not failed:
        return None
    last = failed[-1]
    return Condition(
        type=POD_SCHEDULED,
        status="False",
        reason=reason_of(last.outcome),
        message=last.message,
        last_transition_time=_since(failed),
    )


def reason_of(outcome: str) -> str:
    """Of the condition, after an attempt that failed."""
    return UNSCHEDULABLE if outcome == "unschedulable" else SCHEDULER_ERROR


def with_scheduled(view: PodView, evidence: Evidence = NOTHING) -> tuple[Condition, ...]:
    """All conditions of a pod."""
    told = view.pod.status.conditions
    if is_told(view):
        return told
    found = scheduled(view, evidence)
    return told if found is None else (*(one for one in told if one.type != POD_SCHEDULED), found)


def _since(failed: Sequence[AttemptRecord]) -> str | None:
    """Since when it is so: of the first attempt, or of the oldest of several whose record is kept. Of a later
    one by itself nobody knows."""
    first = failed[0]
    return _time(first.at) if first.number == 1 or len(failed) > 1 else None


def _time(at: float) -> str | None:
    return rfc3339(at) if at else None


def wanted(views: Iterable[PodView]) -> tuple[list[PodView], list[PodView]]:
    """Of which pods something is to be read before their condition can be told: when they were bound, and
    why they are not."""
    silent = [view for view in views if not is_told(view) and not view.unknown_place]
    placed = [view for view in silent if view.bound is not None or view.release is not None]
    waiting = [
        view for view in silent if view.bound is None and view.release is None and not view.stored.spec.scheduling_gates
    ]
    return placed, waiting
