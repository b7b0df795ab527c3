"""Which domains the rows of an array are in, kept for the array that was asked about last: mostly it is the
same one in the next cycle."""

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.framework.interfaces import Rows


class Places:
    """By topology key. The arrays of rows that it is asked about must not be changed afterwards."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, tuple[NodeTable, int, Rows, NDArray[np.intp]]] = {}

    def of(self, key: str, nodes: NodeTable, rows: Rows) -> NDArray[np.intp]:
        """The number of each row's domain, ABSENT for none; as an index type, which `take` needs not
        convert."""
        kept = self._kept.get(key)
        if kept is not None and kept[2] is rows and kept[0] is nodes and kept[1] == nodes.topology_version:
            return kept[3]
        found = nodes.label_column(key).cells.take(rows).astype(np.intp)
        self._kept[key] = nodes, nodes.topology_version, rows, found
        return found
