"""Counts of pods by topology domain, with version numbers that say when an answer may be another.

A domain is a value of a node label, the topology key; here it is the number that the key's label column gives
to the value. Nodes without the label are in no domain.
"""

import weakref
from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.domain_sums import DomainSums, Edges
from podyard.cluster.node_columns import ABSENT, LabelColumn
from podyard.cluster.node_table import NodeTable
from podyard.cluster.pod_columns import PodSelection
from podyard.cluster.selector_counts import SelectorCounts
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of

ByDomain: TypeAlias = NDArray[np.int64]
"""Place n: for the domain with number n; place ABSENT is 0. As long as the key's column has values."""

NEVER: Final = -1

KEYS_BYTES: Final = 16 * 1024 * 1024
"""What the domains of topology keys take that are remembered, to see whether they are others."""
CELL_BYTES: Final = 4
"""Of a node's domain."""


class Counts(Protocol):
    """How many pods of some set there are in each domain of one topology key, as of now."""

    @property
    def key(self) -> str: ...

    @property
    def occupied(self) -> int:
        """How many domains have at least one pod."""
        ...

    @property
    def edges(self) -> Edges:
        """Domains that became empty or ceased to be, up to now."""
        ...

    def by_domain(self) -> ByDomain:
        """Not to be changed, and not to be kept over a change of the table."""
        ...


class _Key:
    """A label column as it was when somebody looked last."""

    __slots__ = ("cells", "checked", "column", "domains", "stamp")

    def __init__(self) -> None:
        self.column: LabelColumn | None = None
        self.cells: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self.domains = 0
        self.checked = NEVER
        self.stamp = NEVER


class DomainStamps:
    """Which domain of a key every node is in, and a stamp that changes only when that does.

    :param clock: numbers that only grow; stamps are drawn from it
    """

    def __init__(self, table: NodeTable, clock: Iterator[int]) -> None:
        self._table = table
        self._clock = clock
        self._keys = Kept[str, _Key](KEYS_BYTES, fewest=1)

    def column(self, key: str) -> LabelColumn:
        """The domains by row."""
        return self._table.label_column(key)

    def stamp(self, key: str) -> int:
        """Another number if a node is in another domain of `key`, or domains have other numbers, than when
        last asked."""
        known = self._keys.get(key)
        if known is None:
            known = _Key()
            self._keys.keep(key, known, bytes_of(key) + CELL_BYTES * self._table.capacity)
        if known.checked != self._table.topology_version:
            known.checked = self._table.topology_version
            self._look(known, self._table.label_column(key))
        return known.stamp

    def _look(self, known: _Key, column: LabelColumn) -> None:
        same = known.column is column and known.domains == len(column.values)
        if same and np.array_equal(known.cells, column.cells):
            return
        known.column, known.domains, known.cells = column, len(column.values), column.cells.copy()
        known.stamp = next(self._clock)


class GroupCounts:
    """Counts of a set of pods that is told of each of them.

    :ivar version: drawn from the clock when a count changes; with `edges` only when a domain becomes empty or
        ceases to be
    """

    __slots__ = ("_clock", "_counts", "_domains", "_edges", "_occupied", "_rows", "_stamp", "_turned", "key", "version")

    def __init__(self, domains: DomainStamps, key: str, clock: Iterator[int], *, edges: bool) -> None:
        self.key = key
        self._domains = domains
        self._clock = clock
        self._edges = edges
        self._rows: dict[int, int] = {}
        self._counts: ByDomain | None = None
        self._occupied = 0
        self._stamp = NEVER
        self._turned = Edges()
        self.version = next(clock)

    def add(self, row: int, amount: int) -> None:
        """So many pods more (or less) on the node of a row."""
        count = self._rows.get(row, 0) + amount
        if count:
            self._rows[row] = count
        else:
            del self._rows[row]
        counts = self._counts
        if counts is None or self._domains.stamp(self.key) != self._stamp:
            self._counts = None
            self._turned.forget()
            self.version = next(self._clock)
            return
        domain = self._domains.column(self.key).cells.item(row)
        if domain == ABSENT:
            return
        before = counts.item(domain)
        counts[domain] = before + amount
        edge = (before + amount > 0) - (before > 0)
        self._occupied += edge
        if edge:
            self._turned.note(domain)
        if edge or not self._edges:
            self.version = next(self._clock)

    def by_domain(self) -> ByDomain:
        """Counts as of now."""
        stamp = self._domains.stamp(self.key)
        if self._counts is None or self._stamp != stamp:
            return self._count_again(stamp)
        return self._counts

    @property
    def edges(self) -> Edges:
        self.by_domain()
        return self._turned

    @property
    def occupied(self) -> int:
        self.by_domain()
        return self._occupied

    def _count_again(self, stamp: int) -> ByDomain:
        column, size = self._domains.column(self.key), len(self._rows)
        rows = np.fromiter(self._rows.keys(), np.intp, size)
        amounts = np.fromiter(self._rows.values(), np.int64, size)
        counts = np.zeros(len(column.values), dtype=np.int64)
        np.add.at(counts, column.cells[rows], amounts)
        counts[ABSENT] = 0
        self._turned.forget()
        self._counts, self._stamp = counts, stamp
        self._occupied = int(np.count_nonzero(counts))
        return counts


class SelectedCounts:
    """Counts of the placed pods that a selection means, on top of the table's index of selector counts.

    :ivar counted: drawn from the clock when a count is seen to be another
    :ivar edged: the same when a domain is seen to have become empty, or ceased to be
    """

    __slots__ = (
        "_checked",
        "_clock",
        "_counted",
        "_edged",
        "_occupied",
        "_source",
        "_table",
        "counted",
        "edged",
        "key",
        "selection",
    )

    def __init__(self, table: NodeTable, selection: PodSelection, key: str, clock: Iterator[int]) -> None:
        self.selection = selection
        self.key = key
        self._table = table
        self._clock = clock
        self._checked = NEVER
        self._source: Callable[[], DomainSums | None] = _no_source
        """The index's, as long as it keeps them: it bounds what all of them take."""
        self._counted = self._edged = NEVER
        """What the source told when it was looked at last."""
        self._occupied: int | None = None
        self.counted = self.edged = next(clock)

    def refresh(self) -> DomainSums:
        """Look at the table as it is now."""
        version, source = self._table.version, self._source()
        if source is None or self._checked != version:
            self._checked = version
            source = self._table.index(SelectorCounts).sums(self.selection, self.key)
            self._look(source)
        return source

    def by_domain(self) -> ByDomain:
        """Counts as of now."""
        return self.refresh().sums

    @property
    def edges(self) -> Edges:
        return self.refresh().edges

    @property
    def occupied(self) -> int:
        counts = self.by_domain()
        if self._occupied is None:
            self._occupied = int(np.count_nonzero(counts))
        return self._occupied

    def _look(self, source: DomainSums) -> None:
        if source is not self._source():
            self._source, self._counted, self._edged = weakref.ref(source), NEVER, NEVER
        if source.counted != self._counted:
            self._counted = source.counted
            self.counted = next(self._clock)
            if source.edges.end != self._edged:
                self._edged = source.edges.end
                self.edged = self.counted
                self._occupied = None


def _no_source() -> None:
    """Nobody has looked yet."""
