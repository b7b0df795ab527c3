"""What the descheduler's core wants done. The shell does it in the order in which the core says it."""

from typing import NamedTuple, TypeAlias

from podyard.descheduler.core.cycle import CycleRecord
from podyard.descheduler.core.evictions import Eviction
from podyard.proto.moves import MoveRecord


class List(NamedTuple):
    """A cycle begins: list the cluster, and tell the core what is there, with the ticket."""

    ticket: int


class Query(NamedTuple):
    """Ask Prometheus before the cycle goes on, and tell the core what came of each, with the ticket."""

    ticket: int
    queries: tuple[str, ...]


class Evict(NamedTuple):
    """Carry an eviction out, and tell the core what became of it, with the ticket. The cycle waits for it."""

    ticket: int
    eviction: Eviction


class Remember(NamedTuple):
    """Store what became of moves."""

    moves: tuple[MoveRecord, ...]


class CycleEnded(NamedTuple):
    """A cycle came to its end."""

    record: CycleRecord
    began: float
    """Seconds since 1970, UTC; before the listing."""


class CycleFailed(NamedTuple):
    """A cycle could not begin, or broke off: what it evicted before stands."""

    reason: str
    error: Exception | None = None
    """What broke it off, for the log; None: it was refused in words."""
    began: float = 0.0
    """As of a cycle that ended; 0: it never began."""


class Finished(NamedTuple):
    """It was to be one cycle, and that is over: end the service."""


Ask: TypeAlias = List | Query | Evict
Effect: TypeAlias = Ask | Remember | CycleEnded | CycleFailed | Finished
