"""Traces of attempts: the root span of each, what the pod waited for before and within it, and the events
that moved pods.

An attempt begins when its pod became ready. What was before (parked, gated, backing off) is a trace of its
own, or minutes of waiting would hide milliseconds of work. Outcomes that did not bind are always kept,
equal ones of one pod but now and then; for the others the flag in the attempt's traceparent decides
(docs/rules.md, bad-outcomes-are-traced, equal-failures-are-thinned). An attempt links to what woke the pod,
to the last attempt before that has a trace, and (the first one) to what made the pod.
"""

from typing import Final

from podyard.objects.meta import ObjectMeta
from podyard.proto.decisions import WakeUp
from podyard.proto.traces import is_sampled
from podyard.queue.core.effects import AttemptEnded, Gated, Judged, LeftUnbound
from podyard.telemetry.conventions import owner_attribute, pod_attributes
from podyard.telemetry.tracing import LINK, AttributeValue, Link, SpanEvent, Spans

ROOT: Final = "attempt"
WAIT_BEFORE: Final = "wait before attempt"
MOVED_NAMED: Final = 32
"""Moved pods that a requeue span names; its count is of all."""

SLOW_S: Final = 1.0
"""An attempt that took longer, from the pop to its binding, is worth a trace whatever the sampler said."""

TEMPLATE_HASH: Final = "pod-template-hash"
FAULTS: Final = frozenset({"error", "bindError"})
"""Outcomes that mean that something went wrong. That no node fits is an answer."""

MADE_BY: Final = {LINK: "made by"}
REPLACES: Final = {LINK: "replaces"}
BEFORE: Final = {LINK: "attempt before"}


def attempt_ended(spans: Spans, ended: AttemptEnded) -> bool:
    """Emit the root span and what the pod waited for, if the trace is wanted; whether it was."""
    if ended.thinned or not spans.enabled:
        return False
    keep = ended.outcome != "scheduled" or (ended.at - ended.popped_at > SLOW_S and spans.may_keep(ended.at))
    if not spans.wanted(ended.trace, keep=keep):
        return False
    if ended.parked_s or ended.backed_off_s:
        _waited_before(spans, ended)
    spans.emit(
        ROOT,
        trace=ended.trace,
        start=ended.queued_at,
        end=ended.at,
        attributes=_attributes(ended),
        links=_links(spans, ended),
        error=ended.message or ended.outcome if ended.outcome in FAULTS else "",
        keep=keep,
    )
    spans.emit(
        "wait in queue",
        parent=ended.trace,
        start=ended.queued_at,
        end=ended.popped_at,
        keep=keep,
    )
    if ended.decided_at:
        spans.emit(
            "wait for binding",
            parent=ended.trace,
            start=ended.decided_at,
            end=ended.at,
            keep=keep,
        )
    return True


def _waited_before(spans: Spans, ended: AttemptEnded) -> None:
    """A trace of its own: from when the pod was added or put back to when it was ready."""
    trace = spans.new_trace(WAIT_BEFORE, keep=True)
    ready, backing_off = ended.queued_at, ended.queued_at - ended.backed_off_s
    start = backing_off - ended.parked_s
    woken = (_woken_by(ended.woken_by),) if ended.woken_by is not None else ()
    spans.emit(
        WAIT_BEFORE,
        trace=trace,
        start=start,
        end=ready,
        attributes={
            **pod_attributes(ended.pod.namespace, ended.pod.name, uid=ended.pod.uid),
            "podyard.attempt.number": ended.number,
            **_waits(ended),
            **_wake(ended.woken_by),
        },
        links=(*woken, *((Link(spans.kept(ended.previous_trace), BEFORE),) if ended.previous_trace else ())),
    )
    if ended.parked_s:
        spans.emit("parked", parent=trace, start=start, end=backing_off)
    if ended.backed_off_s:
        spans.emit("backing off", parent=trace, start=backing_off, end=ready)


def _waits(ended: AttemptEnded) -> dict[str, AttributeValue]:
    return {"podyard.parked_s": ended.parked_s, "podyard.backed_off_s": ended.backed_off_s}


def _links(spans: Spans, ended: AttemptEnded) -> list[Link]:
    links = [_woken_by(ended.woken_by)] if ended.woken_by is not None else []
    if ended.number > 1:
        links.append(Link(spans.kept(ended.previous_trace), BEFORE))
    else:
        links += [Link(cause, REPLACES if cause in ended.replaces else MADE_BY) for cause in ended.causes]
    return [link for link in links if link.trace]


