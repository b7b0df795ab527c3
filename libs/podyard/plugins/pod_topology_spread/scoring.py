"""How many matching pods the domains of a node have, by soft constraints: the part of Score. Fewer is better.

Source: kube-scheduler v1.36.2, podtopologyspread/scoring.go. Floating point: the reference's operations in
its order; the logarithm is the platform's, which may differ in the last bit.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.domain_sums import DomainSums
from podyard.cluster.node_columns import ABSENT, LabelColumn
from podyard.cluster.node_table import NodeTable
from podyard.cluster.selector_counts import SelectorCount, SelectorCounts
from podyard.framework.normalizing import MAX_SCORE
from podyard.plugins.pod_topology_spread.constraints import HOSTNAME
from podyard.plugins.pod_topology_spread.plans import Plan, Planned

HALF: Final = 0.5
EMPTY: Final = ""
"""The reference takes a node without the label for one whose value is empty, when it counts domains and pods
in them."""


class HostPart:
    """A soft constraint on the host name: pods are counted by node, whatever the label's value and the
    inclusion policies."""

    __slots__ = ("_column", "_count", "_offset", "_weight")

    def __init__(self, planned: Planned, column: LabelColumn, count: SelectorCount, size: int) -> None:
        self._column = column
        self._count = count
        self._weight = math.log(size + 2)
        self._offset = float(planned.constraint.max_skew - 1)

    def points(self, rows: NDArray[np.intp], *, labelled: bool) -> NDArray[np.float64]:
        """By node; 0 without the label.

        :param labelled: all nodes have it
        """
        points = self._count.rows.take(rows) * np.float64(self._weight)
        points += self._offset
        return points if labelled else np.where(self._column.cells.take(rows) == ABSENT, 0.0, points)

    def point(self, row: int) -> float:
        """The same for one node."""
        if self._column.cells.item(row) == ABSENT:
            return 0.0
        return self._count.rows.item(row) * self._weight + self._offset


class DomainPart:
    """A soft constraint on another label: pods are counted by domain."""

    __slots__ = ("_domains", "_table")

    def __init__(self, planned: Planned, sums: DomainSums, size: int, homeless: int) -> None:
        """
        :param size: domains that feasible nodes are in
        :param homeless: matching pods on nodes without the label: they count for the empty value
        """
        self._domains = sums.domains
        weight = np.float64(math.log(size + 2))
        self._table: NDArray[np.float64] = sums.sums * weight
        empty = sums.domains.column.ids.get(EMPTY)
        if empty is not None and homeless:
            self._table[empty] = (sums.sums[empty] + homeless) * weight
        self._table += float(planned.constraint.max_skew - 1)
        self._table[ABSENT] = 0.0

    def points(self, rows: NDArray[np.intp], *, labelled: bool) -> NDArray[np.float64]:
        """By node; 0 without the label.

        :param labelled: makes no difference
        """
        return self._domains.of(self._table, rows)

    def rounded(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """If it is the only constraint: the scores."""
        return self._domains.of(rounded(self._table), rows)

    def point(self, row: int) -> float:
        """The same for one node."""
        return self._table.item(self._domains.cells.item(row))


class Labelled:
    """What the labels of the feasible nodes say about spreading, whatever pods are on them. Never changed."""

    __slots__ = ("_feasible", "_version", "columns", "ignored", "labelled", "sizes")

    def __init__(self, plan: Plan, nodes: NodeTable, feasible: NDArray[np.intp]) -> None:
        self._feasible = feasible
        self._version = nodes.topology_version
        self.columns = [nodes.label_column(planned.constraint.topology_key) for planned in plan.soft]
        lacking = missing(self.columns, feasible)
        self.labelled = lacking is None
        """Every feasible node has the labels of all constraints."""
        self.ignored = lacking is not None and plan.all_labels
        """Some feasible nodes are ignored because they lack a label."""
        scored = feasible[~lacking] if lacking is not None and plan.all_labels else feasible
        self.sizes = [
            len(scored) if planned.constraint.topology_key == HOSTNAME else _size(column, scored)
            for planned, column in zip(plan.soft, self.columns, strict=True)
        ]
        """By constraint: the domains of the feasible nodes that are not ignored."""

    def holds(self, nodes: NodeTable, feasible: NDArray[np.intp]) -> bool:
        """Whether it is all the same for these nodes."""
        return self._version == nodes.topology_version and np.array_equal(self._feasible, feasible)


class Spreading:
    """All soft constraints of a pod, for one set of feasible nodes. Never changed; asked about feasible nodes
    only."""

    __slots__ = ("_parts", "labels")

    def __init__(self, parts: Sequence[HostPart | DomainPart], labels: Labelled) -> None:
        self._parts = parts
        self.labels = labels

    def scores(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Sums of the constraints' points, rounded; 0 for ignored nodes."""
        first, *others = self._parts
        if not others and isinstance(first, DomainPart):
            return first.rounded(rows)
        total = first.points(rows, labelled=self.labels.labelled)
        for part in others:
            total += part.points(rows, labelled=self.labels.labelled)
        scores = rounded(total)
        ignored = self.ignored(rows)
        if ignored is not None:
            scores[ignored] = 0
        return scores

    def score(self, row: int) -> int:
        """The same for one node."""
        if self.labels.ignored and any(column.cells.item(row) == ABSENT for column in self.labels.columns):
            return 0
        total = 0.0
        for part in self._parts:
            total += part.point(row)
        whole = math.floor(total)
        return whole + (total - whole >= HALF)

    def ignored(self, rows: NDArray[np.intp]) -> NDArray[np.bool_] | None:
        """Which nodes get no points in the end; `None`: all get some."""
        return missing(self.labels.columns, rows) if self.labels.ignored else None


