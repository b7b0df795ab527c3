"""Builds a batch from what waits, and takes one apart again that was not written."""

from collections.abc import Callable, Mapping
from typing import Final

from podyard.binder.core import judge
from podyard.binder.core.batch import MAX_BATCH, Batch, subjects_of
from podyard.binder.core.effects import AskToBind
from podyard.binder.core.forced import Forced
from podyard.binder.core.inspection import Findings
from podyard.binder.core.intake import Intake, Open
from podyard.binder.core.judge import Accepted
from podyard.binder.core.releases import Releases
from podyard.binder.core.world import World
from podyard.framework.extenders import REJECTOR, Extender
from podyard.framework.profile import Profile
from podyard.proto.binder_api import BindAnswer
from podyard.proto.placement import BoundPod

POSITION_WAIT_S: Final = 5.0
"""How long a decision waits for the view to reach its position; a request's own time-out is no longer."""


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
    ) -> None:
        """:param binding_extender: the one that binds the pods that it is interested in"""
        self._world = world
        self._intake = intake
        self._releases = releases
        self._forced = forced
        self._profiles = profiles
        self._child_trace = child_trace
        self._extender = binding_extender
        self._asked: dict[tuple[str, int], tuple[Open, BoundPod]] = {}
        """Decisions whose extender is asked; their pods count in the world."""
        self.asks: list[AskToBind] = []
        """Extenders to be asked, for the core to take."""

    @property
    def urgent(self) -> bool:
        """Whether somebody waits for it: TTLs of tombstones are in no hurry."""
        return bool(len(self._intake) or len(self._forced) or self._releases.urgent)

    @property
    def has_work(self) -> bool:
        """Whether there is anything to write or to answer."""
        return bool(len(self._intake) or len(self._forced) or len(self._releases))

    def gather(self, now: float) -> Batch:
        """The next batch; empty if all that waits waits for the view."""
        batch = Batch()
        for bound in self._forced.take(MAX_BATCH):
            batch.force(bound, now)
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
        self._forced.retry(bound for bound in batch.forced if bound.uid not in found.bound_elsewhere)
        self._releases.retry(batch.releases, batch.expiries)
        settled = {id(held) for held, _ in found.answers}
        again = [held for held, _ in (*batch.accepted, *batch.refused) if id(held) not in settled]
        again.sort(key=lambda held: held.received_at)
        self._intake.put_back(again)

    def _judge_waiting(self, batch: Batch, now: float) -> None:
        """Judge up to a batch of decisions, in order; mates that were accepted count, so no uid is twice in the batch (10164)."""
        later: list[Open] = []
        position = self._world.view.position
        judged = 0
        while judged < MAX_BATCH and len(self._intake):
            held = self._intake.pop()
            if held.decision.position > position:
                self._wait_or_give_up(held, batch, later, now)
            elif batch.full:
                later.append(held)
            else:
                judged += 1
                self._judge_one(held, batch, later, now)
        self._intake.put_back(later)

    def _judge_one(self, held: Open, batch: Batch, later: list[Open], now: float) -> None:
        verdict = judge.judge(held.decision, self._world, self._profiles, self._child_trace)
        if isinstance(verdict, BindAnswer):
            batch.refused.append((held, verdict))
        elif self._binds_elsewhere(held, verdict):
            self._ask(held, verdict)
        elif verdict.writes and subjects_of(verdict.writes) & batch.touched:
            later.append(held)  # a mate writes the same object: judged again when that is durable
        else:
            batch.accept(held, verdict, now)
            self._world.hold(verdict.bound)

    @property
    def asked(self) -> int:
        """Decisions that wait for what an extender says."""
        return len(self._asked)

    def answered(self, key: tuple[str, int], error: str) -> tuple[Open, BindAnswer] | None:
        """What the extender said. Without an error the decision is judged once more, before all others, and committed.

        :return: the decision and its answer if it has failed
        """
        found = self._asked.pop(key, None)
        if found is None:
            return None
        held, bound = found
        self._world.drop(bound.uid)
        if not error:
            held.extender_bound = True
            self._intake.put_back([held])
            return None
        decision = held.decision
        return held, BindAnswer(
            attempt=decision.attempt, uid=decision.uid, result="error", cause=REJECTOR, reasons=(error,)
        )

    def _binds_elsewhere(self, held: Open, verdict: Accepted) -> bool:
        return self._extender is not None and not held.extender_bound and self._extender.is_interested(verdict.pod)

    def _ask(self, held: Open, verdict: Accepted) -> None:
        """Source: schedule_one.go, extendersBinding."""
        assert self._extender is not None
        self._asked[held.key] = held, verdict.bound
        self._world.hold(verdict.bound)
        self.asks.append(AskToBind(held.key, self._extender.name, verdict.pod, verdict.bound.node))

    def _wait_or_give_up(self, held: Open, batch: Batch, later: list[Open], now: float) -> None:
        decision = held.decision
        if now < held.received_at + POSITION_WAIT_S:
            later.append(held)
            return
        reason = f"decided at position {decision.position}, the binder has read up to {self._world.view.position}"
        answer = BindAnswer(
            attempt=decision.attempt, uid=decision.uid, result="error", cause="position", reasons=(reason,)
        )
        batch.refused.append((held, answer))
