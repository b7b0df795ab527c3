"""What the descheduler's core is told."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from podyard.cluster.view import ClusterView
from podyard.descheduler.core.cycle import EvictionResult
from podyard.descheduler.core.measured import QueryResult


class Listed(NamedTuple):
    """The cluster as the `List` of this ticket found it. Nobody changes the view any more."""

    ticket: int
    view: ClusterView


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


class Tick(NamedTuple):
    """Time passed."""


Answer: TypeAlias = Listed | NotListed | Queried | EvictionAnswered
Message: TypeAlias = Answer | Tick
