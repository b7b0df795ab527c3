"""What the descheduler's core is told."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from podyard.cluster.changes import Change
from podyard.cluster.usages import Heard
from podyard.cluster.view import ClusterView
from podyard.descheduler.core.evictions import EvictionResult
from podyard.descheduler.core.measured import QueryResult
from podyard.proto.moves import MoveRecord


class Listed(NamedTuple):
    """The cluster as the `List` of this ticket found it. Nobody changes the view any more."""

    ticket: int
    view: ClusterView
    earlier: tuple[MoveRecord, ...] = ()
    """Records of moves that are stored, in their order."""
    heard: Mapping[str, Heard] = {}
    """What agents said last of what their nodes use."""


class NotListed(NamedTuple):
    """The cluster could not be listed for the `List` of this ticket."""

    ticket: int
    reason: str


class Queried(NamedTuple):
    """What came of the queries in the `Query` of this ticket, by their text."""

    ticket: int
    results: Mapping[str, QueryResult]


class EvictionAnswered(NamedTuple):
    """What became of the eviction in the `Evict` of this ticket."""

    ticket: int
    result: EvictionResult


class Changed(NamedTuple):
    """The cluster changed. Told where events start cycles."""

    changes: Sequence[Change]


class Relisted(NamedTuple):
    """The cluster was listed: from here on it is followed. If not for the first time, what happened in
    between is not known in full."""


class Tick(NamedTuple):
    """Time passed."""


Answer: TypeAlias = Listed | NotListed | Queried | EvictionAnswered
Message: TypeAlias = Answer | Changed | Relisted | Tick