def _woken_by(wake: WakeUp) -> Link:
    return Link(wake.trace, {LINK: "woken by", "podyard.event": wake.event, "podyard.event.object": wake.object})


def _wake(wake: WakeUp | None) -> dict[str, AttributeValue]:
    if wake is None:
        return {}
    return {
        "podyard.woken_by.event": wake.event,
        "podyard.woken_by.object": wake.object,
        "podyard.woken_by.plugin": wake.plugin,
        "podyard.woken_by.reason": wake.reason,
    }


def _attributes(ended: AttemptEnded) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {
        **pod_attributes(ended.pod.namespace, ended.pod.name, uid=ended.pod.uid, node=ended.node or None),
        "podyard.attempt": ended.attempt,
        "podyard.attempt.number": ended.number,
        "podyard.outcome": ended.outcome,
        "podyard.profile": ended.profile,
        "podyard.session": ended.session,
        **_wake(ended.woken_by),
    }
    found |= _owners(ended.metadata)
    if ended.replaced:
        found["podyard.replaces"] = ended.replaced
    if ended.parked_s or ended.backed_off_s:
        found |= _waits(ended)
    if ended.unkept:
        found["podyard.attempts.not_kept"] = ended.unkept
    if ended.outcome != "scheduled":
        found["podyard.message"] = ended.message
        # one boolean a plugin: Jaeger's search misses attributes that are lists
        found |= {f"podyard.rejected_by.{plugin}": True for plugin in sorted(ended.rejectors)}
    return found


def _owners(metadata: ObjectMeta) -> dict[str, AttributeValue]:
    """The workload that the pod is of; of a Deployment's both, whose ReplicaSets are named after a hash of
    the template."""
    owner = metadata.controller
    if owner is None:
        return {}
    found: dict[str, AttributeValue] = {owner_attribute(owner.kind.lower()): owner.name}
    deployment = owner.name.removesuffix(f"-{metadata.labels.get(TEMPLATE_HASH, '')}")
    if owner.kind == "ReplicaSet" and deployment != owner.name:
        found[owner_attribute("deployment")] = deployment
    return found


def gated(spans: Spans, gate: Gated) -> None:
    """A pod is kept out: a trace of its own, so that it can be seen while it waits. Always kept."""
    if not spans.enabled:
        return
    before = [Link(cause, MADE_BY) for cause in gate.causes]
    if gate.previous_trace:
        before = [Link(spans.kept(gate.previous_trace), BEFORE)]
    spans.emit(
        "gate pod",
        trace=spans.new_trace("gate pod", keep=True),
        start=gate.at,
        end=gate.at,
        attributes={
            **pod_attributes(gate.pod.namespace, gate.pod.name, uid=gate.pod.uid),
            "podyard.gated_by": gate.plugin,
            "podyard.message": gate.message,
            "podyard.attempts": gate.attempts,
        },
        links=before,
    )


def left_unbound(spans: Spans, left: LeftUnbound) -> None:
    """A pod that waited is no more: the span "leave queue", after what ended it. Always kept."""
    if not spans.enabled:
        return
    by = left.trace if is_sampled(left.trace) else ""
    spans.emit(
        "leave queue",
        trace=spans.child(by) if by else spans.new_trace("leave queue", keep=True),
        follows=by,
        start=left.at,
        end=left.at,
        attributes={
            **pod_attributes(left.pod.namespace, left.pod.name, uid=left.pod.uid),
            "podyard.attempts": left.attempts,
        },
        links=(Link(spans.kept(left.previous_trace), BEFORE),) if left.previous_trace else (),
    )


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
        # what made the change has ended, and was told on: this is what came of it
        follows=incoming.trace if is_sampled(incoming.trace) else "",
        start=judged.at,
        end=judged.at,
        kind="consumer",
        attributes={
            "messaging.system": "nats",
            "messaging.operation.type": "process",
            "podyard.event": incoming.event.label,
            "podyard.event.id": incoming.id,
            "podyard.event.object": incoming.object_name,
            "podyard.who": incoming.who,
            "podyard.why": incoming.why,
            "podyard.moved": len(judged.moved),
            "podyard.skipped": judged.skipped_pods,
        },
        events=moved,
        keep=True,
    )
