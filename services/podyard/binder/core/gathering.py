"""Builds a batch from the decisions that are to be judged, and takes one apart again that was not written."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from podyard.binder.core import node_takes_pod
from podyard.binder.core.ahead import Ahead
from podyard.binder.core.batch import CAUSE_SIZE, MAX_BATCH, Batch, first_writes
from podyard.binder.core.effects import AskToBind
from podyard.binder.core.forced import Forced
from podyard.binder.core.inspection import Findings
from podyard.binder.core.intake import Intake
from podyard.binder.core.node_takes_pod import Accepted
from podyard.binder.core.pending import Event, Pending, State
from podyard.binder.core.releases import Releases
from podyard.binder.core.verdicts import Asks, Later, Verdict, Verdicts, Waits, error
from podyard.binder.core.waiting import WaitingDecisions
from podyard.binder.core.world import World
from podyard.cluster.changes import Change
from podyard.framework.extenders import REJECTOR, Extender
from podyard.framework.profile import Profile
from podyard.proto.binder_api import POSITION_WAIT_S, BindAnswer, BindRequest
from podyard.proto.message import PodRef

CAUSE_POSITION: Final = "position"
CAUSE_OVERTAKEN: Final = "overtaken"
"""A later attempt for the same pod took the place of one that waited, or came while an extender was asked."""


class Gatherer:
    """Has decisions judged in their order, and does what the verdicts say. What is accepted counts in the
    world at once."""

    def __init__(
        self,
        world: World,
        intake: Intake,
        releases: Releases,
        forced: Forced,
        profiles: Mapping[str, Profile],
        child_trace: Callable[[str], str],
        binding_extender: Extender | None = None,
        set_aside: Callable[[Iterable[str]], str] = lambda ids: "",
    ) -> None:
        """
        :param binding_extender: the one that binds the pods that it is interested in
        :param set_aside: why no decision about one of these pods is judged; empty: it is
        """
        self._world = world
        self._intake = intake
        self._releases = releases
        self._forced = forced
        self._verdicts = Verdicts(world, profiles, child_trace, binding_extender, set_aside)
        self.judging: Pending | None = None
        """The decision that is being judged."""
        self._asked: dict[str, Pending] = {}
        """Decisions whose extender is asked, by uid; the room of their pods is kept."""
        self._ahead = Ahead()
        self._waiting = WaitingDecisions()
        self._later: list[Pending] = []
        """Decisions for the next batch, while one is built."""
        self.asks: list[AskToBind] = []
        """Extenders to be asked, for the core to take."""

    @property
    def urgent(self) -> bool:
        """Whether somebody waits for it: TTLs of tombstones are in no hurry."""
        return bool(self._intake.queue or self._ahead.entries or self._forced.ready or self._releases.urgent)

    @property
    def has_work(self) -> bool:
        """Whether there is anything to write or to answer."""
        return bool(self._intake.queue or self._ahead.entries or self._forced.ready or self._releases.read)

    @property
    def unjudged(self) -> int:
        """Decisions to be judged, those included that wait for the view."""
        return len(self._intake.queue) + len(self._ahead.entries)

    @property
    def asked(self) -> int:
        """Decisions that wait for what an extender says."""
        return len(self._asked)

    @property
    def waiting(self) -> int:
        """Decisions of which a PreBind plugin waits."""
        return len(self._waiting)

    @property
    def next_deadline(self) -> float | None:
        """When the next wait of a PreBind plugin runs out."""
        return self._waiting.next_deadline

    def gather(self, now: float) -> Batch:
        """The next batch; empty if all decisions are of positions that the view has not reached."""
        batch = Batch()
        for bound in self._forced.take(MAX_BATCH):
            if batch.full:
                self._forced.retry([bound])
            elif batch.force(bound, now):
                self._world.hold(bound)
        self._judge_all(batch, now)
        batch.releases, batch.expiries = self._releases.ready(MAX_BATCH, now)
        return batch

    def take_apart(self, batch: Batch, found: Findings) -> None:
        """Nothing of it was written: all of it is judged again, refusals too, since accepted mates may be
        gone.

        :param found: what is not tried again
        """
        for bound in batch.bound:
            self._world.drop(bound.uid)
        for pending, _ in batch.waiting:
            self._let_go(pending)
        self._forced.retry(bound for bound in batch.forced if bound.uid not in found.bound_elsewhere)
        self._releases.retry(batch.releases, batch.expiries)
        refused = {id(pending) for pending, _ in found.answers}
        again: list[Pending] = []
        for pending, _ in (*batch.accepted, *batch.refused, *batch.waiting):
            if id(pending) in refused:
                pending.happens(Event.REFUSE)
            else:
                again.append(pending)
        self._put_back(sorted(again, key=lambda pending: pending.received_at), Event.NOT_WRITTEN)

    # ---- judging -------------------------------------------------------------------------------------------

    def _judge_all(self, batch: Batch, now: float) -> None:
        """Judge up to a batch of decisions, in order; mates that were accepted count, so no uid is twice in
        the batch: the server refuses such a batch without saying why, NATS error 10164."""
        self._put_back(self._ahead.reached(self._world.view.position), Event.VIEW_HAS_REACHED)
        judged = 0
        while judged < MAX_BATCH and (pending := self._intake.pop()) is not None:
            if self._is_ahead(pending):
                pending.happens(Event.VIEW_IS_BEHIND)
                self._ahead.add(pending)
            elif batch.full:
                self._later.append(pending)
            else:
                judged += 1
                self.judging = pending
                verdict: Verdict | None = None
                if self._asked or len(self._waiting):
                    self._make_way(pending, batch)
                    verdict = self._in_the_way(pending)
                verdict = verdict or self._verdicts.on(pending, batch)
                if isinstance(verdict, Accepted):
                    self._bind(pending, verdict, batch, now)
                else:
                    self._act(pending, verdict, batch, now)
        self.judging = None
        later, self._later = self._later, []
        self._intake.put_back(later)
        for pending in self._ahead.received_before(now - POSITION_WAIT_S):
            self._refuse(pending, self._too_late(pending), batch)

    def _is_ahead(self, pending: Pending) -> bool:
        return pending.decision.position > self._world.view.position

    def _too_late(self, pending: Pending) -> BindAnswer:
        decided, read = pending.decision.position, self._world.view.position
        return error(pending, CAUSE_POSITION, f"decided at position {decided}, the binder has read up to {read}")

    def _make_way(self, pending: Pending, batch: Batch) -> None:
        """Another attempt for the pod that waits makes way. The one that came last counts: who decided the
        other has given it up, or is dead, as far as the queue knows; if not, it is told."""
        other = self._waiting.of(pending.decision.uid)
        if other is not None and other.state is State.WAITING:
            self._let_go(other)
            reason = f"attempt {pending.decision.attempt} came instead"
            self._refuse(other, error(other, CAUSE_OVERTAKEN, reason), batch)

    def _in_the_way(self, pending: Pending) -> Verdict | None:
        """The verdict if another attempt for the pod does not make way."""
        uid = pending.decision.uid
        asked = self._asked.get(uid)
        if asked is not None:
            return error(pending, CAUSE_OVERTAKEN, f"an extender is asked for attempt {asked.decision.attempt}")
        return None if self._waiting.of(uid) is None else Later.LATER

    # ---- doing what the verdicts say -----------------------------------------------------------------------

    def _act(self, pending: Pending, verdict: BindAnswer | Waits | Asks | Later, batch: Batch, now: float) -> None:
        if isinstance(verdict, BindAnswer):
            self._refuse(pending, verdict, batch)
        elif isinstance(verdict, Waits):
            self._wait(pending, verdict.accepted, batch, now)
        elif isinstance(verdict, Asks):
            self._ask(pending, verdict)
        else:
            self._later.append(pending)

    def _bind(self, pending: Pending, accepted: Accepted, batch: Batch, now: float) -> None:
        if fault := batch.accept(pending, accepted, now):
            self._refuse(pending, error(pending, CAUSE_SIZE, fault), batch)
            return
        pending.happens(Event.ACCEPT)
        self._world.hold(accepted.bound, pending.key)

    def _refuse(self, pending: Pending, answer: BindAnswer, batch: Batch) -> None:
        pending.happens(Event.REFUSE)
        batch.refused.append((pending, answer))

    def _wait(self, pending: Pending, accepted: Accepted, batch: Batch, now: float) -> None:
        for wait in accepted.waits:
            pending.deadlines.setdefault(wait.plugin, now + wait.timeout_s)
        if pending.standing is not None and not first_writes(accepted):
            pending.memory = accepted.memory
            pending.happens(Event.WAIT)
        else:
            batch.wait(pending, accepted)
            pending.happens(Event.WRITE_FIRST)
        self._world.keep(accepted.bound)
        self._waiting.add(pending, accepted.waits)

    def _ask(self, pending: Pending, verdict: Asks) -> None:
        pending.happens(Event.ASK)
        bound = verdict.accepted.bound
        self._asked[bound.uid] = pending
        self._world.keep(bound)
        pod = PodRef(namespace=bound.namespace, name=bound.name, uid=bound.uid)
        self.asks.append(AskToBind(pending.key, verdict.extender, pod, bound.node))

    def _put_back(self, decisions: Iterable[Pending], event: Event) -> None:
        """They are to be judged (again) before all others."""
        decisions = list(decisions)
        for pending in decisions:
            pending.happens(event)
        self._intake.put_back(decisions)

    def _judge_again(self, due: Iterable[Pending]) -> None:
        due = list(due)
        for pending in due:
            self._let_go(pending)
        self._put_back(due, Event.DUE)

    def _let_go(self, pending: Pending) -> None:
        self._waiting.drop(pending.decision.uid)
        self._world.unkeep(pending.decision.uid)

    # ---- what happens to decisions that wait ---------------------------------------------------------------

    def follow(self, changes: Iterable[Change]) -> None:
        """The view changed: what waited for that is judged again, before all others."""
        if due := self._waiting.follow(changes):
            self._judge_again(due)

    def written(self, batch: Batch) -> list[tuple[Pending, BindAnswer]]:
        """What was to be written first is durable; returns who is to be told that it waits."""
        due: list[Pending] = []
        told: list[tuple[Pending, BindAnswer]] = []
        for pending, accepted in batch.waiting:
            pending.memory = accepted.memory
            pending.happens(Event.DURABLE)
            if self._waiting.is_due(pending):
                due.append(pending)
            reasons = tuple(reason for wait in accepted.waits for reason in wait.reasons)
            waits = node_takes_pod.answer(pending.decision, "waiting", accepted.waits[0].plugin, *reasons)
            told.append((pending, waits))
        self._judge_again(due)
        return told

    def withdraw(self, request: BindRequest) -> None:
        """Decisions that wait and are wanted no more are judged again, to be refused."""
        for decision in request.decisions:
            if decision.withdrawn:
                pending = self._waiting.of(decision.uid)
                if pending is not None and pending.withdrawn and self._waiting.withdraw(pending):
                    self._judge_again([pending])

    def expired(self, now: float) -> list[tuple[Pending, BindAnswer]]:
        """Waits whose time is up, with their answers. Their room is free again."""
        found: list[tuple[Pending, BindAnswer]] = []
        for pending, wait in self._waiting.expired(now):
            self._world.unkeep(pending.decision.uid)
            pending.happens(Event.REFUSE)
            late = f"not done within {wait.timeout_s:g} s"
            found.append((pending, error(pending, wait.plugin, *wait.reasons, late)))
        return found

    def answered(self, key: tuple[str, int], why_not: str) -> tuple[Pending, BindAnswer] | None:
        """What the extender said. Without an error the decision is judged once more, before all others, and
        committed.

        :return: the decision and its answer if it has failed
        """
        uid = next((uid for uid, pending in self._asked.items() if pending.key == key), None)
        if uid is None:
            return None
        pending = self._asked.pop(uid)
        self._world.unkeep(uid)
        if why_not:
            pending.happens(Event.REFUSE)
            return pending, error(pending, REJECTOR, why_not)
        pending.extender_bound = True
        self._put_back([pending], Event.BOUND_BY_EXTENDER)
        return None
