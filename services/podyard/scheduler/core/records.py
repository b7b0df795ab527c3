"""What is kept of an attempt: its record, and its result for the queue."""

from collections.abc import Mapping
from typing import Final

from podyard.framework.cycle import CycleResult
from podyard.proto.decisions import AttemptRecord, Outcome
from podyard.proto.queue_api import AttemptResult, PoppedPod
from podyard.scheduler.core.assumptions import NO_PLACE, Place

NO_OBSTACLES: Final[Mapping[str, tuple[str, ...]]] = {}


def outcome_of(result: CycleResult) -> Outcome:
    """How a cycle ended, if nothing goes wrong afterwards."""
    if result.node:
        return "scheduled"
    return "error" if result.error else "unschedulable"


def rejectors(result: CycleResult) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Unschedulable and pending plugins of a failed cycle, each sorted. None at all: an error, retried
    without an event."""
    if result.diagnosis is not None:
        return result.diagnosis.unschedulable_plugins, result.diagnosis.pending_plugins
    rejection = result.rejection
    if rejection is None or not rejection.plugin:
        return (), ()
    from_pending = rejection.code == rejection.code.PENDING
    return ((), (rejection.plugin,)) if from_pending else ((rejection.plugin,), ())


def obstacles(result: CycleResult) -> dict[str, tuple[str, ...]]:
    """What the plugins that rejected the pod said stands in its way, by plugin."""
    if result.diagnosis is not None:
        return result.diagnosis.obstacles
    rejection = result.rejection
    return {rejection.plugin: rejection.obstacles} if rejection is not None and rejection.obstacles else {}


def record_of(
    popped: PoppedPod, result: CycleResult, *, session: str, at: float, duration_s: float, position: int
) -> AttemptRecord:
    """The record of one attempt as far as the cycle got."""
    unschedulable, pending = rejectors(result)
    return AttemptRecord(
        namespace=popped.namespace,
        name=popped.name,
        uid=popped.uid,
        attempt=popped.attempt,
        number=popped.number,
        scheduler=session,
        profile=popped.profile,
        outcome=outcome_of(result),
        node=result.node,
        at=at,
        queued_at=popped.queued_at,
        popped_at=popped.popped_at,
        parked_s=popped.parked_s,
        backed_off_s=popped.backed_off_s,
        duration_us=int(duration_s * 1e6),
        position=position,
        nodes_total=result.nodes_total,
        nodes_feasible=result.nodes_feasible,
        rejections=result.rejections,
        nearest=result.nearest,
        scores=result.scores,
        message=result.message,
        unschedulable_plugins=unschedulable,
        pending_plugins=pending,
        obstacles=obstacles(result),
        nominated_node=result.nominated_node or "",
        victims=result.victims,
        woken_by=popped.woken_by,
        trace=popped.trace,
        previous_trace=popped.previous_trace,
    )


def result_of(
    popped: PoppedPod,
    outcome: Outcome,
    *,
    node: str = "",
    plugins: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    obstacles: Mapping[str, tuple[str, ...]] = NO_OBSTACLES,
    nominated_node: str | None = None,
    assumed: Place = NO_PLACE,
    message: str = "",
    attempt: str = "",
    gone: bool = False,
) -> AttemptResult:
    """What the queue is told about an attempt.

    :param plugins: those that rejected the pod, unschedulable and pending ones
    :param obstacles: what they said stands in its way, by plugin
    :param gone: the pod was not tried, since it is no more, or is being deleted
    :param attempt: another id than the popped one, if this is not about the attempt itself
    """
    return AttemptResult(
        namespace=popped.namespace,
        name=popped.name,
        uid=popped.uid,
        attempt=attempt or popped.attempt,
        outcome=outcome,
        node=node,
        unschedulable_plugins=plugins[0],
        pending_plugins=plugins[1],
        obstacles=dict(obstacles),
        nominated_node=nominated_node,
        assumed=assumed.node,
        version=assumed.version,
        message=message,
        gone=gone,
        trace=popped.trace,
    )
