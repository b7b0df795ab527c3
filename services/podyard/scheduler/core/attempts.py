"""Attempts, one at a time: from a popped pod to what becomes of it.

An attempt is a dialogue: a generator that yields what extenders are to be asked, and goes on with their
answers. Most ask nothing, and end at once. While one stands still no other begins, and nothing else may
change.
"""

from collections.abc import Generator

from podyard.cluster.pods import PodView
from podyard.framework.extenders import Answers, Calls
from podyard.proto.queue_api import PoppedPod
from podyard.scheduler.core.assumptions import Phase
from podyard.scheduler.core.clearing import Clearing
from podyard.scheduler.core.effects import AskExtenders
from podyard.scheduler.core.measured import ERROR, UNSCHEDULABLE
from podyard.scheduler.core.outcomes import Outcomes
from podyard.scheduler.core.placing import Attempted, Placing, View
from podyard.scheduler.core.requests import Requests
from podyard.scheduler.core.settling import Retry


class Attempts:
    """What becomes of an attempt goes to `outcomes` and `requests`."""

    def __init__(
        self, placing: Placing, view: View, requests: Requests, clearing: Clearing, outcomes: Outcomes
    ) -> None:
        self._placing = placing
        self._view = view
        self._requests = requests
        self._clearing = clearing
        self._outcomes = outcomes
        self.running: PoppedPod | None = None
        """The one whose cycle runs within this step."""
        self.asking: PoppedPod | None = None
        """The one that waits for an answer of extenders."""
        self._dialogue: Generator[Calls, Answers, None] | None = None
        self._ticket = 0
        """Of the last question."""
        self._now = 0.0

    def run(self, popped: PoppedPod, now: float, retry: Retry | None = None) -> None:
        """Make the attempt, as far as that goes without an answer.

        :param retry: the refused decision that is made again
        """
        self.running = popped
        if not self._answer_at_once(popped):
            self._now = now
            self._requests.begin()
            self._go_on(popped, self._attempt(popped, retry), None)
        self.running = None

    def answered(self, ticket: int, answers: Answers, now: float) -> None:
        """What the extenders said. An answer that is not awaited (any more) is ignored."""
        popped, dialogue = self.asking, self._dialogue
        if popped is None or dialogue is None or ticket != self._ticket:
            return
        self.running, self.asking, self._dialogue = popped, None, None
        self._now = now
        self._requests.begin()
        self._go_on(popped, dialogue, answers)
        self._requests.flush()
        self.running = None

    def close(self) -> None:
        """Nobody waits for the answer any more."""
        if self._dialogue is not None:
            self._dialogue.close()
        self.asking = self._dialogue = None

    # ---- the dialogue

    def _go_on(self, popped: PoppedPod, dialogue: Generator[Calls, Answers, None], answers: Answers | None) -> None:
        """To the end, or until extenders are to be asked."""
        try:
            calls = next(dialogue) if answers is None else dialogue.send(answers)
        except StopIteration:
            return
        self.asking, self._dialogue = popped, dialogue
        self._ticket += 1
        self._outcomes.add(AskExtenders(self._ticket, calls))

    def _attempt(self, popped: PoppedPod, retry: Retry | None) -> Generator[Calls, Answers, None]:
        pod = self._placing.nominations.joined(self._view.pods[popped.namespace, popped.name])
        tries, started = (0, self._now) if retry is None else (retry.tries, retry.started)
        session = self._requests.session
        made = yield from self._placing.attempt(
            popped, pod, tries=tries, session=session, now=self._now, started=started
        )
        if made.assumption is not None:
            if made.result.waits:
                self._placing.permits.wait(popped.uid, made.result.waits, self._now)
                self._requests.note(made.assumption)
                # later decisions count on this pod: their request must name its number as outstanding
                self._requests.flush()
            else:
                self._outcomes.decided(made.assumption)
                self._requests.add(made.assumption.decision)
        elif retry is None:
            self._failed(popped, pod, made)
        else:
            # the queue believes the pod scheduled since the first decision: from there it can only go to
            # backoff (docs/rules.md, no-parking-without-events)
            why = f"{retry.why}; then {made.result.message}"
            self._outcomes.bind_error(popped, made.span, why, assumed=made.given_up, sent=False)
            self._placing.measuring.attempt(ERROR, popped, started, made.span.end, made.span.trace)

    def _failed(self, popped: PoppedPod, pod: PodView, made: Attempted) -> None:
        """No node, now; maybe others make room. A nomination counts from here on, and ends from here on
        (docs/rules.md, nomination-ends-with-its-reason)."""
        node, span = made.result.nominated_node, made.span
        # no nodes at all is no error. Source: schedule_one.go, ErrNoNodesAvailable
        outcome = span.record.outcome if made.result.nodes_total else UNSCHEDULABLE
        self._placing.measuring.attempt(outcome, popped, span.start, span.end, span.trace)
        if node is not None:
            self._placing.nominations.decide(pod, node)
        if node and made.result.victims:
            way = self._clearing.clear(pod, node, made.result.victims, self._now)
            self._outcomes.preempts(popped, made, way, self._requests.session)
        else:
            self._outcomes.failed(popped, made)

    def _answer_at_once(self, popped: PoppedPod) -> bool:
        """Whether no cycle is needed: an older attempt is not settled yet, or the pod is gone, or bound."""
        standing = self._placing.assumptions.get(popped.uid)
        if standing is not None and standing.phase is Phase.BOUND:
            self._outcomes.done(popped, "scheduled", node=standing.decision.node)
            return True
        if standing is not None:
            if standing.successor is not None:
                self._outcomes.done(standing.successor, "error", message="the pod was popped again meanwhile")
            standing.successor = popped
            return True
        pod = self._view.pods.get((popped.namespace, popped.name))
        if pod is None or pod.uid != popped.uid or pod.deleting or pod.released:
            self._outcomes.done(popped, "error", message="the pod is gone", gone=True)
        elif pod.bound is not None:
            self._outcomes.done(popped, "scheduled", node=pod.bound.node)
        elif not self._placing.knows(popped.profile):
            self._outcomes.done(popped, "error", message=f"this scheduler has no profile {popped.profile!r}")
        else:
            return False
        return True
