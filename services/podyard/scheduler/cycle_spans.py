"""The trace of a scheduling cycle: one span, with a child for each extension point."""

from typing import Final

from podyard.proto.decisions import AttemptRecord
from podyard.scheduler.core.effects import CycleSpan
from podyard.telemetry.conventions import pod_attributes
from podyard.telemetry.tracing import AttributeValue, Spans

CYCLE: Final = "schedule cycle"


def emit(spans: Spans, cycle: CycleSpan) -> None:
    """Send the cycle's spans, if the trace is wanted."""
    if not spans.wanted(cycle.trace, keep=cycle.keep):
        return
    spans.emit(
        CYCLE,
        trace=cycle.trace,
        parent=cycle.parent,
        start=cycle.start,
        end=cycle.end,
        attributes=_attributes(cycle.record),
        error=cycle.error,
        keep=cycle.keep,
    )
    for one in cycle.points:
        spans.emit(
            one.point,
            trace=spans.child(cycle.trace),
            parent=cycle.trace,
            start=cycle.points_since + one.start,
            end=cycle.points_since + one.end,
            keep=cycle.keep,
        )


def _attributes(record: AttemptRecord) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {
        **pod_attributes(record.namespace, record.name, uid=record.uid, node=record.node or None),
        "podyard.attempt": record.attempt,
        "podyard.attempt.number": record.number,
        "podyard.outcome": record.outcome,
        "podyard.profile": record.profile,
        "podyard.session": record.scheduler,
        "podyard.position": record.position,
        "podyard.nodes.total": record.nodes_total,
        "podyard.nodes.feasible": record.nodes_feasible,
    }
    if record.nominated_node:
        found["podyard.nominated_node"] = record.nominated_node
    if record.victims:
        found["podyard.victims"] = [f"{victim.namespace}/{victim.name}" for victim in record.victims]
    if record.scores:
        found["podyard.score"] = record.scores[0].total
    for rejection in record.rejections:
        # one boolean a plugin: Jaeger's search misses attributes that are lists
        found[f"podyard.rejected_by.{rejection.plugin}"] = True
    return found
