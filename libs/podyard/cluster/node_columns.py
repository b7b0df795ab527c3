"""Parts of the node table: interned labels and taints, the order of names, the log of changed rows."""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from podyard.objects.affinity import Taint
from podyard.objects.core import Node

Cell = TypeVar("Cell", bound=np.generic)

ABSENT: Final = 0
"""Id of "the node has no such label" in every label column; row ids of values begin with 1."""


class NodeColumn(Protocol):
    """Something read from the node objects for whoever asks, by row, kept up to date by the table."""

    def set(self, row: int, node: Node) -> None:
        """A node is in this row, or is different now; also called for changes that do not concern the column."""
        ...

    def clear(self, row: int) -> None:
        """There is no node in this row any more."""
        ...

    def grow(self, capacity: int) -> None:
        """There are so many rows now; the new ones are free."""
        ...


class LabelColumn:
    """The values of one label on all nodes, as small numbers: `values[cells[row]]`.

    Values are never forgotten; the table drops a whole column when most of its values are of nodes that are gone.
    """

    __slots__ = ("cells", "ids", "key", "values")

    def __init__(self, key: str, nodes: Iterable[Node | None], capacity: int) -> None:
        self.key = key
        self.values: list[str] = [""]
        self.ids: dict[str, int] = {}
        self.cells: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        for row, node in enumerate(nodes):
            if node is not None:
                self.set(row, node)

    def set(self, row: int, node: Node) -> None:
        """Read the label from `node`."""
        value = node.metadata.labels.get(self.key)
        self.cells[row] = ABSENT if value is None else self._intern(value)

    def clear(self, row: int) -> None:
        """There is no node in this row."""
        self.cells[row] = ABSENT

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self.cells = grown(self.cells, capacity)

    def _intern(self, value: str) -> int:
        known = self.ids.get(value)
        if known is None:
            known = self.ids[value] = len(self.values)
            self.values.append(value)
        return known


class TaintSets:
    """The different combinations of taints that nodes have; number 0 is no taint."""

    __slots__ = ("_ids", "sets")

    def __init__(self) -> None:
        self.sets: list[tuple[Taint, ...]] = [()]
        self._ids: dict[tuple[tuple[str, str, str], ...], int] = {(): 0}

    def intern(self, taints: tuple[Taint, ...]) -> int:
        """Number of this combination. The order counts, when a taint was added does not."""
        key = tuple((taint.key, taint.value, taint.effect) for taint in taints)
        known = self._ids.get(key)
        if known is None:
            known = self._ids[key] = len(self.sets)
            self.sets.append(tuple(taints))
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
        """The order of names is that of the rows, from the first row on: nodes came in this order, and none has gone."""

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

    @property
    def version(self) -> int:
        """Grows by one with every change."""
        return self._base + len(self._rows)

    def note(self, row: int, capacity: int) -> int:
        """Row `row` changed; returns the new version."""
        rows = self._rows
        rows.append(row)
        if len(rows) > 4 * capacity + 1024:
            half = len(rows) // 2
            del rows[:half]
            self._base += half
        return self._base + len(rows)

    def since(self, version: int) -> set[int] | None:
        """Rows that changed after `version`; `None` if the log does not go back so far."""
        if version < self._base:
            return None
        return set(self._rows[version - self._base :])


def grown(column: NDArray[Cell], capacity: int) -> NDArray[Cell]:
    """A copy of `column` whose last axis has `capacity` places, the new ones 0."""
    bigger = np.zeros((*column.shape[:-1], capacity), dtype=column.dtype)
    bigger[..., : column.shape[-1]] = column
    return bigger
