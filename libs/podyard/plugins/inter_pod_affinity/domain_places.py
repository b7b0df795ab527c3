"""Which domains the rows of an array are in, kept for the array that was asked about last: mostly it is the
same one in the next cycle."""

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.framework.interfaces import Rows, Scores


class Placed:
    """The domains of rows, by one topology key. No array of it must be changed."""

    __slots__ = ("_by_row", "_of", "_present", "domains", "nodes", "rows", "topology")

    def __init__(self, key: str, nodes: NodeTable, rows: Rows) -> None:
        self.nodes = nodes
        self.topology = nodes.topology_version
        self.rows = rows
        self.domains: NDArray[np.intp] = nodes.label_column(key).cells.take(rows).astype(np.intp)
        """The number of each row's domain, ABSENT for none; as an index type, which `take` needs not
        convert."""
        self._present: NDArray[np.intp] | None = None
        self._of = b""
        """The values that `_by_row` was made from."""
        self._by_row = np.zeros(0, dtype=np.int64)

    def present(self) -> NDArray[np.intp]:
        """The domains that any of the rows is in, each once, ascending."""
        if self._present is None:
            self._present = np.bincount(self.domains).nonzero()[0]
        return self._present

    def by_row(self, values: Scores) -> Scores:
        """For each row the value of its domain: the same array as before as long as they are the same.

        :param values: of the domains that are `present`, of which there are few
        """
        of = values.tobytes()
        if of != self._of:
            present = self.present()
            found = np.zeros(present.item(-1) + 1, dtype=np.int64)
            found[present] = values
            self._of, self._by_row = of, found.take(self.domains, mode="clip")
        return self._by_row


class Places:
    """By topology key. The arrays of rows that it is asked about must not be changed afterwards."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, Placed] = {}

    def of(self, key: str, nodes: NodeTable, rows: Rows) -> Placed:
        """Where these rows are."""
        kept = self._kept.get(key)
        if kept is not None and kept.rows is rows and kept.nodes is nodes and kept.topology == nodes.topology_version:
            return kept
        found = self._kept[key] = Placed(key, nodes, rows)
        return found
