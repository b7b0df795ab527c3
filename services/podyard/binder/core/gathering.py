"""Builds a batch from what waits, and takes one apart again that was not written."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from podyard.binder.core import judge, points
from podyard.binder.core.ahead import Ahead
from podyard.binder.core.batch import CAUSE_SIZE, MAX_BATCH, Batch, first_writes, subjects_of, too_many
from podyard.binder.core.effects import AskToBind
from podyard.binder.core.forced import Forced
from podyard.binder.core.held import HeldDecisions
from podyard.binder.core.inspection import Findings
from podyard.binder.core.intake import Intake, Open
from podyard.binder.core.judge import Accepted
from podyard.binder.core.releases import Releases
from podyard.binder.core.world import World
from podyard.cluster.changes import Change
from podyard.framework.extenders import REJECTOR, Extender
from podyard.framework.profile import Profile
from podyard.proto.binder_api import POSITION_WAIT_S, BindAnswer, BindRequest
from podyard.proto.placement import BoundPod

CAUSE_POSITION: Final = "position"
CAUSE_WITHDRAWN: Final = "withdrawn"
CAUSE_SET_ASIDE: Final = "set aside"
"""A binder raised on an earlier decision about the pod."""
CAUSE_OVERTAKEN: Final = "overtaken"
"""A later attempt for the same pod took the place of one that waited, or came while an extender was asked."""


class Gatherer:
    """Judges what waits, in order. What it accepts counts in the world at once."""

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
        self._profiles = profiles
        self._child_trace = child_trace
        self._extender = binding_extender
        self._set_aside = set_aside
        self.judging: Open | None = None
        """The decision that is being judged."""
        self._asked: dict[str, tuple[Open, BoundPod]] = {}
        """Decisions whose extender is asked, by uid; the room of their pods is kept."""
        self._ahead = Ahead()
        self._held = HeldDecisions()
        self.asks: list[AskToBind] = []
        """Extenders to be asked, for the core to take."""

    @property
    def urgent(self) -> bool:
        """Whether somebody waits for it: TTLs of tombstones are in no hurry."""
        return bool(self.waiting or len(self._forced) or self._releases.urgent)

    @property
    def has_work(self) -> bool:
        """Whether there is anything to write or to answer."""
        return bool(self.waiting or len(self._forced) or len(self._releases))

    @property
    def waiting(self) -> int:
        """Decisions to be judged, those included that wait for the view."""
        return len(self._intake) + len(self._ahead)

    @property
    def asked(self) -> int:
        """Decisions that wait for what an extender says."""
        return len(self._asked)

    @property
    def held(self) -> int:
        """Decisions of which a PreBind plugin waits."""
        return len(self._held)

    @property
    def next_deadline(self) -> float | None:
        """When the next wait of a PreBind plugin runs out."""
        return self._held.next_deadline

    def gather(self, now: float) -> Batch:
        """The next batch; empty if all that waits waits for the view."""
        batch = Batch()
        for bound in self._forced.take(MAX_BATCH):
            if batch.full:
                self._forced.retry([bound])
            elif batch.force(bound, now):
                self._world.hold(bound)
        self._judge_waiting(batch, now)
        batch.releases, batch.expiries = self._releases.ready(MAX_BATCH, now)
        return batch

    def take_apart(self, batch: Batch, found: Findings) -> None:
        """Nothing of it was written: all of it is judged again, refusals too, since accepted mates may be gone.

        :param found: what is not tried again
        """
        for bound in batch.bound:
            self._world.drop(bound.uid)
        for held, _ in batch.waiting:
            self._let_go(held.decision.uid)
        self._forced.retry(bound for bound in batch.forced if bound.uid not in found.bound_elsewhere)
        self._releases.retry(batch.releases, batch.expiries)
        settled = {id(held) for held, _ in found.answers}
        again = [held for held, _ in (*batch.accepted, *batch.refused, *batch.waiting) if id(held) not in settled]
        again.sort(key=lambda held: held.received_at)
        self._intake.put_back(again)

    # ---- judging -------------------------------------------------------------------------------------------------------------

    def _judge_waiting(self, batch: Batch, now: float) -> None:
        """Judge up to a batch of decisions, in order; mates that were accepted count, so no uid is twice in the batch (10164)."""
        later: list[Open] = []
        position = self._world.view.position
        self._intake.put_back(self._ahead.reached(position))
        judged = 0
        while judged < MAX_BATCH and len(self._intake):
            held = self._intake.pop()
            if held.decision.position > position:
                self._ahead.add(held)
            elif batch.full:
                later.append(held)
            else:
                judged += 1
                self.judging = held
                self._judge_one(held, batch, later, now)
        self.judging = None
        self._intake.put_back(later)
        batch.refused += [(held, self._too_late(held)) for held in self._ahead.received_before(now - POSITION_WAIT_S)]

    def _too_late(self, held: Open) -> BindAnswer:
        read = self._world.view.position
        return _error(
            held, CAUSE_POSITION, f"decided at position {held.decision.position}, the binder has read up to {read}"
        )

    def _judge_one(self, held: Open, batch: Batch, later: list[Open], now: float) -> None:
        if self._is_taken(held, batch, later):
            return
        if reason := self._set_aside((held.decision.uid,)):
            batch.refused.append((held, judge.refuse(held.decision, self._world, CAUSE_SET_ASIDE, reason)))
            return
        if held.standing is not None and not held.withdrawn and self._still_waits(held, batch, later, now):
            return
        skip = self._world.may_skip(held)
        held.next_state = held.state.clone()
        verdict = judge.judge(held.decision, self._world, self._profiles, self._child_trace, held.next_state, skip=skip)
        if isinstance(verdict, BindAnswer):
            batch.refused.append((held, verdict))
        elif held.withdrawn:
            batch.refused.append((held, _error(held, CAUSE_WITHDRAWN, "its scheduler wants it no more")))
        elif verdict.waits:
            self._hold(held, verdict, batch, later, now)
        elif self._binds_elsewhere(held, verdict):
            self._ask(held, verdict)
        elif verdict.writes and subjects_of(verdict.writes) & batch.touched:
            later.append(held)  # a mate writes the same object: judged again when that is durable
        else:
            fault = batch.accept(held, verdict, now)
            if fault:
                batch.refused.append((held, _error(held, CAUSE_SIZE, fault)))
            else:
                self._world.hold(verdict.bound, held.key)

    def _is_taken(self, held: Open, batch: Batch, later: list[Open]) -> bool:
        """Whether another attempt for this pod is in the way. The one that came last counts: who decided the other has given it up,
        or is dead, as far as the queue knows; if not, it is told.
        """
        uid = held.decision.uid
        if uid in self._asked:
            reason = f"an extender is asked for attempt {self._asked[uid][0].decision.attempt}"
            batch.refused.append((held, _error(held, CAUSE_OVERTAKEN, reason)))
            return True
        other = self._held.of(uid)
        if other is None:
            return False
        if any(mate is other for mate, _ in batch.waiting):
            later.append(held)
            return True
        self._let_go(uid)
        batch.refused.append((other, _error(other, CAUSE_OVERTAKEN, f"attempt {held.decision.attempt} came instead")))
        return False

    # ---- PreBind plugins that wait -------------------------------------------------------------------------------------------

    def follow(self, changes: Iterable[Change]) -> None:
        """The view changed: what waited for that is judged again, before all others."""
        self._judge_again(self._held.follow(changes))

    def written(self, batch: Batch) -> list[tuple[Open, BindAnswer]]:
        """What was to be written first is durable; returns who is to be told that it waits."""
        due: list[Open] = []
        told: list[tuple[Open, BindAnswer]] = []
        for held, accepted in batch.waiting:
            held.state = held.next_state
            if self._held.written(held):
                due.append(held)
            reasons = tuple(reason for wait in accepted.waits for reason in wait.reasons)
            told.append((held, judge.answer(held.decision, "waiting", accepted.waits[0].plugin, *reasons)))
        self._judge_again(due)
        return told

    def withdraw(self, request: BindRequest) -> None:
        """Decisions that wait and are wanted no more are judged again, to be refused."""
        for decision in request.decisions:
            if decision.withdrawn:
                held = self._held.of(decision.uid)
                if held is not None and held.withdrawn and self._held.withdraw(held):
                    self._judge_again([held])

    def expired(self, now: float) -> list[tuple[Open, BindAnswer]]:
        """Waits whose time is up, with their answers. Their room is free again."""
        found: list[tuple[Open, BindAnswer]] = []
        for held, wait in self._held.expired(now):
            self._world.unkeep(held.decision.uid)
            late = f"not done within {wait.timeout_s:g} s"
            found.append((held, _error(held, wait.plugin, *wait.reasons, late)))
        return found

    def _still_waits(self, held: Open, batch: Batch, later: list[Open], now: float) -> bool:
        """Ask only PreBind, as long as it waits: a Filter may well say no while a volume is made, which takes the room it needs.

        :return: False if the decision is to be judged in full
        """
        decision = held.decision
        pod = self._world.view.pods_by_uid.get(decision.uid)
        profile = self._profiles.get(decision.profile)
        if pod is None or profile is None or pod.deleting or pod.ended or pod.bound is not None:
            return False
        if decision.node not in self._world.table.row_of:
            return False
        snapshot = self._world.snapshot
        held.next_state = held.state.clone()
        prepared = points.prepare(profile, pod, snapshot, decision.node, decision.volumes, held.next_state)
        if not prepared.status.ok:
            batch.refused.append((held, judge.not_prepared(decision, prepared)))
            return True
        if not prepared.waits:
            return False
        bound = judge.as_bound(decision, pod, self._child_trace)
        self._hold(held, Accepted(bound, pod, waits=prepared.waits), batch, later, now)
        return True

    def _hold(self, held: Open, verdict: Accepted, batch: Batch, later: list[Open], now: float) -> None:
        writes = first_writes(verdict)
        if fault := too_many(writes):
            batch.refused.append((held, _error(held, CAUSE_SIZE, fault)))
            return
        if subjects_of(writes) & batch.touched:
            later.append(held)
            return
        for wait in verdict.waits:
            held.deadlines.setdefault(wait.plugin, now + wait.timeout_s)
        silent = held.standing is not None and not writes
        if silent:
            held.state = held.next_state
        else:
            batch.wait(held, verdict)
        self._world.keep(verdict.bound)
        self._held.hold(held, verdict.waits, written=silent)

    def _judge_again(self, due: Iterable[Open]) -> None:
        due = list(due)
        for held in due:
            self._let_go(held.decision.uid)
        self._intake.put_back(due)

    def _let_go(self, uid: str) -> None:
        self._held.drop(uid)
        self._world.unkeep(uid)

    # ---- an extender that binds ----------------------------------------------------------------------------------------------

    def answered(self, key: tuple[str, int], error: str) -> tuple[Open, BindAnswer] | None:
        """What the extender said. Without an error the decision is judged once more, before all others, and committed.

        :return: the decision and its answer if it has failed
        """
        uid = next((uid for uid, (held, _) in self._asked.items() if held.key == key), None)
        if uid is None:
            return None
        held, _ = self._asked.pop(uid)
        self._world.unkeep(uid)
        if not error:
            held.extender_bound = True
            self._intake.put_back([held])
            return None
        return held, _error(held, REJECTOR, error)

    def _binds_elsewhere(self, held: Open, verdict: Accepted) -> bool:
        return self._extender is not None and not held.extender_bound and self._extender.is_interested(verdict.pod)

    def _ask(self, held: Open, verdict: Accepted) -> None:
        """Source: schedule_one.go, extendersBinding."""
        assert self._extender is not None
        self._asked[held.decision.uid] = held, verdict.bound
        self._world.keep(verdict.bound)
        self.asks.append(AskToBind(held.key, self._extender.name, verdict.pod, verdict.bound.node))


def _error(held: Open, cause: str, *reasons: str) -> BindAnswer:
    return judge.answer(held.decision, "error", cause, *reasons)
