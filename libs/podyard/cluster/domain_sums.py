"""Pods by topology domain: counts by node added up over the nodes that share a value of a label.

Asked for through `selector_counts.SelectorCounts.sums`.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_columns import ABSENT, LabelColumn
from podyard.cluster.node_table import NodeTable

Cell = TypeVar("Cell", bound=np.generic)

KEPT_EDGES: Final = 64
"""Readers look after every few changes; semi-arbitrary."""

NO_DOMAIN: Final = 2**31 - 1
"""The lowest count if there is no domain at all. Source: podtopologyspread/filtering.go, newCriticalPaths
(math.MaxInt32).
"""


class Among(Protocol):
    """A choice of nodes by their labels, taints and names. Equal ones choose alike: they are kept by hash."""

    def __hash__(self) -> int: ...

    def mask(self, nodes: NodeTable) -> NDArray[np.bool_]:
        """By row, as long as the table's columns; what it says of free rows does not count."""
        ...


class Domains:
    """The domains of a topology, as the nodes are now: made again when `topology_version` of the table is
    another.

    A domain is known by the id that its value has in the label's column. The label is absent: no domain.
    """

    __slots__ = ("_last", "cells", "column", "homes", "number", "present", "topology_version")

    def __init__(self, nodes: NodeTable, topology_key: str, among: Among | None) -> None:
        column = nodes.label_column(topology_key)
        self.topology_version = nodes.topology_version
        self.column: LabelColumn = column
        self.cells: NDArray[np.intp] = column.cells.astype(np.intp)
        """By row: the domain that the node is in; ABSENT for none."""
        self.homes: NDArray[np.intp] = self.cells if among is None else np.where(among.mask(nodes), self.cells, ABSENT)
        """By row: the domain that the node's pods count for; ABSENT for none."""
        self.present: NDArray[np.bool_] = np.bincount(self.homes, minlength=len(column.values)) > 0
        """By domain: whether a node counts for it."""
        self.present[ABSENT] = False
        self.number = int(np.count_nonzero(self.present))
        """Domains that a node counts for."""
        self._last: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None
        """The rows that were asked about last, and their domains: mostly it is the same array again."""

    def of(self, by_domain: NDArray[Cell], rows: NDArray[np.intp]) -> NDArray[Cell]:
        """What a table by domain says of nodes; the table has an entry for ABSENT too. `rows` must not be
        changed afterwards.
        """
        if self._last is None or self._last[0] is not rows:
            self._last = rows, self.cells.take(rows, mode="clip")
        return by_domain.take(self._last[1], mode="clip")  # all are in range, so this only saves the check


class Edges:
    """Domains that became empty, or ceased to be, in order; numbered from the beginning. Only the latest are
    kept.
    """

    __slots__ = ("_domains", "end")

    def __init__(self) -> None:
        self.end = 0
        """Grows with every edge."""
        self._domains: list[int] = []

    def note(self, domain: int) -> None:
        """One domain."""
        self.end += 1
        self._domains.append(domain)
        if len(self._domains) > 2 * KEPT_EDGES:
            del self._domains[:KEPT_EDGES]

    def forget(self) -> None:
        """Nobody knows which, or domains have other numbers."""
        self.end += 1
        self._domains.clear()

    def since(self, end: int) -> Sequence[int] | None:
        """Those after `end`; `None`: not known."""
        count = self.end - end
        if count > len(self._domains):
            return None
        return self._domains[len(self._domains) - count :]


class RowCounts(Protocol):
    """Pods counted by node, which sums are made of: `selector_counts.SelectorCount`."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """By row of the table; 0 for free rows."""
        ...

    @property
    def version(self) -> int:
        """Grows with every change, and is never that of another count."""
        ...

    def since(self, version: int) -> Sequence[tuple[int, int]] | None:
        """What changed after `version`: (row, how many more), in order; `None` if nobody knows any more."""
        ...


class DomainSums:
    """The number of matching pods by domain.

    Invariant after `refresh`: `sums[domain]` is the sum of the count's rows whose home it is; 0 for ABSENT
    and domains of no node.

    :ivar counted: grows when a sum is another, or domains have other numbers
    :ivar edges: domains that became empty or ceased to be: known at the change, so nobody compares all of
        them
    """

    __slots__ = ("__weakref__", "_lowest", "_seen", "counted", "domains", "edges", "sums")

    def __init__(self, domains: Domains, count: RowCounts) -> None:
        self.counted = 0
        self.edges = Edges()
        self._rebuild(domains, count)

    @property
    def version(self) -> tuple[int, int]:
        """Equal as long as domains and sums are the same."""
        return self.domains.topology_version, self._seen

    @property
    def lowest(self) -> int:
        """The lowest sum of any domain that a node counts for; NO_DOMAIN if there is none."""
        if self._lowest is None:
            sums = self.sums[self.domains.present]
            self._lowest = int(sums.min()) if len(sums) else NO_DOMAIN
        return self._lowest

    def refresh(self, domains: Domains, count: RowCounts) -> None:
        """Follow what changed. Cheap after a few pods came or went; made again if nodes changed."""
        if domains is not self.domains:
            self._make_again(domains, count)
            return
        if count.version == self._seen:
            return
        changes = count.since(self._seen)  # None of another count, too: no two have a version in common
        if changes is None or len(changes) > len(count.rows):
            self._make_again(domains, count)
            return
        net: dict[int, int] = {}
        for row, more in changes:
            home = domains.homes.item(row)
            net[home] = net.get(home, 0) + more
        for home, more in net.items():
            self._add(home, more)
        self._seen, self._lowest = count.version, None

    def _add(self, home: int, more: int) -> None:
        if home == ABSENT or not more:
            return
        before = self.sums.item(home)
        self.sums[home] = before + more
        self.counted += 1
        if not before or not before + more:
            self.edges.note(home)

    def _make_again(self, domains: Domains, count: RowCounts) -> None:
        column, sums = self.domains.column, self.sums
        self._rebuild(domains, count)
        same = column is domains.column and len(sums) == len(self.sums)
        if same and np.array_equal(sums, self.sums):
            return
        self.counted += 1
        if not same or not np.array_equal(sums > 0, self.sums > 0):
            self.edges.forget()

    def _rebuild(self, domains: Domains, count: RowCounts) -> None:
        self.domains = domains
        self._seen = count.version
        self._lowest: int | None = None
        self.sums = _summed(domains, count.rows)


def _summed(domains: Domains, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    if not np.count_nonzero(rows):  # as for the first pod of a workload: a tenth of the time
        return np.zeros(len(domains.present), dtype=np.int64)
    sums = np.bincount(domains.homes, weights=rows, minlength=len(domains.present)).astype(np.int64)
    sums[ABSENT] = 0
    return sums
