"""Adapters for plugins that look at one node at a time, or only at all nodes at once.

Derive from one of these and write one of the two methods; the other is made from it.
"""

from typing import ClassVar

import numpy as np

from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import Rows, Scope, Scores, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot


class FilterOneNode:
    """A Filter from `filter_one`."""

    scope: ClassVar[Scope] = "row"

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        """0 if the node of this row takes the pod, else a positive code."""
        raise NotImplementedError

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return np.array([self.filter_one(state, pod, cluster, row) for row in rows.tolist()], dtype=np.int64)


class FilterAllNodes:
    """A Filter from `filter`."""

    scope: ClassVar[Scope] = "row"

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        """For each row: 0 if the node takes the pod, else a positive code."""
        raise NotImplementedError

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(self.filter(state, pod, cluster, np.array([row], dtype=np.intp))[0])


class NoPreference:
    """A Score for which all nodes are alike."""

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return np.zeros(len(rows), dtype=np.int64)

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return 0


class ScoreOneNode:
    """A Score from `score_one`."""

    scope: ClassVar[Scope] = "row"

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        """The node's points."""
        raise NotImplementedError

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return np.array([self.score_one(state, pod, cluster, row) for row in rows.tolist()], dtype=np.int64)


class ScoreAllNodes:
    """A Score from `score`."""

    scope: ClassVar[Scope] = "row"

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        """The points of each row."""
        raise NotImplementedError

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(self.score(state, pod, cluster, np.array([row], dtype=np.intp))[0])
