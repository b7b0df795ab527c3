"""Where a watch is in reading its stream.

        ┌─────────┐ it is made  ┌─────────┐ complete ┌────────┐ another  ┌─────────┐ it is the   ┌───────────┐
IDLE ──>│ OPENING │────────────>│ LISTING │─────────>│ LISTED │─────────>│ JOINING │────────────>│ FOLLOWING │
 ^      │         │<────────────│         │          └────────┘ consumer │         │  stream's   │           │
 │      └─────────┘ it is full  └─────────┘                              │         │<────────────│           │
 │                                                                       └─────────┘ it is full  └───────────┘
 │
 └── BROKEN <── from each of these, when something is missing; IDLE, too, when the reading ends with an error
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class State(Enum):
    """What a watch does, and what it knows of what comes."""

    IDLE = auto()
    """Nothing is read: before the first reading, and between two."""
    OPENING = auto()
    """A consumer is made that lists, the first or the next."""
    LISTING = auto()
    """More is to come before all is listed. Whether the consumer is one of this stream, or of one that was
    made again, is known before the listing is called complete."""
    LISTED = auto()
    """The listing is complete; what else its consumer brings is of no use."""
    JOINING = auto()
    """Another consumer is made that follows. It may be one of a stream that was made again: nobody knows
    yet."""
    FOLLOWING = auto()
    """All that was there is listed, and what comes is read."""
    BROKEN = auto()
    """Something was missed, or a reader asks for it: all is to be listed again."""


_ENDS: Final = frozenset({State.BROKEN, State.IDLE})

NEXT: Final[Mapping[State, frozenset[State]]] = {
    State.IDLE: frozenset({State.OPENING}),
    State.OPENING: _ENDS | {State.LISTING},
    State.LISTING: _ENDS | {State.LISTED, State.OPENING},
    State.LISTED: _ENDS | {State.JOINING},
    State.JOINING: _ENDS | {State.FOLLOWING},
    State.FOLLOWING: _ENDS | {State.JOINING},
    State.BROKEN: frozenset({State.IDLE}),
}
"""Where a watch may go from each state."""


LIST: Final = (State.LISTING, State.OPENING)
"""What comes is listed."""
FOLLOW: Final = (State.FOLLOWING, State.JOINING)
"""All is listed, and what comes is new."""
OVER: Final = (State.LISTED, State.BROKEN)
"""What comes is of no use."""


class ImpossibleStepError(RuntimeError):
    """A watch was to go where it cannot: a bug."""

    def __init__(self, before: State, after: State) -> None:
        super().__init__(f"a watch cannot go from {before.name} to {after.name}")


def step(before: State, after: State) -> State:
    """`after`.

    :raises ImpossibleStepError: if the table does not know this step
    """
    if after not in NEXT[before]:
        raise ImpossibleStepError(before, after)
    return after
