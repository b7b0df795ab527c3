"""How good every feasible node is for one pod, kept for pods of equal signature and brought up to date row by row.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunPreScorePlugins, RunScorePlugins), schedule_one.go
(prioritizeNodes, selectHost).
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_columns import NameOrder
from podyard.framework.interfaces import Rows, Scores
from podyard.framework.judgement import PASSES, ROWS_ONE_BY_ONE, Judgement
from podyard.framework.normalizing import MAX_SCORE
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Profile, WeightedScore
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError
from podyard.proto.decisions import NodeScore

INFEASIBLE: Final = -1
"""Total of a row that does not take the pod."""
ALIKE: Final = 1
"""Total of every feasible node if no plugin scores. Source: schedule_one.go, prioritizeNodes."""


class Scoreboard:
    """Scores of one signature.

    Invariant after `refresh`: `totals` is INFEASIBLE exactly for rows that the judgement does not pass, else the weighted sum of normalised
    scores; `_best` are the places (by node name) of the rows with the highest total, ascending.
    """

    def __init__(self, profile: Profile, judgement: Judgement, cluster: Snapshot) -> None:
        self._profile = profile
        self._judgement = judgement
        self._cluster = cluster
        self._active: tuple[WeightedScore, ...] = ()
        self._whole = any(entry.plugin.scope == "cluster" for entry in profile.score)
        self._version = -1
        self._order: NameOrder | None = None
        self.totals: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._raw: list[Scores] = []
        self._points: list[Scores] = []
        self._top = INFEASIBLE
        self._best: list[int] = []

    def refresh(self, pod: PodInfo) -> None:
        """Score again what changed since the last time; everything the first time.

        :raises PluginError: if a PreScore fails or a score is not 0 to 100 in the end
        """
        nodes = self._cluster.nodes
        if self._version == nodes.version:
            return
        changed = None
        if self._version >= 0 and not self._whole and len(self.totals) == nodes.capacity and self._order is nodes.order:
            changed = nodes.changed_since(self._version)
        if changed is None or len(changed) > ROWS_ONE_BY_ONE:
            self._score_all(pod)
        else:
            self._score_rows(pod, changed)
        self._version = nodes.version

    def best(self) -> Sequence[int]:
        """Rows with the highest total, in order of node names."""
        rows = self._cluster.nodes.order.rows
        return [int(rows[place]) for place in self._best]

    def best_count(self) -> int:
        """How many rows share the highest total."""
        return len(self._best)

    def best_at(self, index: int) -> int:
        """One of the rows with the highest total, by its place in the order of node names."""
        return int(self._cluster.nodes.order.rows[self._best[index]])

    def leaders(self, chosen: int, count: int) -> tuple[NodeScore, ...]:
        """The chosen node and the next best ones, best first, equal ones by name; at most `count`."""
        rows = [chosen]
        for place in self._best[: count + 1]:
            row = int(self._cluster.nodes.order.rows[place])
            if row != chosen and len(rows) < count:
                rows.append(row)
        if len(rows) < count:
            rows += self._runners_up(rows, count)
        return tuple(self.node_score(row) for row in rows[:count])

    def node_score(self, row: int) -> NodeScore:
        """Total and points by plugin of one feasible row."""
        points = {entry.plugin.name: self._points[at].item(row) for at, entry in enumerate(self._active)}
        return NodeScore(node=self._cluster.nodes.names[row], total=self.totals.item(row), plugins=points)

    # ---- all rows ------------------------------------------------------------------------------------------------------------

    def _score_all(self, pod: PodInfo) -> None:
        nodes = self._cluster.nodes
        rows = self._judgement.feasible
        self._active = self._pre_score(pod, rows)
        self._raw = []
        for entry in self._active:
            raw = np.zeros(nodes.capacity, dtype=np.int64)
            try:
                raw[rows] = entry.plugin.score(self._judgement.state, pod, self._cluster, rows)
            except Exception as fault:  # the boundary to plugins
                raise PluginError.wrapping(entry.plugin.name, "Score", fault) from fault
            self._raw.append(raw)
        self._normalize(pod, rows)

    def _pre_score(self, pod: PodInfo, rows: Rows) -> tuple[WeightedScore, ...]:
        state = self._judgement.state
        state.skip_score.clear()
        for plugin in self._profile.pre_score:
            status = plugin.pre_score(state, pod, self._cluster, rows)
            if status.code == Code.SKIP:
                state.skip_score.add(plugin.name)
            elif not status.ok:
                raise PluginError(plugin.name, "PreScore", status.message or f"answered {status.code.label}")
        return tuple(entry for entry in self._profile.score if entry.plugin.name not in state.skip_score)

    def _normalize(self, pod: PodInfo, rows: Rows) -> None:
        """From raw scores to points, totals and the best, for all feasible rows."""
        nodes = self._cluster.nodes
        self._points = []
        self.totals = np.full(nodes.capacity, INFEASIBLE, dtype=np.int64)
        self.totals[rows] = 0 if self._active else ALIKE
        for raw, entry in zip(self._raw, self._active, strict=True):
            scores = raw[rows]
            if entry.normalizer is not None:
                scores = entry.normalizer.normalize(self._judgement.state, pod, self._cluster, rows, scores)
            if len(scores) and (scores.min() < 0 or scores.max() > MAX_SCORE):
                raise _out_of_range(entry.plugin.name, int(scores[(scores < 0) | (scores > MAX_SCORE)][0]))
            points = np.zeros(nodes.capacity, dtype=np.int64)
            points[rows] = scores * entry.weight
            self.totals += points
            self._points.append(points)
        self._find_best()

    def _find_best(self) -> None:
        self._order = self._cluster.nodes.order
        self._top = int(self.totals.max())
        rows = np.flatnonzero(self.totals == self._top) if self._top > INFEASIBLE else np.zeros(0, dtype=np.intp)
        self._best = np.sort(self._order.rank[rows]).tolist()

    # ---- some rows -----------------------------------------------------------------------------------------------------------

    def _score_rows(self, pod: PodInfo, changed: Sequence[int]) -> None:
        renormalize = False
        for row in changed:
            if self._judgement.rejector.item(row) == PASSES:
                renormalize |= self._score_row(pod, row)
            else:
                renormalize |= self._drop_row(row)
        if renormalize:
            self._normalize(pod, self._judgement.feasible)
        elif not self._best:
            self._find_best()

    def _score_row(self, pod: PodInfo, row: int) -> bool:
        """One feasible row; True if normalisation must be done again, because what it depends on is another."""
        joined = self.totals.item(row) == INFEASIBLE
        renormalize = False
        total = 0 if joined else self.totals.item(row)
        for raw, points, entry in zip(self._raw, self._points, self._active, strict=True):
            score = entry.plugin.score_one(self._judgement.state, pod, self._cluster, row)
            if not joined and raw.item(row) == score:
                continue
            raw[row] = score
            if entry.normalizer is not None:
                renormalize = True
            elif not 0 <= score <= MAX_SCORE:
                raise _out_of_range(entry.plugin.name, score)
            total += score * entry.weight - points.item(row)
            points[row] = score * entry.weight
        if not renormalize:
            self._set_total(row, total if self._active else ALIKE)
        return renormalize

    def _drop_row(self, row: int) -> bool:
        if self.totals.item(row) == INFEASIBLE:
            return False
        for points in self._points:
            points[row] = 0
        self._set_total(row, INFEASIBLE)
        return any(entry.normalizer is not None for entry in self._active)

    def _set_total(self, row: int, total: int) -> None:
        before = self.totals.item(row)
        if total == before:
            return
        self.totals[row] = total
        if total > self._top:
            self._top, self._best = total, [self._place(row)]
            return
        if before == self._top:
            place = self._place(row)
            del self._best[bisect_left(self._best, place)]
        if total == self._top and total != INFEASIBLE:
            insort(self._best, self._place(row))

    def _place(self, row: int) -> int:
        return self._cluster.nodes.order.rank.item(row)

    def _runners_up(self, taken: Sequence[int], count: int) -> list[int]:
        """The best `count` rows without those in `taken`, which are among the best."""
        totals, rank = self.totals, self._cluster.nodes.order.rank
        wanted = min(count, self._judgement.feasible_count)
        bar = int(np.partition(totals, len(totals) - wanted)[len(totals) - wanted])
        above, level = np.flatnonzero(totals > bar), np.flatnonzero(totals == bar)
        if len(level) > count:
            level = level[np.argpartition(rank[level], count)[: count + 1]]
        rows = [row for row in (*above.tolist(), *level.tolist()) if row not in taken]
        return sorted(rows, key=lambda row: (-totals.item(row), rank.item(row)))


def _out_of_range(plugin: str, score: int) -> PluginError:
    """Source: framework.go, RunScorePlugins."""
    detail = f"returns an invalid score {score}, it should in the range of [0, {MAX_SCORE}] after normalizing"
    return PluginError(plugin, "Score", detail)
