"""The points that one Score plugin gives every node, kept for pods of one signature.

Raw scores are kept of every row that was ever asked for and did not change since. What normalising makes of a score may depend on all
feasible nodes; if a plugin says that only the lowest and the highest score count (`by_extremes`), its points are kept as long as those
two stay.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunScorePlugins).
"""

from typing import NamedTuple

import numpy as np

from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import NormalizeScore, Rows, Scores
from podyard.framework.layers import Mask
from podyard.framework.normalizing import MAX_SCORE
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import WeightedScore
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginError


class Asking(NamedTuple):
    """What a plugin is asked with."""

    state: CycleState
    pod: PodInfo
    cluster: Snapshot


class ScoreLayer:
    """One plugin's points.

    Invariant: the raw score of a known row is what the plugin would say now; `points` of a settled row is what normalising and the weight
    make of it.
    """

    __slots__ = (
        "_bounds",
        "_by_extremes",
        "_extremes",
        "_known",
        "_normalizer",
        "_plugin",
        "_raw",
        "_settled",
        "_weight",
        "name",
        "points",
    )

    def __init__(self, entry: WeightedScore, capacity: int) -> None:
        """
        :param capacity: rows of the table
        """
        self.name = entry.plugin.name
        self._plugin = entry.plugin
        self._weight = entry.weight
        self._normalizer: NormalizeScore | None = entry.normalizer
        self._by_extremes = bool(getattr(entry.normalizer, "by_extremes", False))
        self._raw: Scores = np.zeros(capacity if entry.normalizer is not None else 0, dtype=np.int64)
        """Of a plugin that normalises."""
        self._known: Mask = np.zeros(capacity, dtype=np.bool_)
        self._bounds: tuple[int, int] | None = None
        """No known raw score is outside of these two."""
        self._extremes: tuple[int, int] | None = None
        """Lowest and highest raw score of the feasible rows, if settled points hold as long as they stay."""
        self.points: Scores = np.zeros(capacity, dtype=np.int64)
        self._settled: Mask = np.zeros(capacity, dtype=np.bool_)

    def forget(self) -> None:
        """Nothing is known any more."""
        self._known.fill(False)
        self._settled.fill(False)
        self._bounds = self._extremes = None

    def forget_row(self, row: int) -> None:
        """The row changed."""
        self._known[row] = False
        self._settled[row] = False

    def update(self, feasible: Rows, mask: Mask, asking: Asking) -> None:
        """Makes the points of all feasible rows right.

        :param feasible: at least one row
        :param mask: the same as a mask
        :raises PluginError: if the plugin fails, or points are not 0 to 100 before the weight
        """
        fresh = np.greater(mask, self._known)
        count = int(np.count_nonzero(fresh))
        rows = feasible
        if count:
            if count != len(feasible):
                rows = fresh.nonzero()[0]
            scores = self._ask(rows, asking)
            self._known |= fresh
            if self._normalizer is None:
                self._settle(rows, scores)
            else:
                self._keep(rows, scores)
        if self._normalizer is None:
            return
        if not self._by_extremes:
            self._settle(feasible, self._normalized(self._normalizer, feasible, self._raw.take(feasible), asking))
        else:
            self._update_by_extremes(self._normalizer, feasible, mask, asking)

    def update_one(self, row: int, joined: bool, asking: Asking) -> bool:
        """Makes the points of one feasible row right, if that does not concern other rows.

        :param joined: the row was not feasible before
        :return: False if other rows are concerned: call `update`
        :raises PluginError: as `update`
        """
        score = self._plugin.score_one(asking.state, asking.pod, asking.cluster, row)
        self._known[row] = True
        if self._normalizer is None:
            if not 0 <= score <= MAX_SCORE:
                raise _out_of_range(self.name, score)
            self.points[row] = score * self._weight
            return True
        before = self._raw.item(row)
        self._raw[row] = score
        if score == before and not joined:
            return True
        if not self._within(score) or not (joined or self._keeps_extremes(before)):
            return False
        self._settle_some(self._normalizer, np.array([row], dtype=np.intp), asking)
        return True

    def leave(self, row: int) -> bool:
        """The row is not feasible any more. False if that concerns other rows: call `update`."""
        return self._normalizer is None or self._keeps_extremes(self._raw.item(row))

    # ---- inside --------------------------------------------------------------------------------------------------------------

    def _ask(self, rows: Rows, asking: Asking) -> Scores:
        try:
            return self._plugin.score(asking.state, asking.pod, asking.cluster, rows)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(self.name, "Score", fault) from fault

    def _keep(self, rows: Rows, scores: Scores) -> None:
        self._raw[rows] = scores
        if self._by_extremes:
            lowest, highest = int(scores.min()), int(scores.max())
            if self._bounds is not None:
                lowest, highest = min(lowest, self._bounds[0]), max(highest, self._bounds[1])
            self._bounds = lowest, highest

    def _update_by_extremes(self, normalizer: NormalizeScore, feasible: Rows, mask: Mask, asking: Asking) -> None:
        bounds = self._bounds
        if bounds is not None and bounds[0] == bounds[1]:
            extremes = bounds
        else:
            scores = self._raw.take(feasible)
            extremes = int(scores.min()), int(scores.max())
        if extremes != self._extremes:
            self._extremes = extremes
            self._settled.fill(False)
        needed = np.greater(mask, self._settled)
        if needed.any():
            self._settle_some(normalizer, needed.nonzero()[0], asking)

    def _settle_some(self, normalizer: NormalizeScore, rows: Rows, asking: Asking) -> None:
        """Points of some rows, the extremes being known."""
        scores = self._raw.take(rows)
        normalized = self._normalized(normalizer, rows, np.concatenate((np.array(self._extremes), scores)), asking)
        self._settle(rows, normalized[2:])

    def _normalized(self, normalizer: NormalizeScore, rows: Rows, scores: Scores, asking: Asking) -> Scores:
        try:
            return normalizer.normalize(asking.state, asking.pod, asking.cluster, rows, scores)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(self.name, "NormalizeScore", fault) from fault

    def _settle(self, rows: Rows, scores: Scores) -> None:
        if scores.min() < 0 or scores.max() > MAX_SCORE:
            raise _out_of_range(self.name, int(scores[(scores < 0) | (scores > MAX_SCORE)][0]))
        self.points[rows] = scores if self._weight == 1 else scores * self._weight
        self._settled[rows] = True

    def _within(self, score: int) -> bool:
        extremes = self._extremes
        return self._by_extremes and extremes is not None and extremes[0] <= score <= extremes[1]

    def _keeps_extremes(self, score: int) -> bool:
        """Whether the extremes surely stay when one feasible row with this score goes (and others stay)."""
        extremes = self._extremes
        if not self._by_extremes or extremes is None:
            return False
        return extremes[0] == extremes[1] or extremes[0] < score < extremes[1]


def _out_of_range(plugin: str, score: int) -> PluginError:
    """Source: framework.go, RunScorePlugins."""
    detail = f"returns an invalid score {score}, it should in the range of [0, {MAX_SCORE}] after normalizing"
    return PluginError(plugin, "weights", detail)
