"""Decisions that wait in the binder (answered `waiting`) are asked about until they have another answer.

So nothing is lost by the end of a binder, which keeps waits in memory only: the next one learns of them here.
A request that asks again names the numbers of its decisions as outstanding. None of them is placed in the
binder as long as it waits, so the binder judges each of them in full, whatever the scheduler has assumed or
dropped since it was decided.

That a binding came is usually seen in the view first: the answer is needed for refusals, which may come a
little later.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Final

import msgspec

from podyard.proto.binder_api import BindRequest, NumberRange
from podyard.proto.streams import MAX_BATCH
from podyard.scheduler.core.assumptions import Assumption, Assumptions, Phase
from podyard.scheduler.core.effects import Bind
from podyard.scheduler.core.outcomes import Outcomes

PAUSE_S: Final = 1.0
"""Between two requests of up to 256 decisions, those first that were asked about longest ago. As often as the
reference looks whether volumes are bound (volumebinding/binder.go, BindPodVolumes)."""


class AskingAgain:
    """Invariant: a decision is in one request at a time, so a binder that is away lets nothing pile up."""

    def __init__(self, assumptions: Assumptions, outcomes: Outcomes, digests: Mapping[str, str]) -> None:
        self._assumptions = assumptions
        self._outcomes = outcomes
        self._digests = dict(digests)
        self._next_at = 0.0

    def deadline(self) -> float | None:
        """When to ask next; `None`: there is nothing to be asked."""
        return self._next_at if any(one.phase is Phase.WAITING for one in self._assumptions.waiting()) else None

    def wait(self, assumption: Assumption, now: float) -> None:
        """The binder says that a decision waits."""
        self._assumptions.waits(assumption)
        if assumption.withdrawn:
            self._next_at = now
        elif self._next_at <= now:
            self._next_at = now + PAUSE_S

    def withdraw(self, assumption: Assumption, now: float) -> None:
        """A decision that waits is wanted no more. The binder is asked to refuse it; it may have bound by
        now."""
        self._assumptions.withdraw(assumption)
        self._next_at = now

    def run(self, now: float) -> None:
        """Ask, if it is time."""
        if now < self._next_at:
            return
        candidates = [one for one in self._assumptions.waiting() if one.phase is Phase.WAITING]
        if not candidates:
            return
        self._next_at = now + PAUSE_S
        session = candidates[0].session
        chosen = list(islice((one for one in candidates if one.session == session), MAX_BATCH))
        for one in chosen:
            self._assumptions.ask_again(one)
        chosen.sort(key=lambda one: one.decision.number)
        request = BindRequest(
            session=session,
            digest=self._digests,
            outstanding=tuple(NumberRange(first=one.decision.number, last=one.decision.number) for one in chosen),
            decisions=tuple(
                msgspec.structs.replace(one.decision, withdrawn=True) if one.withdrawn else one.decision
                for one in chosen
            ),
        )
        self._outcomes.add(Bind(request))
