"""Decisions that wait for their answer, and the answers of those that had theirs.

A request may come twice, late, or again after its answer was lost: the same decision (session and number) is held once, and gets the
answer it got before. A retry of a conflict is a new decision: it has a new number. A decision that waits (`held`) is answered `waiting`
until it has its answer, so that no request stays open for it.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from podyard.binder.core.claims import Claims, claims_of
from podyard.framework.cycle_state import CycleState
from podyard.memory.kept import Kept
from podyard.proto.binder_api import BindAnswer, BindRequest, Decision

ANSWERED_BYTES: Final = 16 * 1024 * 1024
"""What answers may take that are kept for repetitions, some 16,000: seconds of decisions at the design's rate, longer than a scheduler
waits for an answer."""

ANSWER_BYTES: Final = 768
"""What one takes with its key, its reasons apart."""


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

    __slots__ = (
        "claims",
        "deadlines",
        "decision",
        "extender_bound",
        "key",
        "next_state",
        "received_at",
        "standing",
        "state",
        "waiting",
        "withdrawn",
    )

    def __init__(self, decision: Decision, key: tuple[str, int], received_at: float, claims: Claims | None) -> None:
        self.decision = decision
        self.claims = claims
        """What it counted on, as its first request said."""
        self.key = key
        self.received_at = received_at
        self.extender_bound = False
        """The extender that binds has been asked, and has nothing against it."""
        self.waiting: list[tuple[Ticket, int]] = []
        self.state = CycleState()
        """What PreBind plugins remember of it, as of their last answer of which everything is durable."""
        self.next_state = self.state
        """The same as of their last answer."""
        self.deadlines: dict[str, float] = {}
        """When the wait of a PreBind plugin runs out, by plugin; it began with the first WAIT."""
        self.standing: BindAnswer | None = None
        """That it waits, if that was told: what requests are answered that ask about it again."""
        self.withdrawn = decision.withdrawn


class Intake:
    """All open decisions, in the order in which they came."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], Open] = {}
        self._queue: deque[Open] = deque()
        self._answered = Kept[tuple[str, int], BindAnswer](ANSWERED_BYTES)

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
        for index, (decision, claims) in enumerate(zip(request.decisions, claims_of(request), strict=True)):
            key = (request.session, decision.number)
            before = self._answered.get(key)
            if before is not None and before.attempt == decision.attempt:
                ticket.put(index, before)
                continue
            held = self._open.get(key)
            if held is None:
                held = self._open[key] = Open(decision, key, now, claims)
                self._queue.append(held)
            held.withdrawn = held.withdrawn or decision.withdrawn
            if held.standing is not None and not held.withdrawn:
                ticket.put(index, held.standing)
            else:
                held.waiting.append((ticket, index))
        return None if ticket.missing else ticket

    def pop(self) -> Open:
        """Take out the oldest, to be judged."""
        return self._queue.popleft()

    def put_back(self, decisions: Iterable[Open]) -> None:
        """They are to be judged (again) before all others."""
        self._queue.extendleft(reversed(list(decisions)))

    def tell_waiting(self, held: Open, answer: BindAnswer) -> list[Ticket]:
        """Say that a decision waits, now and whenever it is asked about; returns the requests that are complete now."""
        held.standing = answer
        told, held.waiting = held.waiting, []
        return _tell(told, answer)

    def answer(self, held: Open, answer: BindAnswer) -> list[Ticket]:
        """Settle a decision; returns the requests that are complete now."""
        self._open.pop(held.key, None)
        reasons = sum([len(reason) for reason in answer.reasons])
        self._answered.keep(held.key, answer, ANSWER_BYTES + 4 * reasons)
        return _tell(held.waiting, answer)


def _tell(waiting: Iterable[tuple[Ticket, int]], answer: BindAnswer) -> list[Ticket]:
    complete: list[Ticket] = []
    for ticket, index in waiting:
        ticket.put(index, answer)
        if not ticket.missing:
            complete.append(ticket)
    return complete
