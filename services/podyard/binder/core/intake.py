"""Pending decisions, those without an answer, and the answers of those that had theirs.

A request may come twice, late, or again after its answer was lost: the same decision (session and number) is
kept once, and gets the answer it got before. A retry of a conflict is a new decision: it has a new number. A
decision that waits (`waiting`) is answered `waiting` until it has another answer, so that no request stays
open for it.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from podyard.binder.core.claims import claims_of
from podyard.binder.core.pending import Event, Pending, Ticket
from podyard.memory.kept import Kept
from podyard.proto.binder_api import BindAnswer, BindRequest

ANSWERED_BYTES: Final = 16 * 1024 * 1024
"""What answers may take that are kept for repetitions, some 16,000: seconds of decisions at the design's
rate, longer than a scheduler waits for an answer."""

ANSWER_BYTES: Final = 768
"""What one takes with its key, its reasons apart."""


class Intake:
    """All pending decisions, in the order in which they came."""

    def __init__(self) -> None:
        self._pending: dict[tuple[str, int], Pending] = {}
        self.queue: deque[Pending] = deque()
        """Decisions to be judged, the one that is first in front; for others to look at."""
        self._answered = Kept[tuple[str, int], BindAnswer](ANSWERED_BYTES)

    def unanswered(self) -> Iterable[Pending]:
        """All decisions without an answer, in the order in which they came."""
        return self._pending.values()

    def take(self, ticket_id: int, request: BindRequest, now: float) -> Ticket | None:
        """Take in a request's decisions; returns the ticket if all its answers are known already."""
        ticket = Ticket(ticket_id, len(request.decisions))
        for index, (decision, claims) in enumerate(zip(request.decisions, claims_of(request), strict=True)):
            key = (request.session, decision.number)
            before = self._answered.get(key)
            if before is not None and before.attempt == decision.attempt:
                ticket.put(index, before)
                continue
            pending = self._pending.get(key)
            if pending is None:
                pending = self._pending[key] = Pending(decision, key, now, claims)
                self.queue.append(pending)
            pending.withdrawn = pending.withdrawn or decision.withdrawn
            if pending.standing is not None and not pending.withdrawn:
                ticket.put(index, pending.standing)
            else:
                pending.tickets.append((ticket, index))
        return None if ticket.missing else ticket

    def pop(self) -> Pending | None:
        """Take out the oldest, to be judged; None: there is none."""
        return self.queue.popleft() if self.queue else None

    def put_back(self, decisions: Iterable[Pending]) -> None:
        """They are to be judged (again) before all others."""
        self.queue.extendleft(reversed(list(decisions)))

    def tell_waiting(self, pending: Pending, answer: BindAnswer) -> list[Ticket]:
        """Say that a decision waits, now and whenever it is asked about; returns the requests that are
        complete now."""
        pending.standing = answer
        told, pending.tickets = pending.tickets, []
        return _tell(told, answer)

    def answer(self, pending: Pending, answer: BindAnswer) -> list[Ticket]:
        """Settle a decision; returns the requests that are complete now."""
        pending.happens(Event.ANSWER)
        self._pending.pop(pending.key, None)
        reasons = 4 * sum(map(len, answer.reasons)) if answer.reasons else 0
        self._answered.keep(pending.key, answer, ANSWER_BYTES + reasons)
        return _tell(pending.tickets, answer)


def _tell(tickets: Iterable[tuple[Ticket, int]], answer: BindAnswer) -> list[Ticket]:
    complete: list[Ticket] = []
    for ticket, index in tickets:
        ticket.put(index, answer)
        if not ticket.missing:
            complete.append(ticket)
    return complete
