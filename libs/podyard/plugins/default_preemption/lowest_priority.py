"""The lowest priority on each node, kept up to date: most attempts for pods that fit nowhere end here,
without a look at any pod."""

from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable, PlacedPod

NOBODY: Final = 1 << 31
"""Above every priority: nobody is on the node."""


class LowestPriority:
    """An index of the node table.

    Invariant: `column` of a row is the lowest priority of the pods that were added to it and not removed.
    """

    def __init__(self, table: NodeTable) -> None:
        self.column: NDArray[np.int64] = np.full(table.capacity, NOBODY, dtype=np.int64)
        """By row of the table; rows beyond its end have nobody."""
        self._counts: dict[int, Counter[int]] = {}
        """Pods by priority, of rows that have some."""

    def below(self, rows: NDArray[np.intp], priority: int) -> NDArray[np.intp]:
        """Those of the rows with pods of lower priority."""
        if len(rows) and int(rows.max()) >= len(self.column):
            self._grow(int(rows.max()))
        return rows[self.column[rows] < priority]

    def add(self, pod: PlacedPod, row: int) -> None:
        priority = pod.priority
        counts = self._counts.get(row)
        if counts is None:
            counts = self._counts[row] = Counter()
        counts[priority] += 1
        if row >= len(self.column):
            self._grow(row)
        if priority < self.column.item(row):
            self.column[row] = priority

    def remove(self, pod: PlacedPod, row: int) -> None:
        priority = pod.priority
        counts = self._counts[row]
        counts[priority] -= 1
        if counts[priority]:
            return
        del counts[priority]
        if not counts:
            del self._counts[row]
        if priority == self.column.item(row):
            self.column[row] = min(counts, default=NOBODY)

    def _grow(self, row: int) -> None:
        more = max(len(self.column), row + 1 - len(self.column))
        self.column = np.concatenate((self.column, np.full(more, NOBODY, dtype=np.int64)))
