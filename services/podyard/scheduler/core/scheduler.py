"""The scheduler's core: pops, the cluster's changes and the binder's answers come in, effects go out."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from random import Random

from podyard.cluster.changes import Change
from podyard.cluster.comparing import Books
from podyard.cluster.dumping import NodesDump, WaitingDump
from podyard.cluster.node_table import NodeTable
from podyard.framework.extenders import Extender
from podyard.framework.profile import Profile
from podyard.proto import subjects
from podyard.proto.queue_api import PoppedPod, PopReply
from podyard.scheduler.core import holding
from podyard.scheduler.core.asking_again import AskingAgain
from podyard.scheduler.core.assumptions import Phase
from podyard.scheduler.core.attempts import Attempts
from podyard.scheduler.core.backlog import Backlog
from podyard.scheduler.core.clearing import Clearing
from podyard.scheduler.core.effects import AwaitPosition, Effect, PluginFailed
from podyard.scheduler.core.measured import ERROR, Measured
from podyard.scheduler.core.messages import (
    BindAnswered,
    Changed,
    ExtendersAnswered,
    Listed,
    Message,
    Popped,
    SessionStarted,
    Work,
    Would,
)
from podyard.scheduler.core.outcomes import Outcomes
from podyard.scheduler.core.placing import Placing, View
from podyard.scheduler.core.rehearsals import Rehearsals
from podyard.scheduler.core.requests import Requests
from podyard.scheduler.core.settling import Settling


class Scheduler:
    """`step` takes a message and returns effects. All state may be lost at any time: the queue hands the pods
    out again."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        view: View,
        session: str,
        *,
        stopwatch: Callable[[], float] = lambda: 0.0,
        extenders: Sequence[Extender] = (),
        detailed: bool = False,
    ) -> None:
        """
        :param view: read live; every change of it must come as `Changed` before the next `Work`
        :param session: unique to this start of the process
        :param stopwatch: seconds of a monotonic clock, for durations in records and spans
        :param extenders: HTTP extenders in calling order
        :param detailed: spans of cycles tell of each call of a plugin
        """
        self._view = view
        self._outcomes = Outcomes()
        self._placing = Placing(
            profiles, view, stopwatch=stopwatch, random=Random(session), extenders=extenders, detailed=detailed
        )
        digests = {name: profile.digest for name, profile in profiles.items()}
        self._asking_again = AskingAgain(self._placing.assumptions, self._outcomes, digests)
        self._settling = Settling(self._placing, view, self._outcomes, self._asking_again)
        self._requests = Requests(self._placing.assumptions, self._outcomes, digests, session)
        clearing = Clearing(self._placing, self._settling, self._requests, self._asking_again)
        self._attempts = Attempts(self._placing, view, self._requests, clearing, self._outcomes)
        self._rehearsals = Rehearsals(self._placing, view, self._requests, self._outcomes, stopwatch)
        self._epoch = 0
        self._backlog = Backlog()
        self._deferred: list[Changed | BindAnswered | Listed] = []
        """What came while extenders are asked: nothing may change within a cycle."""

    def close(self) -> None:
        """The term ends: what extenders say is for nobody any more."""
        self._attempts.close()
        self._rehearsals.close()

    # ---- what the shell may ask ----------------------------------------------------------------------------

    @property
    def nodes(self) -> NodeTable:
        """What extenders are told of nodes; only to be read, and only while they are asked."""
        return self._placing.table

    @property
    def attempting(self) -> PoppedPod | None:
        """Whose cycle runs within this step."""
        return self._attempts.running

    @property
    def rehearsing(self) -> int | None:
        """The ticket of the question that is rehearsed within this step."""
        return self._rehearsals.running

    @property
    def _stands_still(self) -> bool:
        """Extenders are asked: nothing may change until they have answered."""
        return self._attempts.asking is not None or self._rehearsals.asks

    @property
    def backlog(self) -> int:
        """Popped pods that were not looked at yet."""
        return len(self._backlog)

    @property
    def unanswered(self) -> int:
        """Decided pods whose binding is not known yet, but those that wait in the binder."""
        return len(self._placing.assumptions) - self.waiting

    @property
    def waiting(self) -> int:
        """Decided pods that wait in the binder."""
        return len(self._placing.assumptions.waiting())

    def waiting_attempts(self) -> tuple[str, ...]:
        """Their attempts: for the queue, which waits for their bindings."""
        return tuple(one.popped.attempt for one in self._placing.assumptions.waiting())

    def cache_sizes(self) -> dict[tuple[str, ...], int]:
        """How many nodes, placed pods (assumed ones are), and assumed pods there are. Any thread may ask."""
        table = self._placing.table
        return {
            ("nodes",): len(table),
            ("pods",): len(table.all_placed),
            ("assumed_pods",): len(self._placing.assumptions),
        }

    @property
    def measured(self) -> int:
        """How much is measured that nobody has taken yet."""
        return self._placing.measuring.held

    def take_measured(self) -> Measured | None:
        """What was measured since last asked; None: nothing."""
        return self._placing.measuring.take()

    @property
    def ready(self) -> bool:
        """Whether `Work` has something to do now; waits at Permit apart."""
        if self._stands_still:
            return False
        position = self._view.position
        return bool(
            self._backlog.is_ready(position)
            or self._settling.successors
            or self._placing.permits.has_settled
            or any(retry.position <= position for retry in self._settling.retries)
        )

    @property
    def wake_at(self) -> float | None:
        """When `Work` is due because of the time, on the clock of `now`; None: only a message brings work.

        A wait at Permit runs out, the binder is to be asked again, or a position was awaited long enough.
        While extenders are asked nothing is due.
        """
        if self._stands_still:
            return None
        deadlines = self._placing.permits.next_deadline(), self._asking_again.deadline(), self._late_at()
        return min((one for one in deadlines if one is not None), default=None)

    def held_pods(self, most: int) -> WaitingDump:
        """Pods that were popped and are not settled; at most so many are shown."""
        return holding.waiting(self._backlog, self._settling, self._placing, self._attempts.asking, most)

    def held_nodes(self, most: int, most_pods: int) -> NodesDump:
        """The nodes as they are counted; at most so many are shown, with so many pods each."""
        return holding.nodes(self._placing, self._view.position, most, most_pods)

    def books(self) -> Books | None:
        """What is counted on nodes; None while extenders are asked: the table stands still, the view goes
        on."""
        return None if self._stands_still else holding.counted(self._placing)

    def is_unsettled(self, uid: str) -> bool:
        """Whether a pod is counted on a node, and neither its binding nor its end is known."""
        return self._placing.assumptions.get(uid) is not None

    def open_attempts(self) -> tuple[str, ...]:
        """Attempts of this session that have no result yet."""
        found = self._backlog.attempts()
        found += [pod.attempt for pod in self._settling.successors]
        if self._attempts.asking is not None:
            found.append(self._attempts.asking.attempt)
        for assumption in self._placing.assumptions:
            if assumption.phase is Phase.AT_PERMIT:
                found.append(assumption.popped.attempt)
            if assumption.successor is not None:
                found.append(assumption.successor.attempt)
        return tuple(found)

    def step(self, message: Message, now: float) -> list[Effect]:
        """
        :param now: seconds since 1970, UTC
        :return: what is to be done, in this order
        """
        if isinstance(message, Changed | BindAnswered | Listed) and self._stands_still:
            self._deferred.append(message)
        else:
            self._take(message, now)
        if self._rehearsals.waiting and not self._stands_still:
            self._rehearsals.run()
        for fault in self._placing.cluster.take_faults():
            self._outcomes.add(PluginFailed(fault.plugin, fault.point, fault.detail))
        return self._outcomes.take()

    def _take(self, message: Message, now: float) -> None:
        match message:
            case Changed():
                self._follow(message.changes, now)
            case Work():
                self._work(message.limit, now)
            case BindAnswered():
                for answer in message.reply.answers:
                    self._settling.answered(answer, message.reply.position, self._requests.session, now)
            case ExtendersAnswered():
                self._answered(message, now)
            case Popped():
                self._popped(message.reply, now)
            case Listed():
                self._settling.listed()
            case SessionStarted():
                self._restart(message.session, now)
            case Would():
                self._rehearsals.put(message)

    def _answered(self, message: ExtendersAnswered, now: float) -> None:
        if self._rehearsals.asks:
            self._rehearsals.answered(message.ticket, message.answers)
        else:
            self._attempts.answered(message.ticket, message.answers, now)
        if not self._stands_still:
            self._catch_up(now)

    # ---- the queue -----------------------------------------------------------------------------------------

    def _popped(self, reply: PopReply, now: float) -> None:
        if reply.epoch < self._epoch or not reply.pods:
            return
        if reply.epoch > self._epoch:
            # a new leader hands out again what the old one had handed out: only the new attempts count
            self._epoch = reply.epoch
            self._forget_pops(now)
        self._backlog.add(reply, now)
        if reply.position > self._view.position:
            self._outcomes.add(AwaitPosition(reply.position))

    def _restart(self, session: str, now: float) -> None:
        """The queue took the old session for dead, and back all that had no result. What the binder was asked
        is still awaited."""
        self._requests.session = session
        if self._rehearsals.give_up():
            self._catch_up(now)
        self._forget_pops(now)
        for uid in self._placing.permits.unsettled():
            self._placing.forget(uid)
        self._placing.assumptions.restart_numbers()
        self._placing.nominations.forget(self._view.pods)

    def _forget_pops(self, now: float) -> None:
        if self._attempts.asking is not None:
            self._attempts.close()
            self._catch_up(now)
        self._backlog.clear()
        self._settling.retries.clear()
        self._settling.successors.clear()

    # ---- the cluster ---------------------------------------------------------------------------------------

    def _follow(self, changes: Sequence[Change], now: float) -> None:
        placing = self._placing
        for change in changes:
            placing.table.apply(change)
            placing.nominations.apply(change)
            assumption = placing.assumptions.get(change.uid) if change.resource == subjects.PODS else None
            if assumption is None:
                continue
            if change.new is not None and change.new.bound is not None:
                self._settling.seen(assumption, change.new.bound, now)
            elif change.new is None and assumption.phase is Phase.AT_PERMIT:
                self._settling.give_up(change.uid, "error", "the pod is gone", now)

    def _catch_up(self, now: float) -> None:
        deferred, self._deferred = self._deferred, []
        for message in deferred:
            self._take(message, now)

    # ---- work ----------------------------------------------------------------------------------------------

    def _work(self, limit: int, now: float) -> None:
        attempts, settling, position = self._attempts, self._settling, self._view.position
        if self._stands_still:
            return
        self._settle_permits(now)
        self._give_up_late(now)
        while limit > 0 and settling.successors and attempts.asking is None:
            attempts.run(settling.successors.pop(0), now)
            limit -= 1
        due = deque(retry for retry in settling.retries if retry.position <= position)
        while limit > 0 and due and attempts.asking is None:
            retry = due.popleft()
            settling.retries.remove(retry)
            attempts.run(retry.popped, now, retry)
            limit -= 1
        while limit > 0 and attempts.asking is None:
            popped = self._backlog.take(position)
            if popped is None:
                break
            attempts.run(popped, now)
            limit -= 1
        self._requests.flush()
        self._asking_again.run(now)

    def _late_at(self) -> float | None:
        """When the first of those that wait for a position is given up."""
        position = self._view.position
        retries = (retry.due_at for retry in self._settling.retries if retry.position > position)
        return min((*self._backlog.deadlines(position), *retries), default=None)

    def _give_up_late(self, now: float) -> None:
        """Let others try pods whose position the view does not reach: the stream may have been made again.

        To decide by an older view would be wrong: the queue takes it that everything up to the position was
        known.
        """
        position = self._view.position
        reason = "decided nothing: the scheduler has read up to {}, the position is {}"
        for batch in self._backlog.take_late(position, now):
            for popped in batch.pods:
                self._outcomes.done(popped, "error", message=reason.format(position, batch.position))
        retries = self._settling.retries
        for retry in [one for one in retries if one.position > position and one.due_at <= now]:
            retries.remove(retry)
            self._outcomes.done(retry.popped, "bindError", message=reason.format(position, retry.position))
            self._placing.measuring.attempt(ERROR, retry.popped, retry.started, now, "")

    def _settle_permits(self, now: float) -> None:
        for settled in self._placing.permits.settle(now):
            assumption = self._placing.assumptions.get(settled.uid)
            self._placing.measuring.permit_wait(settled.status.code.label, settled.waited_s)
            if not settled.status.ok:
                self._settling.refused_at_permit(settled, now)
            elif assumption is not None:
                self._placing.assumptions.permitted(assumption)
                self._outcomes.decided(assumption)
                self._requests.add_late(assumption)
        self._requests.flush()
