"""What became of decided pods: answers of the binder, bindings seen in the view, ends of waits at Permit."""

from typing import Final

import msgspec

from podyard.framework.permits import Settled
from podyard.framework.status import Code
from podyard.proto.binder_api import POSITION_WAIT_S, BindAnswer
from podyard.proto.decisions import Outcome
from podyard.proto.placement import BoundPod
from podyard.proto.queue_api import PoppedPod
from podyard.scheduler.core.asking_again import AskingAgain
from podyard.scheduler.core.assumptions import NOT_ASKED, WAITS, Assumption, Phase
from podyard.scheduler.core.effects import AwaitPosition, Conflicted
from podyard.scheduler.core.measured import ERROR, SCHEDULED, UNSCHEDULABLE
from podyard.scheduler.core.outcomes import Outcomes, refusal
from podyard.scheduler.core.placing import Placing, View

MOST_RETRIES: Final = 3
"""How often a decision that conflicted is made again before the pod goes to error backoff
(docs/rules.md, three-retries-of-a-conflict)."""


SLOW_S: Final = 1.0
"""An attempt that took longer, from the pop to its binding, is worth a trace whatever the sampler said."""


class Retry(msgspec.Struct, gc=False):
    """A decision that conflicted: to be made again when the view has reached `position`, and not later than
    `due_at`."""

    position: int
    popped: PoppedPod
    tries: int
    why: str
    due_at: float
    started: float = 0.0
    """When the attempt's first cycle began."""


