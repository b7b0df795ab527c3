"""Traces of attempts: the root span of each, the wait before it, and the events that moved pods.

Bad outcomes are always kept; for the others the flag in the attempt's traceparent decides
(docs/rules.md, bad-outcomes-are-traced). An attempt links to what woke the pod, to the attempt before, and
(the first one) to what made the pod.
"""

from typing import Final

from podyard.queue.core.effects import AttemptEnded, Judged
from podyard.telemetry.conventions import pod_attributes
from podyard.telemetry.tracing import AttributeValue, SpanEvent, Spans

ROOT: Final = "attempt"
MOVED_NAMED: Final = 32
"""Moved pods that a requeue span names; its count is of all."""


def attempt_ended(spans: Spans, ended: AttemptEnded) -> None:
    """Emit the root span and the wait in the queue, if the trace is wanted."""
    keep = ended.outcome != "scheduled"
    if not spans.wanted(ended.trace, keep=keep):
        return
    links = [ended.woken_by.trace] if ended.woken_by is not None else []
    links += [ended.previous_trace] if ended.number > 1 else ended.causes
    spans.emit(
        ROOT,
        trace=ended.trace,
        start=ended.queued_at,
        end=ended.at,
        attributes=_attributes(ended),
        links=[link for link in links if link],
        error=ended.message or ended.outcome if keep else "",
        keep=keep,
    )
    spans.emit(
        "wait in queue",
        trace=spans.child(ended.trace),
        parent=ended.trace,
        start=ended.queued_at,
        end=ended.popped_at,
        keep=keep,
    )


def _attributes(ended: AttemptEnded) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {
        **pod_attributes(ended.pod.namespace, ended.pod.name, uid=ended.pod.uid, node=ended.node or None),
        "podyard.attempt": ended.attempt,
        "podyard.attempt.number": ended.number,
        "podyard.outcome": ended.outcome,
        "podyard.profile": ended.profile,
        "podyard.session": ended.session,
    }
    if ended.woken_by is not None:
        found["podyard.woken_by.event"] = ended.woken_by.event
        found["podyard.woken_by.plugin"] = ended.woken_by.plugin
        found["podyard.woken_by.reason"] = ended.woken_by.reason
    if ended.outcome != "scheduled":
        # one boolean a plugin: Jaeger's search misses attributes that are lists
        found |= {f"podyard.rejected_by.{plugin}": True for plugin in sorted(ended.rejectors)}
    return found


def pods_moved(spans: Spans, judged: Judged) -> None:
    """Emit a span for an event that moved pods, in the event's own trace; always kept."""
    incoming = judged.incoming
    if not judged.moved or not spans.enabled:
        return
    moved = [
        SpanEvent(
            "pod moved",
            judged.at,
            {
                **pod_attributes(move.namespace, move.name),
                "podyard.from": move.from_.value,
                "podyard.to": move.to.value,
                "podyard.plugin": move.plugin,
                "podyard.reason": next(
                    (call.reason for call in move.hints if (call.plugin, call.own) == (move.plugin, move.own)), ""
                ),
            },
        )
        for move in judged.moved[:MOVED_NAMED]
    ]
    spans.emit(
        "requeue pods",
        trace=spans.child(incoming.trace),
        parent=incoming.trace,
        start=judged.at,
        end=judged.at,
        attributes={
            "podyard.event": incoming.event.label,
            "podyard.event.id": incoming.id,
            "podyard.event.object": incoming.object_name,
            "podyard.moved": len(judged.moved),
            "podyard.skipped": judged.skipped_pods,
        },
        events=moved,
        keep=True,
    )
