"""Decisions that wait for their answer, and the answers of those that had theirs.

A request may come twice, late, or again after its answer was lost: the same decision (session and number) is held once, and gets the
answer it got before. A retry of a conflict is a new decision: it has a new number.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final

from podyard.proto.binder_api import BindAnswer, BindRequest, Decision

REMEMBERED: Final = 16_384
"""Answers kept for repetitions: seconds of decisions at the design's rate, longer than a scheduler waits for an answer."""


class Ticket:
    """One request in hand: which of its answers are there."""

    __slots__ = ("answers", "id", "missing")

    def __init__(self, ticket_id: int, size: int) -> None:
        self.id = ticket_id
        self.answers: list[BindAnswer | None] = [None] * size
        self.missing = size

    def put(self, index: int, answer: BindAnswer) -> None:
        """The answer to decision `index`; a second one is ignored."""
        if self.answers[index] is None:
            self.answers[index] = answer
            self.missing -= 1

    def complete(self) -> tuple[BindAnswer, ...]:
        """All answers, in the order of the decisions."""
        return tuple(answer for answer in self.answers if answer is not None)


class Open:
    """One decision without an answer, and who waits for it."""

    __slots__ = ("decision", "extender_bound", "key", "received_at", "waiting")

    def __init__(self, decision: Decision, key: tuple[str, int], received_at: float) -> None:
        self.decision = decision
        self.key = key
        self.received_at = received_at
        self.extender_bound = False
        """The extender that binds has been asked, and has nothing against it."""
        self.waiting: list[tuple[Ticket, int]] = []


class Intake:
    """All open decisions, in the order in which they came."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], Open] = {}
        self._queue: deque[Open] = deque()
        self._answered: OrderedDict[tuple[str, int], BindAnswer] = OrderedDict()

    def __len__(self) -> int:
        """Decisions that wait to be judged."""
        return len(self._queue)

    @property
    def first(self) -> Open | None:
        """The decision that has waited longest to be judged."""
        return self._queue[0] if self._queue else None

    def take(self, ticket_id: int, request: BindRequest, now: float) -> Ticket | None:
        """Hold a request's decisions; returns the ticket if all its answers are known already."""
        ticket = Ticket(ticket_id, len(request.decisions))
        for index, decision in enumerate(request.decisions):
            key = (request.session, decision.number)
            before = self._answered.get(key)
            if before is not None and before.attempt == decision.attempt:
                ticket.put(index, before)
                continue
            held = self._open.get(key)
            if held is None:
                held = self._open[key] = Open(decision, key, now)
                self._queue.append(held)
            held.waiting.append((ticket, index))
        return None if ticket.missing else ticket

    def pop(self) -> Open:
        """Take out the oldest, to be judged."""
        return self._queue.popleft()

    def put_back(self, decisions: Iterable[Open]) -> None:
        """They are to be judged (again) before all others."""
        self._queue.extendleft(reversed(list(decisions)))

    def answer(self, held: Open, answer: BindAnswer) -> list[Ticket]:
        """Settle a decision; returns the requests that are complete now."""
        self._open.pop(held.key, None)
        self._answered[held.key] = answer
        if len(self._answered) > REMEMBERED:
            self._answered.popitem(last=False)
        complete: list[Ticket] = []
        for ticket, index in held.waiting:
            ticket.put(index, answer)
            if not ticket.missing:
                complete.append(ticket)
        return complete
