"""How evenly a node's resources are used, with the pod and without: on all nodes at once and on one.

The arithmetic is that of the reference, in 64-bit floats and in the same order, since its results are cut to whole numbers.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go (balancedResourceScorer).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.framework.interfaces import Rows, Scores
from podyard.framework.normalizing import MAX_SCORE
from podyard.plugins.node_resources_fit.allocation import Counted

HALF = MAX_SCORE // 2

Floats = NDArray[np.float64]


def scores(resources: Sequence[Counted], nodes: NodeTable, rows: Rows) -> Scores:
    """For each row: 50 if the pod makes nothing better nor worse is 75; 50 at the least, 100 at the most."""
    with_pod: list[Floats] = []
    without: list[Floats] = []
    present: list[NDArray[np.bool_]] = []
    for resource, _, amount in resources:
        line = nodes.resource_of.get(resource)
        if line is not None:
            allocatable, used = nodes.allocatable[line][rows], nodes.requested[line][rows]
            there = allocatable != 0
            whole = np.maximum(allocatable, 1).astype(np.float64)
            present.append(there)
            with_pod.append(np.where(there, np.minimum((used + amount).astype(np.float64) / whole, 1.0), 0.0))
            without.append(np.where(there, np.minimum(used.astype(np.float64) / whole, 1.0), 0.0))
    if not present:
        return np.full(len(rows), HALF + HALF // 2, dtype=np.int64)
    there = np.array(present)
    change = _evenness(np.array(with_pod), there) - _evenness(np.array(without), there)
    return HALF + (HALF + change) // 2


def score_one(resources: Sequence[Counted], nodes: NodeTable, row: int) -> int:
    """The same for one row."""
    with_pod: list[float] = []
    without: list[float] = []
    for resource, _, amount in resources:
        line = nodes.resource_of.get(resource)
        allocatable = 0 if line is None else nodes.allocatable.item(line, row)
        if line is not None and allocatable:
            used, whole = nodes.requested.item(line, row), float(allocatable)
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


def _evenness(shares: Floats, present: NDArray[np.bool_]) -> Scores:
    """The same for each column. Shares of absent resources are 0 and do not count."""
    counts = present.sum(axis=0)
    deviations = np.zeros(shares.shape[1], dtype=np.float64)
    if len(shares) > 1:
        pairs = counts == 2
        deviations[pairs] = _difference(shares[:, pairs], present[:, pairs])
    if len(shares) > 2:
        many = counts > 2
        deviations[many] = _deviation(shares[:, many], present[:, many], counts[many])
    return ((1 - deviations) * float(MAX_SCORE)).astype(np.int64)


def _difference(shares: Floats, present: NDArray[np.bool_]) -> Floats:
    """Of two shares a column; the absent ones are 0 and change neither sum."""
    first = present & (present.cumsum(axis=0) == 1)
    signed = np.where(first, shares, -shares)
    return np.abs(_in_order(signed) / 2)


def _deviation(shares: Floats, present: NDArray[np.bool_], counts: NDArray[np.int64]) -> Floats:
    mean = _in_order(shares) / counts
    return np.sqrt(_in_order(np.where(present, (shares - mean) * (shares - mean), 0.0)) / counts)


def _in_order(lines: Floats) -> Floats:
    """The sum of all lines, added one after the other as a loop does."""
    total = np.zeros(lines.shape[1], dtype=np.float64)
    for line in lines:
        total = total + line
    return total
