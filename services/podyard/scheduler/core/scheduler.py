"""The scheduler's core: pops, the cluster's changes and the binder's answers come in, effects go out."""

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from random import Random
from typing import NamedTuple

import msgspec

from podyard.cluster.changes import Change
from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework.extenders import Answers, Calls, Extender
from podyard.framework.profile import Profile
from podyard.proto import subjects
from podyard.proto.binder_api import POSITION_WAIT_S
from podyard.proto.queue_api import PoppedPod, PopReply
from podyard.scheduler.core.asking_again import AskingAgain
from podyard.scheduler.core.clearing import Clearing
from podyard.scheduler.core.effects import AskExtenders, AwaitPosition, Effect, PluginFailed
from podyard.scheduler.core.messages import (
    BindAnswered,
    Changed,
    ExtendersAnswered,
    Listed,
    Message,
    Popped,
    SessionStarted,
    Work,
)
from podyard.scheduler.core.outcomes import Outcomes
from podyard.scheduler.core.placing import Attempted, Placing, View
from podyard.scheduler.core.requests import Requests
from podyard.scheduler.core.settling import Retry, Settling


class Batch(msgspec.Struct, gc=False):
    """Pods of one pop answer that were not looked at yet; the view must have reached `position` first, and not later than `due_at`."""

    position: int
    pods: deque[PoppedPod]
    due_at: float


class Asking(NamedTuple):
    """A cycle that waits for what extenders say."""

    steps: Generator[Calls, Answers, Attempted]
    popped: PoppedPod
    pod: PodView
    retry: Retry | None


