"""How evenly a node's resources are used, with the pod and without: on all nodes at once and on one.

The arithmetic is that of the reference, in 64-bit floats and in the same order, since its results are cut to
whole numbers.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go
(balancedResourceScorer).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.framework.interfaces import Rows, Scores
from podyard.framework.normalizing import MAX_SCORE
from podyard.plugins.node_resources_fit.allocation import Counted

HALF = MAX_SCORE // 2

Floats = NDArray[np.float64]


class Shares(NamedTuple):
    """The used shares of one resource, by row."""

    with_pod: Floats
    without: Floats
    missing: NDArray[np.bool_] | None
    """Rows that have none of it, whose shares mean nothing; `None`: all have some."""


def scores(resources: Sequence[Counted], nodes: NodeTable, rows: Rows) -> Scores:
    """For each row 50 to 100: 75 if the pod leaves the node as even as it is, more if it makes it more
    even."""
    shares = [share for one in resources if (share := _shares(one, nodes, rows)) is not None]
    if all(share.missing is None for share in shares):
        return _changes([share.with_pod for share in shares], [share.without for share in shares], len(rows))
    missing = np.zeros(len(rows), dtype=np.int64)
    for bit, share in enumerate(shares):
        if share.missing is not None:
            missing |= share.missing.astype(np.int64) << bit
    found = np.zeros(len(rows), dtype=np.int64)
    for pattern in np.unique(missing).tolist():
        alike = np.flatnonzero(missing == pattern)
        there = [share for bit, share in enumerate(shares) if not pattern >> bit & 1]
        with_pod, without = [share.with_pod[alike] for share in there], [share.without[alike] for share in there]
        found[alike] = _changes(with_pod, without, len(alike))
    return found


def _shares(counted: Counted, nodes: NodeTable, rows: Rows) -> Shares | None:
    """`None` if no node has the resource."""
    room = nodes.room
    line = room.line(counted.resource)
    if line is None:
        return None
    allocatable = room.allocatable[line].take(rows)
    whole = allocatable.astype(np.float64)
    missing = None
    if not allocatable.all():
        missing = allocatable == 0
        whole[missing] = 1.0
    used = room.requested[line].take(rows)
    more = used.view(np.uint64) + np.uint64(counted.amount)  # exact, rounded once: as `score_one` has it
    return Shares(_share(more.astype(np.float64), whole), _share(used.astype(np.float64), whole), missing)


def _changes(with_pod: Sequence[Floats], without: Sequence[Floats], rows: int) -> Scores:
    """The same for rows that have all of these resources."""
    if len(with_pod) < 2:
        return np.full(rows, HALF + HALF // 2, dtype=np.int64)
    change = _evenness(with_pod)
    change -= _evenness(without)
    change += HALF
    change >>= 1
    change += HALF
    return change


def _share(used: Floats, whole: Floats) -> Floats:
    """The used share, at most 1; takes the place of `used`."""
    used /= whole
    return np.minimum(used, 1.0, out=used)


def score_one(resources: Sequence[Counted], nodes: NodeTable, row: int) -> int:
    """The same for one row."""
    room = nodes.room
    with_pod: list[float] = []
    without: list[float] = []
    for resource, _, amount in resources:
        line = room.line_of.get(resource)
        if line is None:
            line = room.line(resource)
        allocatable = 0 if line is None else room.allocatable.item(line, row)
        if line is not None and allocatable:
            used, whole = room.requested.item(line, row), float(allocatable)
            with_pod.append(min(float(used + amount) / whole, 1.0))
            without.append(min(float(used) / whole, 1.0))
    return HALF + (HALF + evenness(with_pod) - evenness(without)) // 2


def evenness(shares: Sequence[float]) -> int:
    """100 minus the standard deviation of the used shares in percent, rounded down: 50 to 100."""
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = _sum(shares) / float(len(shares))
        deviation = math.sqrt(_sum([(share - mean) * (share - mean) for share in shares]) / float(len(shares)))
    return int((1 - deviation) * float(MAX_SCORE))


def _sum(values: Sequence[float]) -> float:
    """In order and rounded at each step, unlike `sum`, which compensates since Python 3.12."""
    total = 0.0
    for value in values:
        total += value
    return total


def _evenness(shares: Sequence[Floats]) -> Scores:
    """The same for at least two arrays of shares, place by place."""
    if len(shares) == 2:
        deviations = shares[0] - shares[1]
        deviations /= 2
        np.abs(deviations, out=deviations)
    else:
        mean = _total(shares) / float(len(shares))
        deviations = np.sqrt(_total([(share - mean) * (share - mean) for share in shares]) / float(len(shares)))
    np.subtract(1, deviations, out=deviations)
    deviations *= float(MAX_SCORE)
    return deviations.astype(np.int64)


def _total(arrays: Sequence[Floats]) -> Floats:
    """Added one after the other, as a loop over places would."""
    total = np.zeros(len(arrays[0]), dtype=np.float64)
    for array in arrays:
        total += array
    return total
