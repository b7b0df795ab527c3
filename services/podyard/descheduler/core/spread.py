"""How evenly pods are spread: how much of nodes is requested, over all nodes that have any of it."""

from typing import Final, NamedTuple, TypeAlias

import numpy as np

from podyard.cluster.node_table import NodeTable
from podyard.cluster.room import CPU, MEMORY

_LINES: Final = {"cpu": CPU, "memory": MEMORY}


class Share(NamedTuple):
    """Percent of nodes."""

    least: float
    mean: float
    most: float
    deviation: float
    """Standard deviation: 0 if all are used alike."""


Spread: TypeAlias = dict[str, Share]
"""By resource."""


def of(table: NodeTable) -> Spread:
    """As the table is now."""
    found: Spread = {}
    for name, line in _LINES.items():
        there = table.live & (table.room.allocatable[line] > 0)
        if there.any():
            shares = 100.0 * table.room.requested[line][there] / table.room.allocatable[line][there]
            low, mean, high, deviation = shares.min(), shares.mean(), shares.max(), np.std(shares)
            found[name] = Share(*(round(float(one), 1) for one in (low, mean, high, deviation)))
    return found