class Scheduler:
    """`step` takes a message and returns effects. All state may be lost at any time: the queue hands the pods out again."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        view: View,
        session: str,
        *,
        stopwatch: Callable[[], float] = lambda: 0.0,
        extenders: Sequence[Extender] = (),
    ) -> None:
        """
        :param view: read live; every change of it must come as `Changed` before the next `Work`
        :param session: unique to this start of the process
        :param stopwatch: seconds of a monotonic clock, for durations in records and spans
        :param extenders: HTTP extenders in calling order
        """
        self._view = view
        self._outcomes = Outcomes()
        self._placing = Placing(profiles, view, stopwatch=stopwatch, random=Random(session), extenders=extenders)
        digests = {name: profile.digest for name, profile in profiles.items()}
        self._asking_again = AskingAgain(self._placing.assumptions, self._outcomes, digests)
        self._settling = Settling(self._placing, view, self._outcomes, self._asking_again)
        self._requests = Requests(self._placing.assumptions, self._outcomes, digests, session)
        self._clearing = Clearing(self._placing, self._settling, self._requests, self._asking_again)
        self._session = session
        self._epoch = 0
        self._batches: deque[Batch] = deque()
        self.backlog = 0
        """Popped pods that were not looked at yet."""
        self._asking: Asking | None = None
        self.attempting: PoppedPod | None = None
        """Whose cycle runs within this step."""
        self._asked = 0
        """Number of the last question to extenders."""
        self._held: list[Changed | BindAnswered | Listed] = []
        """What came while extenders are asked: nothing may change within a cycle."""

    # ---- what the shell may ask ----------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> NodeTable:
        """What extenders are told of nodes; only to be read, and only while they are asked."""
        return self._placing.table

    @property
    def unanswered(self) -> int:
        """Decided pods whose binding is not known yet, but those that wait in the binder."""
        return len(self._placing.assumptions) - self.held

    @property
    def held(self) -> int:
        """Decided pods that wait in the binder."""
        return len(self._placing.assumptions.held())

    def held_attempts(self) -> tuple[str, ...]:
        """Their attempts: for the queue, which waits for their bindings."""
        return tuple(one.popped.attempt for one in self._placing.assumptions.held())

    @property
    def ready(self) -> bool:
        """Whether `Work` has something to do now; waits at Permit apart."""
        if self._asking is not None:
            return False
        position = self._view.position
        return bool(
            (self._batches and self._batches[0].position <= position)
            or self._settling.successors
            or self._placing.waiting.has_settled
            or any(retry.position <= position for retry in self._settling.retries)
        )

    @property
    def next_deadline(self) -> float | None:
        """When `Work` is to be done because of the time, on the clock of `now`: a wait at Permit runs out, or the binder is to be asked
        again, or the view has not got as far as it should. `None`: no pod waits, or an extender's answer comes before all that."""
        if self._asking is not None:
            return None
        deadlines = self._placing.waiting.next_deadline(), self._asking_again.deadline(), self._late_at()
        return min((one for one in deadlines if one is not None), default=None)

    def is_unsettled(self, uid: str) -> bool:
        """Whether a pod is counted on a node, and neither its binding nor its end is known."""
        return self._placing.assumptions.get(uid) is not None

    def open_attempts(self) -> tuple[str, ...]:
        """Attempts of this session that have no result yet."""
        waiting = self._placing.waiting
        found = [pod.attempt for batch in self._batches for pod in batch.pods]
        found += [pod.attempt for pod in self._settling.successors]
        if self._asking is not None:
            found.append(self._asking.popped.attempt)
        for assumption in self._placing.assumptions:
            if assumption.popped.uid in waiting:
                found.append(assumption.popped.attempt)
            if assumption.successor is not None:
                found.append(assumption.successor.attempt)
        return tuple(found)

    def step(self, message: Message, now: float) -> list[Effect]:
        """
        :param now: seconds since 1970, UTC
        :return: what is to be done, in this order
        """
        if self._asking is not None and isinstance(message, Changed | BindAnswered | Listed):
            self._held.append(message)
        else:
            self._take(message, now)
        for fault in self._placing.cluster.take_faults():
            self._outcomes.add(PluginFailed(fault.plugin, fault.point, fault.detail))
        return self._outcomes.take()

    def _take(self, message: Message, now: float) -> None:
        match message:
            case Changed():
                self._follow(message.changes)
            case Work():
                self._work(message.limit, now)
            case BindAnswered():
                for answer in message.reply.answers:
                    self._settling.answered(answer, message.reply.position, self._session, now)
            case ExtendersAnswered():
                self._answered(message, now)
            case Popped():
                self._popped(message.reply, now)
            case Listed():
                self._settling.listed()
            case SessionStarted():
                self._restart(message.session, now)

    # ---- the queue -----------------------------------------------------------------------------------------------------------

    def _popped(self, reply: PopReply, now: float) -> None:
        if reply.epoch < self._epoch or not reply.pods:
            return
        if reply.epoch > self._epoch:
            # a new leader hands out again what the old one had handed out: only the new attempts count
            self._epoch = reply.epoch
            self._forget_pops(now)
        self._batches.append(Batch(reply.position, deque(reply.pods), now + POSITION_WAIT_S))
        self.backlog += len(reply.pods)
        if reply.position > self._view.position:
            self._outcomes.add(AwaitPosition(reply.position))

    def _restart(self, session: str, now: float) -> None:
        """The queue took the old session for dead, and back all that had no result. What the binder was asked is still awaited."""
        self._session = self._requests.session = session
        self._forget_pops(now)
        for uid in self._placing.waiting.unsettled():
            self._placing.forget(uid)
        self._placing.assumptions.restart_numbers()
        self._placing.nominations.forget(self._view.pods)

    def _forget_pops(self, now: float) -> None:
        if self._asking is not None:
            self._asking.steps.close()
            self._asking = None
            self._catch_up(now)
        self._batches.clear()
        self.backlog = 0
        self._settling.retries.clear()
        self._settling.successors.clear()

    # ---- the cluster ---------------------------------------------------------------------------------------------------------

    def _follow(self, changes: Sequence[Change]) -> None:
        placing = self._placing
        for change in changes:
            placing.table.apply(change)
            placing.nominations.apply(change)
            if change.resource != subjects.PODS or not len(placing.assumptions):
                continue
            if change.new is not None and change.new.bound is not None:
                self._settling.seen(change.uid, change.new.bound)
                if change.uid in placing.waiting:
                    self._settling.bound_by_others(change.uid, change.new.bound.node)
            elif change.new is None and change.uid in placing.waiting:
                self._settling.give_up(change.uid, "error", "the pod is gone")

    def _catch_up(self, now: float) -> None:
        held, self._held = self._held, []
        for message in held:
            self._take(message, now)

    # ---- work ----------------------------------------------------------------------------------------------------------------

    def _work(self, limit: int, now: float) -> None:
        if self._asking is not None:
            return
        self._settle_permits(now)
        self._give_up_late(now)
        position, settling = self._view.position, self._settling
        while limit > 0 and settling.successors and self._asking is None:
            self._attempt(settling.successors.pop(0), now)
            limit -= 1
        due = deque(retry for retry in settling.retries if retry.position <= position)
        while limit > 0 and due and self._asking is None:
            retry = due.popleft()
            settling.retries.remove(retry)
            self._attempt(retry.popped, now, retry)
            limit -= 1
        while limit > 0 and self._asking is None and self._batches and self._batches[0].position <= position:
            pods = self._batches[0].pods
            self._attempt(pods.popleft(), now)
            limit -= 1
            self.backlog -= 1
            if not pods:
                self._batches.popleft()
        self._requests.flush()
        self._asking_again.run(now)

    def _late_at(self) -> float | None:
        """When the first of those that wait for a position is given up."""
        position = self._view.position
        waiting: list[Batch | Retry] = [*self._batches, *self._settling.retries]
        return min((one.due_at for one in waiting if one.position > position), default=None)

    def _give_up_late(self, now: float) -> None:
        """Let others try the pods whose position the view does not reach: it may be of a stream that was made again since.

        To decide by an older view would be wrong: the queue takes it that everything up to the position was known.
        """
        position = self._view.position
        reason = "decided nothing: the scheduler has read up to {}, the position is {}"
        for batch in [one for one in self._batches if one.position > position and one.due_at <= now]:
            self._batches.remove(batch)
            self.backlog -= len(batch.pods)
            for popped in batch.pods:
                self._outcomes.done(popped, "error", message=reason.format(position, batch.position))
        retries = self._settling.retries
        for retry in [one for one in retries if one.position > position and one.due_at <= now]:
            retries.remove(retry)
            self._outcomes.done(retry.popped, "bind_error", message=reason.format(position, retry.position))

    def _settle_permits(self, now: float) -> None:
        for settled in self._placing.waiting.settle(now):
            assumption = self._placing.assumptions.get(settled.uid)
            if not settled.status.ok:
                self._settling.refused_at_permit(settled)
            elif assumption is not None:
                self._outcomes.decided(assumption)
                self._requests.add_late(assumption)
        self._requests.flush()

    def _attempt(self, popped: PoppedPod, now: float, retry: Retry | None = None) -> None:
        self.attempting = popped
        if not self._answer_at_once(popped):
            self._begin(popped, now, retry)
        self.attempting = None

    def _begin(self, popped: PoppedPod, now: float, retry: Retry | None) -> None:
        self._requests.begin()
        pod = self._placing.nominations.joined(self._view.pods[popped.namespace, popped.name])
        tries = 0 if retry is None else retry.tries
        steps = self._placing.attempt(popped, pod, tries=tries, session=self._session, now=now)
        self._advance(Asking(steps, popped, pod, retry), None, now)

    def _answered(self, message: ExtendersAnswered, now: float) -> None:
        asking = self._asking
        if asking is None or message.number != self._asked:
            return
        self._asking = None
        self.attempting = asking.popped
        self._requests.begin()
        self._advance(asking, message.answers, now)
        self._requests.flush()
        self.attempting = None
        if self._asking is None:
            self._catch_up(now)

    def _advance(self, asking: Asking, answers: Answers | None, now: float) -> None:
        """Go on with a cycle until its end, or until extenders are to be asked."""
        try:
            calls = next(asking.steps) if answers is None else asking.steps.send(answers)
        except StopIteration as end:
            self._made(asking.popped, asking.pod, asking.retry, end.value, now)
            return
        self._asking = asking
        self._asked += 1
        self._outcomes.add(AskExtenders(self._asked, calls))

    def _made(self, popped: PoppedPod, pod: PodView, retry: Retry | None, made: Attempted, now: float) -> None:
        """A cycle has ended."""
        if made.assumption is not None:
            if made.result.waits:
                self._placing.waiting.wait(popped.uid, made.result.waits, now)
                self._requests.note(made.assumption)
                self._requests.flush()  # later decisions count on this pod: their request must name its number as outstanding
            else:
                self._outcomes.decided(made.assumption)
                self._requests.add(made.assumption.decision)
        elif retry is None:
            self._failed(popped, pod, made, now)
        else:
            # the queue believes the pod scheduled since the first decision: from there it can only go to backoff (PITFALLS 3)
            why = f"{retry.why}; then {made.result.message}"
            self._outcomes.bind_error(popped, made.span, why, assumed=made.given_up, sent=False)

    def _failed(self, popped: PoppedPod, pod: PodView, made: Attempted, now: float) -> None:
        """No node, now; maybe others make room. A nomination counts from here on, and ends from here on (PITFALLS 33)."""
        node = made.result.nominated_node
        if node is not None:
            self._placing.nominations.decide(pod, node)
        if node and made.result.victims:
            self._outcomes.preempts(
                popped, made, self._clearing.clear(pod, node, made.result.victims, now), self._session
            )
        else:
            self._outcomes.failed(popped, made)

    def _answer_at_once(self, popped: PoppedPod) -> bool:
        """Attempts that need no cycle: the pod is unanswered from an older attempt, gone, or bound."""
        standing = self._placing.assumptions.get(popped.uid)
        if standing is not None and standing.answered:
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
