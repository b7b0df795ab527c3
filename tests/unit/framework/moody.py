"""Plugins that change their mind, for tests of what is kept: each reads a number that a test changes, as
others read counts or objects."""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from podyard.cluster.node_table import PlacedPod
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.interfaces import PreFilterResult, Rows, Scope, Scores, Verdicts
from podyard.framework.normalizing import default_normalize
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, Status

CROWD: StateKey[int] = StateKey("Crowd")
MOOD: StateKey[int] = StateKey("Mood")
LIKED: StateKey[int] = StateKey("Liked")


def pods_in_all(cluster: Snapshot) -> int:
    """Pods that are placed on nodes of the table."""
    return int(cluster.nodes.pod_count.sum())


class Crowd:
    """Takes a node if it has fewer pods than a share of all pods, plus two: what PreFilter counts, trials
    change. No token."""

    name: ClassVar[str] = "Crowd"
    scope: ClassVar[Scope] = "cluster"

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        state.write(CROWD, pods_in_all(cluster))
        return PreFilterResult()

    def add_pod(self, state: CycleState, pod: PodInfo, added: PlacedPod, row: int, cluster: Snapshot) -> Status:
        state.write(CROWD, state.read(CROWD) + 1)
        return statuses.SUCCESS

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PlacedPod, row: int, cluster: Snapshot) -> Status:
        state.write(CROWD, state.read(CROWD) - 1)
        return statuses.SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return (cluster.nodes.pod_count[rows] > state.read(CROWD) // 3).astype(np.int64)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(cluster.nodes.pod_count.item(row) > state.read(CROWD) // 3)

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unschedulable("crowded")


class Mood:
    """What it says depends on `mood`, which is its token: SKIP, a rejection, some names, or nodes by their
    place in the table."""

    name: ClassVar[str] = "Mood"
    scope: ClassVar[Scope] = "node"

    def __init__(self) -> None:
        self.mood = 0

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        return self.mood

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        state.write(MOOD, self.mood)
        match self.mood % 8:
            case 1:
                return PreFilterResult(status=statuses.SKIP)
            case 2:
                return PreFilterResult(status=statuses.unschedulable("not today"))
            case 3:
                return PreFilterResult(status=statuses.unresolvable("never"))
            case 4:
                return PreFilterResult(node_names=frozenset(("n0", "n2", "n5", "elsewhere")))
            case 5:
                return PreFilterResult(node_names=frozenset())
            case _:
                return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return np.array([self.filter_one(state, pod, cluster, row) for row in rows.tolist()], dtype=np.int64)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return (state.read(MOOD) + row) % 4 % 3

    def verdict(self, state: CycleState, code: int) -> Status:
        code_of = Code.UNSCHEDULABLE if code == 1 else Code.UNRESOLVABLE
        return Status(code=code_of, reasons=(f"mood {state.read(MOOD)}, code {code}",))


class Liking:
    """Scores by what PreScore saw of the feasible nodes, and by `taste`, which is its token. Normalises by
    extremes, or not at all."""

    name: ClassVar[str] = "Liking"
    scope: ClassVar[Scope] = "cluster"
    by_extremes: ClassVar[bool] = True

    def __init__(self) -> None:
        self.taste = 0

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def score_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        return self.taste

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        if self.taste % 5 == 4:
            return statuses.SKIP
        state.write(LIKED, len(feasible) + self.taste)
        return statuses.SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return (rows.astype(np.int64) * state.read(LIKED)) % 7 + cluster.nodes.pod_count[rows]

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return row * state.read(LIKED) % 7 + cluster.nodes.pod_count.item(row)

    def normalize(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, scores: Scores) -> Scores:
        return default_normalize(scores)


class Sized:
    """Scores by the size of the node, on a scale of its own, which is its token. Looks at the node alone, and
    normalises by extremes."""

    name: ClassVar[str] = "Sized"
    scope: ClassVar[Scope] = "node"
    by_extremes: ClassVar[bool] = True

    def __init__(self) -> None:
        self.scale = 1

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def score_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        return self.scale

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return np.array([self.score_one(state, pod, cluster, row) for row in rows.tolist()], dtype=np.int64)

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return cluster.nodes.room.allocatable.item(0, row) * self.scale // 500 % 7

    def normalize(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, scores: Scores) -> Scores:
        lowest, highest = scores.min(), scores.max()
        return np.zeros_like(scores) if lowest == highest else (scores - lowest) * 100 // (highest - lowest)


class Ranked:
    """Scores by pods on the node; its normalisation depends on all scores, so it has no `by_extremes`."""

    name: ClassVar[str] = "Ranked"
    scope: ClassVar[Scope] = "row"

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return cluster.nodes.pod_count[rows] * 3

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return cluster.nodes.pod_count.item(row) * 3

    def normalize(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, scores: Scores) -> Scores:
        return np.searchsorted(np.sort(scores), scores).astype(np.int64)
