"""Decisions on their way to the binder: gathered into requests, each with the numbers that it counts on."""

from collections.abc import Mapping

from podyard.proto.binder_api import BindRequest, Decision, NumberRange
from podyard.proto.streams import MAX_BATCH
from podyard.scheduler.core.assumptions import Assumption, Assumptions
from podyard.scheduler.core.effects import Bind
from podyard.scheduler.core.outcomes import Outcomes


class Requests:
    """The request that is being gathered.

    Invariant: each decision counts on `outstanding` and on the decisions before it in the same request, and
    on nothing else.
    """

    def __init__(self, assumptions: Assumptions, outcomes: Outcomes, digests: Mapping[str, str], session: str) -> None:
        self._assumptions = assumptions
        self._outcomes = outcomes
        self._digests = dict(digests)
        self.session = session
        self._decisions: list[Decision] = []
        self._outstanding: tuple[NumberRange, ...] = ()

    def begin(self) -> None:
        """A pod is about to be decided: what is assumed by now it counts on."""
        if not self._decisions:
            self._outstanding = self._assumptions.outstanding()

    def add(self, decision: Decision) -> None:
        """The next decision."""
        self._decisions.append(decision)
        if len(self._decisions) == MAX_BATCH:
            self.flush()

    def note(self, assumption: Assumption) -> None:
        """It waits at Permit. What was assumed when it was decided it counts on, whatever becomes of that
        until it is sent."""
        assumption.counted_on = self._assumptions.outstanding(but=assumption.decision.number)

    def add_late(self, assumption: Assumption) -> None:
        """A decision that was made long ago, and noted then."""
        self.flush()
        self._outstanding = assumption.counted_on
        self.add(assumption.decision)

    def withdraw(self, uid: str) -> bool:
        """Take back a decision that the binder has not been sent; whether there is one.

        Later ones counted on it. For the binder it stays outstanding, so that it judges them anew.
        """
        at = next((at for at, decision in enumerate(self._decisions) if decision.uid == uid), None)
        if at is None:
            return False
        later = self._decisions[at + 1 :]
        del self._decisions[at:]
        self.flush()
        if later:
            self._outstanding = self._assumptions.outstanding(below=later[0].number)
            self._decisions = later
        return True

    def flush(self) -> None:
        """What was decided since the last time goes to the binder as one request."""
        if self._decisions:
            request = BindRequest(
                session=self.session,
                digest=self._digests,
                outstanding=self._outstanding,
                decisions=tuple(self._decisions),
            )
            self._decisions.clear()
            self._outcomes.add(Bind(request))
