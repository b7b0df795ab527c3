"""A decision without an answer: where it stands, what becomes of it, and which requests ask about it.

    UNJUDGED --accepted--> BINDING --answered--> ANSWERED
             --refused---> REFUSED --answered--> ANSWERED
             --to write first--> WRITING --durable--> WAITING --due--> UNJUDGED

A decision of a position that the view has not reached is AHEAD meanwhile, one whose extender binds is ASKED.
What was in a batch that was not written is UNJUDGED again. `_BECOMES` has it all; nothing else changes a
state.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

import msgspec

from podyard.binder.core.claims import Claims
from podyard.framework.cycle_state import CycleState
from podyard.proto.binder_api import BindAnswer, Decision


class State(Enum):
    """Where a pending decision stands."""

    __hash__ = object.__hash__  # that of Enum is a function in Python: a call for each look at the table

    UNJUDGED = auto()
    """It is to be judged."""
    AHEAD = auto()
    """The view has not reached its position."""
    BINDING = auto()
    """Its binding is in the batch under way."""
    WRITING = auto()
    """A PreBind plugin waits; what it wants written first is in the batch under way."""
    WAITING = auto()
    """A PreBind plugin waits; what it wanted written first is durable."""
    ASKED = auto()
    """An extender is asked to bind it."""
    REFUSED = auto()
    """Its answer waits for the next write of ours: it is not told before."""
    ANSWERED = auto()


class Event(Enum):
    """What happens to a pending decision."""

    __hash__ = object.__hash__

    VIEW_IS_BEHIND = auto()
    VIEW_HAS_REACHED = auto()
    ACCEPT = auto()
    REFUSE = auto()
    WRITE_FIRST = auto()
    WAIT = auto()
    """Nothing is to be written first."""
    DURABLE = auto()
    """What was to be written first is."""
    DUE = auto()
    """Something that it waits for has changed."""
    ASK = auto()
    BOUND_BY_EXTENDER = auto()
    NOT_WRITTEN = auto()
    """The batch was not written, and something else than this decision was in its way."""
    ANSWER = auto()


_BECOMES: Final[Mapping[State, Mapping[Event, State]]] = {
    State.UNJUDGED: {
        Event.VIEW_IS_BEHIND: State.AHEAD,
        Event.ACCEPT: State.BINDING,
        Event.REFUSE: State.REFUSED,
        Event.WRITE_FIRST: State.WRITING,
        Event.WAIT: State.WAITING,
        Event.ASK: State.ASKED,
    },
    State.AHEAD: {Event.VIEW_HAS_REACHED: State.UNJUDGED, Event.REFUSE: State.REFUSED},
    State.BINDING: {
        Event.ANSWER: State.ANSWERED,
        Event.REFUSE: State.REFUSED,
        Event.NOT_WRITTEN: State.UNJUDGED,
    },
    State.WRITING: {
        Event.DURABLE: State.WAITING,
        Event.REFUSE: State.REFUSED,
        Event.NOT_WRITTEN: State.UNJUDGED,
    },
    State.WAITING: {Event.DUE: State.UNJUDGED, Event.REFUSE: State.REFUSED},
    State.ASKED: {Event.BOUND_BY_EXTENDER: State.UNJUDGED, Event.REFUSE: State.REFUSED},
    State.REFUSED: {Event.ANSWER: State.ANSWERED, Event.NOT_WRITTEN: State.UNJUDGED},
    State.ANSWERED: {},
}


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


class Pending(msgspec.Struct, eq=False):
    """One decision without an answer, and who asks about it."""

    decision: Decision
    key: tuple[str, int]
    received_at: float
    claims: Claims | None
    """What it counted on, as its first request said."""
    withdrawn: bool = False
    extender_bound: bool = False
    """The extender that binds has been asked, and has nothing against it."""
    tickets: list[tuple[Ticket, int]] = []
    """Requests that ask about it, and which of their answers is its own."""
    memory: CycleState | None = None
    """What PreBind plugins remember of it, as of their last answer of which everything is durable; None: none
    has waited."""
    deadlines: dict[str, float] = {}
    """When the wait of a PreBind plugin runs out, by plugin; it began with the first WAIT."""
    standing: BindAnswer | None = None
    """That it waits, if that was told: what requests are answered that ask about it again."""
    _state: State = State.UNJUDGED

    @property
    def state(self) -> State:
        """Where it stands."""
        return self._state

    def happens(self, event: Event) -> None:
        """Something happens to it.

        :raises AssertionError: what cannot happen to it now: a bug
        """
        after = _BECOMES[self._state].get(event)
        if after is None:
            raise AssertionError(f"{event.name} cannot happen to a decision that is {self._state.name}: {self.key}")
        self._state = after
