"""How the use of a node's resources makes a score: the three scoring strategies, on all nodes at once and on
one.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/noderesources: least_allocated.go,
most_allocated.go, requested_to_capacity_ratio.go; plugins/helper/shape_score.go.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.cluster.room import CPU, MEMORY
from podyard.framework.interfaces import Rows, Scores
from podyard.framework.normalizing import MAX_SCORE
from podyard.plugins.node_resources_fit.allocation import Counted
from podyard.plugins.node_resources_fit.args import ScoringStrategy, UtilizationShapePoint

MAX_SHAPE_SCORE: Final = 10
"""Highest score in a shape of RequestedToCapacityRatio. Source: config.MaxCustomPriorityScore."""

EXACT: Final = 2**45
"""35 T: no node has so many milli-CPU, or bytes of memory."""

HUGE: Final = 2**57
"""144 P: above it, 100 times a part may be more than 64 bits hold."""

Resources: TypeAlias = Sequence[Counted]
Amounts: TypeAlias = NDArray[np.uint64]
"""Amounts of one resource by row. Two of int64 added up are not more than uint64 holds: no sum wraps."""


class Strategy(Protocol):
    """A score of 0 to 100 for the node if it took the pod. A resource that the node does not have is left
    out."""

    def scores(self, resources: Resources, nodes: NodeTable, rows: Rows) -> Scores:
        """For each row."""
        ...

    def score_one(self, resources: Resources, nodes: NodeTable, row: int) -> int:
        """The same for one row."""
        ...


class MeanShare:
    """The weighted mean of shares in percent, each rounded down. At most all of a resource is taken.

    LeastAllocated counts the free shares, MostAllocated the taken ones.
    """

    def __init__(self, *, free: bool) -> None:
        self._free = free

    def scores(self, resources: Resources, nodes: NodeTable, rows: Rows) -> Scores:
        points = np.zeros(len(rows), dtype=np.int64)
        weights: Scores | int = 0
        for counted in resources:
            found = _columns(counted, nodes, rows)
            if found is not None:
                taken, whole = found
                everywhere = bool(whole.all())
                part = np.minimum(taken, whole)
                if self._free:
                    part = whole - part
                share = _percent(part, whole if everywhere else np.maximum(whole, np.uint64(1)))
                points += share if counted.weight == 1 else share * counted.weight
                weights = weights + (counted.weight if everywhere else np.where(whole != 0, counted.weight, 0))
        return _mean(points, weights)

    def score_one(self, resources: Resources, nodes: NodeTable, row: int) -> int:
        points = weights = 0
        room = nodes.room
        for resource, weight, amount in resources:  # `_cells` written out: this is asked in every cycle
            line = room.line_of.get(resource)
            if line is None:
                line = room.line(resource)
            whole = 0 if line is None else room.allocatable.item(line, row)
            if line is not None and whole:
                used = room.nonzero if line <= MEMORY else room.requested
                taken = min(used.item(line, row) + amount, whole)
                points += (whole - taken if self._free else taken) * MAX_SCORE // whole * weight
                weights += weight
        return points // weights if weights else 0


class RequestedToCapacityRatio:
    """The weighted mean, rounded half up, of what the shape says of each taken share in whole percent.

    Resources for which it says 0 do not count in the mean.
    """

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        """
        :param shape: by strictly rising utilization
        """
        self._by_percent = [shape_score(shape, percent) for percent in range(101)]
        self._table = np.array(self._by_percent, dtype=np.int64)

    def scores(self, resources: Resources, nodes: NodeTable, rows: Rows) -> Scores:
        points, weights = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        for counted in resources:
            found = _columns(counted, nodes, rows)
            if found is not None:
                taken, whole = found
                score = self._table[_percent(np.minimum(taken, whole), np.maximum(whole, np.uint64(1)))]
                score[whole == 0] = 0
                points += score * counted.weight
                weights += np.where(score > 0, counted.weight, 0)
        return (2 * points + weights) // np.maximum(2 * weights, 1)

    def score_one(self, resources: Resources, nodes: NodeTable, row: int) -> int:
        points = weights = 0
        for counted in resources:
            taken, whole = _cells(counted, nodes, row)
            score = self._by_percent[min(taken, whole) * MAX_SCORE // whole] if whole else 0
            if score > 0:
                points += score * counted.weight
                weights += counted.weight
        return (2 * points + weights) // (2 * weights) if weights else 0


def strategy(args: ScoringStrategy) -> Strategy:
    """The strategy that the plugin's arguments name."""
    if args.type == "RequestedToCapacityRatio" and args.requested_to_capacity_ratio is not None:
        return RequestedToCapacityRatio(args.requested_to_capacity_ratio.shape)
    return MeanShare(free=args.type == "LeastAllocated")


def shape_score(shape: Sequence[UtilizationShapePoint], percent: int) -> int:
    """What a shape says, 0 to 100: straight lines between its points, level before the first and after the
    last.

    Divisions round towards zero, as Go's do. Source: helper.BuildBrokenLinearFunction.
    """
    scale = MAX_SCORE // MAX_SHAPE_SCORE
    before = shape[0]
    for point in shape:
        if percent <= point.utilization:
            rise, run = (point.score - before.score) * scale, point.utilization - before.utilization
            if run == 0:
                return point.score * scale
            along = abs(rise) * (percent - before.utilization) // run
            return before.score * scale + (along if rise > 0 else -along)
        before = point
    return before.score * scale


def _columns(counted: Counted, nodes: NodeTable, rows: Rows) -> tuple[Amounts, Amounts] | None:
    """(taken with the pod, all there is) by row; `None` if no node has the resource."""
    room = nodes.room
    line = room.line(counted.resource)
    if line is None:
        return None
    used = room.nonzero if line in (CPU, MEMORY) else room.requested
    taken = used[line].take(rows).view(np.uint64) + np.uint64(counted.amount)
    return taken, room.allocatable[line].take(rows).view(np.uint64)


def _cells(counted: Counted, nodes: NodeTable, row: int) -> tuple[int, int]:
    """The same for one row; (0, 0) if no node has the resource."""
    room = nodes.room
    line = room.line(counted.resource)
    if line is None:
        return 0, 0
    used = room.nonzero if line in (CPU, MEMORY) else room.requested
    return used.item(line, row) + counted.amount, room.allocatable.item(line, row)


def _percent(part: Amounts, whole: Amounts) -> Scores:
    """Rounded down; `part` is 0 to `whole`, which is at least 1.

    Floats divide five times as fast as whole numbers. Below EXACT they give the same: 100 times the part is
    exact, and a quotient that is no whole number is farther from the next one than its rounding error. From
    HUGE on, Python's own integers divide.
    """
    largest = int(whole.max(initial=0))
    if largest < EXACT:
        hundredfold = (part.view(np.int64) * MAX_SCORE).astype(np.float64)
        return (hundredfold / whole.view(np.int64).astype(np.float64)).astype(np.int64)
    found = (part * np.uint64(MAX_SCORE) // whole).view(np.int64)
    if largest >= HUGE:
        for row in np.flatnonzero(whole >= HUGE).tolist():
            found[row] = int(part[row]) * MAX_SCORE // int(whole[row])
    return found


def _mean(points: Scores, weights: Scores | int) -> Scores:
    if isinstance(weights, int):
        return points // max(weights, 1)  # by one number: numpy divides by it ten times as fast as by an array
    return points // np.maximum(weights, 1)
