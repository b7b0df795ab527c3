"""Traces of what controllers wrote: the span of each sync that made or ended objects of others, after the
change that led to it; what it makes carries its id. A sync that only tells how its workload is has none,
nor has one whose cause has no trace."""

from typing import Final

from podyard.proto import subjects
from podyard.telemetry.conventions import NAMESPACE, POD, owner_attribute
from podyard.telemetry.tracing import AttributeValue, SpanEvent, Spans
from podyard.workloads.core.actions import Create, Delete, Done, Work

NAMED: Final = 32
"""Pods that a span names; its counts are of all."""


def trace_of(spans: Spans, work: Work) -> str:
    """The traceparent of its span; empty: it has none."""
    if not work.led_by or work.atomic or not spans.wanted(work.led_by):
        return ""
    return spans.child(work.led_by) if any(write.key != work.owner for write in work.writes) else ""


def done(spans: Spans, work: Work, what: Done, trace: str, start: float, end: float) -> None:
    """Emit it."""
    owner, resource = work.owner, work.owner.resource.removesuffix("s")
    made = [write for write in work.writes if isinstance(write, Create)]
    ended = [write for write in work.writes if isinstance(write, Delete)]
    attributes: dict[str, AttributeValue] = {
        owner_attribute(resource): owner.name,
        "podyard.why": work.why,
        "podyard.created": len(made),
        "podyard.deleted": len(ended),
    }
    if owner.namespace:
        attributes[NAMESPACE] = owner.namespace
    spans.emit(
        f"sync {resource}",
        trace=trace,
        follows=work.led_by,
        start=start,
        end=end,
        attributes=attributes,
        events=[_made(one, end) for one in made if one.key.resource == subjects.PODS][:NAMED],
        error="; ".join(what.failures),
    )


def _made(create: Create, at: float) -> SpanEvent:
    found: dict[str, AttributeValue] = {NAMESPACE: create.key.namespace, POD: create.key.name}
    if create.replaces is not None:
        found["podyard.replaces"] = create.replaces.name
    return SpanEvent("pod made", at, found)
