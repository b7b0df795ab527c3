"""Parts of the node table: interned labels and taints, the order of names, the log of changed rows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from podyard.memory.latest import Latest
from podyard.memory.sizes import bytes_of
from podyard.objects.affinity import Taint
from podyard.objects.core import Node

Cell = TypeVar("Cell", bound=np.generic)

ABSENT: Final = 0
"""Id of "the node has no such label" in every label column; row ids of values begin with 1."""


class NodeColumn(Protocol):
    """Something read from the node objects for whoever asks, by row, kept up to date by the table."""

    def set(self, row: int, node: Node) -> None:
        """A node is in this row, or is different now; also called for changes that do not concern the
        column."""
        ...

    def clear(self, row: int) -> None:
        """There is no node in this row any more."""
        ...

    def grow(self, capacity: int) -> None:
        """There are so many rows now; the new ones are free."""
        ...


LABELS_BYTES: Final = 64 * 1024 * 1024
"""What the columns of labels may take together; above it those not asked for the longest time go."""
COLUMN_BYTES: Final = 512
"""What a column takes besides its cells and values."""
VALUE_BYTES: Final = 320
"""What a value of a label takes in its column: its text (63 letters at most), two places, a number."""
STALE_VALUES: Final = 1024
"""Values of nodes that are gone, or have others now, that a column may have besides as many as there are
nodes."""

STALE_SETS: Final = 64
"""Combinations of no node that there may be besides one for eight rows, and as many as nodes have."""
SET_BYTES: Final = 256
"""What a combination takes besides the texts of its taints, twice."""
TAINTS_BYTES: Final = 4 * 1024 * 1024
"""What combinations of taints that no node has any more may take, besides as much as those that some node
has."""


class LabelColumn:
    """The values of one label on all nodes, as small numbers: `values[cells[row]]`.

    Values are never forgotten; the table drops a whole column when most of its values are of nodes that are
    gone.
    """

    __slots__ = ("cells", "ids", "key", "values")

    def __init__(self, key: str, nodes: Iterable[Node | None], capacity: int) -> None:
        self.key = key
        self.values: list[str] = [""]
        self.ids: dict[str, int] = {}
        self.cells: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        for row, node in enumerate(nodes):
            if node is not None:
                self.set(row, node.metadata.labels.get(key))

    def set(self, row: int, value: str | None) -> None:
        """The node in this row has the label with this value; `None`: it has it not, or there is no node."""
        self.cells[row] = ABSENT if value is None else self._intern(value)

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self.cells = grown(self.cells, capacity)

    @property
    def bytes(self) -> int:
        """What it takes."""
        return COLUMN_BYTES + self.cells.nbytes + VALUE_BYTES * len(self.values) + len(self.key)

    def _intern(self, value: str) -> int:
        known = self.ids.get(value)
        if known is None:
            known = self.ids[value] = len(self.values)
            self.values.append(value)
        return known


class LabelColumns:
    """The columns of all labels that somebody asked for, in the order in which they were used last.

    A column goes only while nobody works with one, hence later than in `podyard.memory.kept.Kept`.
    """

    __slots__ = ("_bytes", "_columns", "excess", "get", "most_bytes", "use")

    def __init__(self, most_bytes: int = LABELS_BYTES) -> None:
        self._columns = Latest[str, LabelColumn]()
        self._bytes = 0
        self.most_bytes = most_bytes
        self.excess = False
        """Whether `drop` is to be called, as soon as nobody works with a column."""
        self.get: Callable[[str], LabelColumn | None] = self._columns.get
        self.use: Callable[[str], None] = self._columns.use

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, column: LabelColumn) -> None:
        """One column more."""
        self._columns[column.key] = column
        self._bytes += column.bytes
        self.excess = self._bytes > self.most_bytes

    def set(self, row: int, before: Mapping[str, str], now: Mapping[str, str], nodes: int) -> None:
        """A node has other labels than before. Costs what these are, not what columns there are: of labels
        that many pods named, each one its own, there are tens of thousands.

        :param before: of the node that was in the row; empty: there was none
        :param now: empty: there is none any more
        :param nodes: how many there are; a column with more values that no node has than others goes
        """
        most_values = 2 * nodes + STALE_VALUES
        for key in before.keys() | now.keys():
            column = self._columns.get(key)
            if column is None:
                continue
            known = len(column.values)
            column.set(row, now.get(key))
            self._bytes += VALUE_BYTES * (len(column.values) - known)
            if len(column.values) > most_values:
                del self._columns[key]
                self._bytes -= column.bytes
        if self._bytes > self.most_bytes:
            self.drop()

    def grow(self, capacity: int) -> None:
        """There are so many rows now."""
        for column in self._columns.values():
            column.grow(capacity)
        self._bytes = sum([column.bytes for column in self._columns.values()])
        self.excess = self._bytes > self.most_bytes

    def drop(self) -> None:
        """Columns go, those not used the longest time first, until the others fit; the one used last
        stays."""
        while self._bytes > self.most_bytes and len(self._columns) > 1:
            self._bytes -= self._columns.pop_oldest()[1].bytes
        self.excess = False


class TaintSets:
    """The different combinations of taints that nodes have; number 0 is no taint.

    Numbers are never used again; the table makes it anew (`stale`) when combinations have come and gone.
    """

    __slots__ = ("_fresh", "_fresh_bytes", "_ids", "bytes", "sets")

    def __init__(self) -> None:
        self.sets: list[tuple[Taint, ...]] = [()]
        """By number. Another list means other numbers."""
        self.bytes = 0
        """What they take."""
        self._fresh_bytes = self._fresh = 0
        self._ids: dict[tuple[tuple[str, str, str], ...], int] = {(): 0}

    def stale(self, rows: int) -> bool:
        """Whether much of it may be of no node any more. Everybody who judges combinations holds a cell for
        each.

        :param rows: of the table
        """
        many = len(self.sets) > 2 * self._fresh + STALE_SETS + rows // 8
        return many or self.bytes > 2 * self._fresh_bytes + TAINTS_BYTES

    def settle(self) -> None:
        """All that is in it now is of some node."""
        self._fresh_bytes, self._fresh = self.bytes, len(self.sets)

    def intern(self, taints: tuple[Taint, ...]) -> int:
        """Number of this combination. The order counts, when a taint was added does not."""
        key = tuple((taint.key, taint.value, taint.effect) for taint in taints)
        known = self._ids.get(key)
        if known is None:
            known = self._ids[key] = len(self.sets)
            self.sets.append(tuple(taints))
            self.bytes += 2 * bytes_of(key) + SET_BYTES
        return known


class NameOrder:
    """Rows in the order of node names."""

    __slots__ = ("rank", "rows", "straight")

    def __init__(self, names: dict[str, int], capacity: int) -> None:
        self.rows: NDArray[np.intp] = np.fromiter((names[name] for name in sorted(names)), np.intp, len(names))
        """Live rows, sorted by name."""
        self.rank: NDArray[np.intp] = np.full(capacity, -1, dtype=np.intp)
        """Place of a row in `rows`; -1 for free rows."""
        places = np.arange(len(self.rows))
        self.rank[self.rows] = places
        self.straight = np.array_equal(self.rows, places)
        """The order of names is that of the rows, from the first row on: nodes came in this order, and none
        has gone."""

    def arranged(self, column: NDArray[Cell]) -> NDArray[Cell]:
        """What a column says of live rows, in the order of names; maybe a view."""
        return column[: len(self.rows)] if self.straight else column.take(self.rows)


class ChangeLog:
    """Which rows changed, in order: entry i is what made version `base + i + 1`.

    Only the younger part is kept; a reader that is behind it compares generations of all rows instead.
    """

    __slots__ = ("_base", "_rows")

    def __init__(self) -> None:
        self._base = 0
        self._rows: list[int] = []

    def note(self, row: int, capacity: int) -> int:
        """Row `row` changed; returns the new version."""
        rows = self._rows
        rows.append(row)
        if len(rows) > 4 * capacity + 1024:
            half = len(rows) // 2
            del rows[:half]
            self._base += half
        return self._base + len(rows)

    def since(self, version: int) -> list[int] | None:
        """Rows that changed after `version`, ascending; `None` if the log does not go back so far."""
        if version < self._base:
            return None
        rows = self._rows[version - self._base :]
        return rows if len(rows) == 1 else sorted(set(rows))


def grown(column: NDArray[Cell], capacity: int) -> NDArray[Cell]:
    """A copy of `column` whose last axis has `capacity` places, the new ones 0."""
    bigger = np.zeros((*column.shape[:-1], capacity), dtype=column.dtype)
    bigger[..., : column.shape[-1]] = column
    return bigger