class Settling:
    """Ends assumptions. What is to be attempted again is left in `retries` and `successors` for the
    scheduler."""

    def __init__(self, placing: Placing, view: View, outcomes: Outcomes, asking_again: AskingAgain) -> None:
        self._placing = placing
        self._asking_again = asking_again
        self._view = view
        self._outcomes = outcomes
        self.retries: list[Retry] = []
        self.successors: list[PoppedPod] = []
        """Pods that were popped again while an older attempt of them was unanswered, which is settled now."""

    # ---- the binder ----------------------------------------------------------------------------------------

    def answered(self, answer: BindAnswer, position: int, session: str, now: float) -> None:
        """One answer of the binder; one that is not awaited is ignored.

        :param position: the binder's
        :param session: the session that lives now
        """
        assumption = self._placing.assumptions.get(answer.uid)
        if assumption is None or assumption.popped.attempt != answer.attempt or assumption.phase in NOT_ASKED:
            return
        match answer.result:
            case "bound":
                self._committed(assumption, answer.committed_at, now)
            case "alreadyBound":
                self._elsewhere(assumption, answer.node, now)
            case "waiting":
                self._waits(assumption, now)
            case "conflict":
                self._conflicted(assumption, answer, position, session, now)
            case "gone":
                self.give_up(answer.uid, "error", "the pod is gone", now)
            case "error":
                self.give_up(answer.uid, "bindError", refusal(answer), now)

    def _committed(self, assumption: Assumption, committed_at: int, now: float) -> None:
        """The binding is durable. Until the view shows it the pod stays assumed, and its number outstanding.

        A view that has got so far without it was listed after the binding, its release and the pod's end:
        nothing will show it.
        """
        uid, node = assumption.popped.uid, assumption.decision.node
        self._ended(assumption, SCHEDULED, now)
        if now - (assumption.popped.popped_at or assumption.started) > SLOW_S:
            self._outcomes.slow(assumption)
        if assumption.successor is not None:
            self._outcomes.done(assumption.successor, "scheduled", node=node)
            assumption.successor = None
        assumptions = self._placing.assumptions
        if assumption.phase is Phase.SEEN or uid in self._view.placements:
            assumptions.drop(uid)
        elif 0 < committed_at <= self._view.position:
            assumptions.drop(uid)
            self._placing.table.remove(uid)
        else:
            assumptions.bound(assumption)

    def _waits(self, assumption: Assumption, now: float) -> None:
        """The decision waits in the binder, or has waited there: the view may show the binding before this is
        heard."""
        if assumption.phase is Phase.SEEN:
            self._committed(assumption, 0, now)
        else:
            self._asking_again.wait(assumption, now)

    def _ended(self, assumption: Assumption, result: str, now: float) -> None:
        trace = assumption.span.trace
        self._placing.measuring.attempt(result, assumption.popped, assumption.started, now, trace)

    def _elsewhere(self, assumption: Assumption, node: str, now: float) -> None:
        """Another attempt's binding is durable."""
        self._ended(assumption, ERROR, now)
        self._placing.forget(assumption.popped.uid)
        if node != assumption.decision.node:
            self._outcomes.dropped(assumption, f"the pod is bound to {node} already{assumption.trouble}")
        if assumption.successor is not None:
            self._outcomes.done(assumption.successor, "scheduled", node=node)

    def _conflicted(self, assumption: Assumption, answer: BindAnswer, position: int, session: str, now: float) -> None:
        why = refusal(answer)
        over = assumption.tries > MOST_RETRIES or assumption.session != session or assumption.successor is not None
        self._outcomes.add(Conflicted(answer.cause, not over))
        if over:
            self.give_up(answer.uid, "bindError", why, now)
            return
        self._placing.forget(answer.uid)
        why += assumption.trouble
        self._outcomes.dropped(assumption, why)
        due_at, popped = now + POSITION_WAIT_S, self._outcomes.refused(assumption)
        self.retries.append(Retry(position, popped, assumption.tries, why, due_at, assumption.started))
        self._outcomes.add(AwaitPosition(position))

    # ---- the cluster ---------------------------------------------------------------------------------------

    def seen(self, assumption: Assumption, bound: BoundPod, now: float) -> None:
        """The view shows the pod's binding, by this attempt or by another."""
        phase = assumption.phase
        if phase is Phase.AT_PERMIT:
            self._elsewhere(assumption, bound.node, now)
            self._outcomes.done(assumption.popped, "scheduled", node=bound.node)
        elif phase is Phase.BOUND:
            self._placing.assumptions.drop(bound.uid)
        elif bound.attempt == assumption.popped.attempt:
            self._placing.assumptions.seen(assumption)
            if phase in WAITS:  # the binder would be asked again only for what is known now
                self._committed(assumption, 0, now)

    def listed(self) -> None:
        """The view was listed anew. A binding that was answered and that the listing does not show has come
        and gone meanwhile."""
        for assumption in [one for one in self._placing.assumptions if one.phase is Phase.BOUND]:
            uid = assumption.popped.uid
            self._placing.assumptions.drop(uid)
            if not isinstance(self._view.placements.get(uid), BoundPod):
                self._placing.table.remove(uid)

    # ---- Permit --------------------------------------------------------------------------------------------

    def refused_at_permit(self, settled: Settled, now: float) -> None:
        """A wait at Permit ended with a rejection."""
        assumption = self._placing.forget(settled.uid)
        if assumption is None:
            return
        result = assumption.result
        result.node = ""
        result.rejection, result.message = settled.status, settled.status.message + assumption.trouble
        self._outcomes.refused_at_permit(assumption)
        self._ended(assumption, UNSCHEDULABLE, now)
        self._follow_up(assumption)

    def give_up(self, uid: str, outcome: Outcome, why: str, now: float) -> None:
        """The attempt ends without a binding: `bindError` for error backoff, `error` for a pod that is no
        more.

        At Permit, the reference counts it as a rejection there. Source: schedule_one.go,
        handleBindingCycleError; eventhandlers.go, handleAssumedPodDeletion.
        """
        waited_s = self._placing.permits.waited_s(uid, now)
        assumption = self._placing.forget(uid)
        if assumption is None:
            return
        decided = assumption.phase is not Phase.AT_PERMIT
        if not decided:
            self._placing.measuring.permit_wait(Code.UNSCHEDULABLE.label, waited_s)
        place, why = assumption.place, why + assumption.trouble
        if outcome == "bindError":
            self._outcomes.bind_error(assumption.popped, assumption.span, why, assumed=place, sent=decided)
        else:
            self._outcomes.done(assumption.popped, outcome, assumed=place, message=why)
        self._ended(assumption, ERROR if decided else UNSCHEDULABLE, now)
        self._follow_up(assumption)

    def _follow_up(self, assumption: Assumption) -> None:
        if assumption.successor is not None:
            self.successors.append(assumption.successor)
