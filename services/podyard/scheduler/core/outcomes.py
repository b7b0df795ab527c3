"""How attempts end: results for the queue, records, spans. Collects effects in their order."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from podyard.proto.binder_api import BindAnswer
from podyard.proto.decisions import Outcome, Victim
from podyard.proto.message import PodRef
from podyard.proto.queue_api import AttemptResult, PoppedPod, failure_of
from podyard.proto.traces import flagged, is_sampled
from podyard.scheduler.core import records
from podyard.scheduler.core.assumptions import NO_PLACE, Assumption, Place
from podyard.scheduler.core.effects import CycleSpan, Done, Effect, Preempt, Record
from podyard.scheduler.core.placing import Attempted

NOBODY: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
"""No rejecting plugins: an error, which the queue retries without an event."""


class Way(NamedTuple):
    """What a preemption does to others."""

    victims: tuple[Victim, ...]
    """Pods to be deleted; most important first."""
    sent_back: tuple[Victim, ...]
    """Victims that were only assumed, and have been given up."""
    cleared: tuple[PodRef, ...]
    """Pods of lower priority that lose their nomination to the node."""


class Outcomes:
    """Effects of one step."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []

    def add(self, effect: Effect) -> None:
        """Any effect."""
        self._effects.append(effect)

    def take(self) -> list[Effect]:
        """All since last asked, in order."""
        effects, self._effects = self._effects, []
        return effects

    def done(
        self,
        popped: PoppedPod,
        outcome: Outcome,
        *,
        node: str = "",
        plugins: tuple[tuple[str, ...], tuple[str, ...]] = NOBODY,
        obstacles: Mapping[str, tuple[str, ...]] = records.NO_OBSTACLES,
        nominated_node: str | None = None,
        assumed: Place = NO_PLACE,
        message: str = "",
        gone: bool = False,
    ) -> None:
        """Tell the queue; see `AttemptResult`."""
        result = records.result_of(
            popped,
            outcome,
            node=node,
            plugins=plugins,
            obstacles=obstacles,
            nominated_node=nominated_node,
            assumed=assumed,
            message=message,
            gone=gone,
        )
        self._effects.append(Done(result))

    def decided(self, assumption: Assumption) -> None:
        """A node was found. The queue hears of the first decision of an attempt only: from then on it waits
        for a binding."""
        if assumption.tries == 1:
            self.done(assumption.popped, "scheduled", node=assumption.decision.node)
        if is_sampled(assumption.span.trace):
            self._effects.append(assumption.span)

    def failed(self, popped: PoppedPod, made: Attempted) -> None:
        """No node, or an error. One of many equal failures of a pod has a record and no span
        (docs/rules.md, equal-failures-are-thinned)."""
        result = _failure(popped, made)
        self._effects.append(Done(result))
        if popped.thinned and failure_of(result) == popped.thinned:
            self._effects.append(Record(made.span.record))
        else:
            self._kept(made.span)

    def preempts(self, popped: PoppedPod, made: Attempted, way: Way, session: str) -> None:
        """No node, but pods of lower priority make room on one."""
        self._effects.append(
            Preempt(
                result=msgspec.structs.replace(_failure(popped, made), cleared=way.cleared),
                session=session,
                profile=popped.profile,
                node=made.result.nominated_node or "",
                victims=way.victims,
                sent_back=way.sent_back,
                trace=made.span.trace,
            )
        )
        self._kept(made.span)

    def refused_at_permit(self, assumption: Assumption) -> None:
        """A wait ended with a rejection; `assumption.result` says whose."""
        result = assumption.result
        unschedulable, pending = records.rejectors(result)
        record = msgspec.structs.replace(
            assumption.span.record,
            outcome="unschedulable",
            message=result.message,
            unschedulable_plugins=unschedulable,
            pending_plugins=pending,
            obstacles=records.obstacles(result),
        )
        self.done(
            assumption.popped,
            "unschedulable",
            plugins=(unschedulable, pending),
            obstacles=record.obstacles,
            nominated_node="",
            assumed=assumption.place,
            message=result.message,
        )
        self._kept(msgspec.structs.replace(assumption.span, record=record))

    def bind_error(self, popped: PoppedPod, span: CycleSpan, why: str, *, assumed: Place, sent: bool) -> None:
        """The attempt found a node, at first at least, and did not bind.

        :param span: of the last cycle
        :param sent: whether `decided` was called for that cycle
        """
        record = msgspec.structs.replace(span.record, outcome="bindError", message=why, nominated_node="", victims=())
        self.done(popped, "bindError", node=record.node, assumed=assumed, message=why)
        span = msgspec.structs.replace(span, record=record)
        if sent and is_sampled(span.trace):
            self._effects.append(Record(record))
        else:
            self._kept(span)

    def refused(self, assumption: Assumption) -> PoppedPod:
        """The binder refused the decision, and the attempt goes on: its trace is kept from here on, this
        cycle included."""
        if is_sampled(assumption.span.trace):
            return assumption.popped
        self._effects.append(msgspec.structs.replace(assumption.span, keep=True))
        return msgspec.structs.replace(assumption.popped, trace=flagged(assumption.popped.trace))

    def slow(self, assumption: Assumption) -> None:
        """The pod is bound, and that took long: the shell may keep the span of the cycle."""
        if not is_sampled(assumption.span.trace):
            self._effects.append(msgspec.structs.replace(assumption.span, slow=True))

    def dropped(self, assumption: Assumption, why: str) -> None:
        """Assumed room came free although the attempt goes on, or ends on another node.

        It goes under an attempt id of its own, which the queue does not know: an unknown attempt's assumption
        is news for the parked pods all the same (docs/rules.md, dropped-assumption-is-news).
        """
        popped = assumption.popped
        attempt = f"{popped.attempt}/{assumption.tries}"
        result = records.result_of(popped, "bindError", assumed=assumption.place, message=why, attempt=attempt)
        self._effects.append(Done(result, goes_on=True))

    def _kept(self, span: CycleSpan) -> None:
        """Record and span of an attempt that went wrong."""
        self._effects.append(Record(span.record))
        record = span.record
        # that no node fits is an answer
        error = "" if record.outcome == "unschedulable" else record.message or record.outcome
        self._effects.append(msgspec.structs.replace(span, error=error, keep=True))


def _failure(popped: PoppedPod, made: Attempted) -> AttemptResult:
    """Who had a node and did not keep it, or met an error, is nominated no longer: it would keep others out
    of room that they fit in, and wait for something else itself.

    Source: schedule_one.go, clearNominatedNode: of Reserve, Permit, the binding cycle, and of errors that are
    no FitError.
    """
    record = made.span.record
    ended = bool(made.given_up.node) or record.outcome == "error"
    return records.result_of(
        popped,
        record.outcome,
        plugins=(record.unschedulable_plugins, record.pending_plugins),
        obstacles=record.obstacles,
        nominated_node="" if ended else made.result.nominated_node,
        assumed=made.given_up,
        message=record.message,
    )


def refusal(answer: BindAnswer) -> str:
    """The binder's refusal in words."""
    reasons = ", ".join(answer.reasons) or answer.result
    return f"{answer.cause}: {reasons}" if answer.cause else reasons