def spreading(plan: Plan, nodes: NodeTable, feasible: NDArray[np.intp], before: Spreading | None) -> Spreading:
    """The soft constraints of a pod. Source: PreScore, initPreScoreState.

    :param before: of a pod like this one, the last time
    """
    same = before is not None and before.labels.holds(nodes, feasible)
    labels = before.labels if before is not None and same else Labelled(plan, nodes, feasible)
    counts = nodes.index(SelectorCounts)
    parts: list[HostPart | DomainPart] = []
    for planned, column, size in zip(plan.soft, labels.columns, labels.sizes, strict=True):
        if planned.constraint.topology_key == HOSTNAME:
            parts.append(HostPart(planned, column, counts.of(planned.pods), size))
        else:
            sums = counts.sums(planned.pods, planned.constraint.topology_key, planned.among)
            homeless = 0 if plan.all_labels else _homeless(planned, column, nodes)
            parts.append(DomainPart(planned, sums, size, homeless))
    return Spreading(parts, labels)


def rounded(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Source: math.Round: halves away from zero; there are no negative points."""
    whole = np.floor(points)
    scores = whole.astype(np.int64)
    scores += points - whole >= HALF
    return scores


def missing(columns: Sequence[LabelColumn], rows: NDArray[np.intp]) -> NDArray[np.bool_] | None:
    """Which nodes lack one of the labels; `None`: none does."""
    found: NDArray[np.bool_] | None = None
    for column in columns:
        lacking = column.cells.take(rows) == ABSENT
        if lacking.any():
            found = lacking if found is None else found | lacking
    return found


def normalized(scores: NDArray[np.int64], ignored: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """The fewest pods get 100, ignored nodes 0. Source: NormalizeScore."""
    counted = scores if ignored is None else scores[~ignored]
    if not len(counted):
        return np.zeros_like(scores)
    lowest, highest = int(counted.min()), int(counted.max())
    if highest == 0:
        points = np.full_like(scores, MAX_SCORE)
    elif highest - lowest < len(scores):
        steps = MAX_SCORE * np.arange(highest, lowest - 1, -1) // highest
        points = steps.take(scores - lowest, mode="clip")
    else:
        points = MAX_SCORE * (highest + lowest - scores) // highest
    if ignored is not None:
        points[ignored] = 0
    return points


def _size(column: LabelColumn, scored: NDArray[np.intp]) -> int:
    """How many different values the nodes have. Missing and empty are one."""
    found = np.zeros(len(column.values), dtype=np.bool_)
    found[column.cells.take(scored)] = True
    empty = column.ids.get(EMPTY)
    if empty is not None and found[ABSENT]:
        found[empty] = False
    return int(np.count_nonzero(found))


def _homeless(planned: Planned, column: LabelColumn, nodes: NodeTable) -> int:
    """Matching pods on nodes without the label that count otherwise; only asked if some node's value is
    empty."""
    if EMPTY not in column.ids:
        return 0
    mask = nodes.live if planned.among is None else planned.among.mask(nodes)
    rows = nodes.index(SelectorCounts).of(planned.pods).rows
    return int(rows[mask & (column.cells == ABSENT)].sum())
