"""Traces of what the binder did: the span of each decision, of a wait for a volume, of the end of a binding.

A decision was handed over: its span follows that of the scheduling cycle. What is kept: what its trace's flag
says, refusals, what took long (docs/rules.md, bad-outcomes-are-traced).
"""

from typing import Final

from podyard.binder.core.effects import BeganToWait, Committed, Outcome, Settled
from podyard.proto.binder_api import BindAnswer, Decision
from podyard.proto.subjects import BINDER_BIND
from podyard.telemetry.conventions import pod_attributes, received
from podyard.telemetry.tracing import AttributeValue, Spans

BOUND: Final = "bound"
"""The result that is no refusal."""
FAULT: Final = "error"
"""The result that means that something went wrong. A conflict is an answer: the attempt goes on."""
SLOW_S: Final = 1.0
"""A decision that took longer is worth a span whatever the sampler said."""


def settled(spans: Spans, settled: Settled, now: float) -> list[tuple[float, str]]:
    """Emit the spans "bind" and "commit" of decisions that have their answers, as far as they are wanted.

    :return: of those that are kept, when the decision was received and the traceparent of "bind"
    """
    found: list[tuple[float, str]] = []
    if not spans.enabled:
        return found
    for one in settled.outcomes:
        sampled = spans.wanted(one.decision.trace)
        refused = one.answer.result != BOUND
        slow = now - one.received_at > SLOW_S and not sampled and spans.may_keep(now)
        if sampled or refused or slow:
            trace = _settled(spans, one, settled.sent_at, now, keep=refused or slow)
            found.append((one.received_at, trace))
    return found


def _settled(spans: Spans, one: Outcome, sent_at: float, now: float, *, keep: bool) -> str:
    """Traceparent of its span."""
    answer, trace, bound = one.answer, one.decision.trace, one.bound
    own = bound.trace if bound is not None and bound.trace != trace else spans.child(trace)
    spans.emit(
        "bind",
        trace=own,
        follows=trace,
        start=one.received_at,
        end=now,
        kind="consumer",
        attributes={**_about(one.decision), **_result(answer)},
        error=", ".join(answer.reasons) or answer.result if answer.result == FAULT else "",
        keep=keep,
    )
    if sent_at:
        spans.emit("commit", parent=own, start=sent_at, end=now, keep=keep)
    return own


def began_to_wait(spans: Spans, waits: BeganToWait, now: float) -> None:
    """The span "wait for volume", from receiving the decision to knowing that it waits: it can be seen
    while the pod waits. Always kept."""
    spans.emit(
        "wait for volume",
        trace=spans.child(waits.decision.trace),
        follows=waits.decision.trace,
        start=waits.received_at,
        end=now,
        attributes={**_about(waits.decision), **_result(waits.answer)},
        keep=True,
    )


def released(spans: Spans, committed: Committed) -> None:
    """The span "release pod" of each binding that a commit ended, after what ended the pod."""
    for release in committed.releases:
        if release.trace and spans.wanted(release.trace):
            spans.emit(
                "release pod",
                trace=spans.child(release.trace),
                follows=release.trace,
                start=committed.sent_at,
                end=committed.settled_at,
                attributes={
                    **pod_attributes(release.namespace, release.name, uid=release.uid, node=release.node),
                    "podyard.release": release.reason,
                },
            )


def _about(decision: Decision) -> dict[str, AttributeValue]:
    return {
        **pod_attributes(decision.namespace, decision.name, uid=decision.uid, node=decision.node),
        **received(BINDER_BIND),
        "podyard.attempt": decision.attempt,
    }


def _result(answer: BindAnswer) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {"podyard.bind.result": answer.result}
    if answer.cause:
        found["podyard.bind.cause"] = answer.cause
        found["podyard.bind.reasons"] = answer.reasons
    if answer.won:
        found["podyard.bind.won"] = answer.won
    return found
