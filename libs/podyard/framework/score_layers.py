"""The points that one Score plugin gives every node, kept for pods of one signature.

Raw scores are kept of every row that was ever asked for and did not change since. What normalising makes of a score may depend on all
feasible nodes; if a plugin says that only the lowest and the highest score count (`by_extremes`), its points are kept as long as those
two stay.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunScorePlugins).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import NormalizeScore, Rows, Scores
from podyard.framework.layers import Mask
from podyard.framework.normalizing import MAX_SCORE
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import WeightedScore
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginError

FEW_ROWS: Final = 8
"""Up to so many rows are scored one at a time, which is then cheaper than arrays (measured: 2 µs a row against 25 µs)."""


class Asking(NamedTuple):
    """What a plugin is asked with."""

    state: CycleState
    pod: PodInfo
    cluster: Snapshot


class Feasible(Protocol):
    """The nodes to score (`judgement.Judgement` is one)."""

    @property
    def state(self) -> CycleState: ...
    @property
    def mask(self) -> Mask:
        """By row."""
        ...

    @property
    def feasible(self) -> Rows:
        """The same, ascending."""
        ...

    def take_moved(self) -> set[int] | None:
        """Rows that joined or left since last asked; `None`: many, or it is the first time."""
        ...


class ScoreLayer:
    """One plugin's points.

    Invariant: the raw score of a known row is what the plugin would say now; `points` of a settled row is what normalising and the weight
    make of it. After `update`, or as long as `update_one` and `leave` said yes, all feasible rows are settled.
    """

    __slots__ = (
        "_bounds", "_by_extremes", "_extremes", "_known", "_normalizer", "_plugin", "_points_of", "_raw", "_settled", "_weight", "empty",
        "name", "points",
    )  # fmt: skip

    def __init__(self, entry: WeightedScore, capacity: int) -> None:
        """
        :param capacity: rows of the table
        """
        self.name = entry.plugin.name
        self._plugin = entry.plugin
        self._weight = entry.weight
        self._normalizer: NormalizeScore | None = entry.normalizer
        self._by_extremes = bool(getattr(entry.normalizer, "by_extremes", False))
        self.empty = True
        """Nothing is known."""
        self.points: Scores = np.zeros(capacity, dtype=np.int64)
        self._known: Mask = np.zeros(capacity, dtype=np.bool_)
        normalizes = capacity if entry.normalizer is not None else 0
        self._raw: Scores = np.zeros(normalizes, dtype=np.int64)
        self._settled: Mask = np.zeros(normalizes, dtype=np.bool_)
        self._bounds: tuple[int, int] | None = None
        """No known raw score is outside of these two."""
        self._extremes: tuple[int, int] | None = None
        """Lowest and highest raw score of the feasible rows, if settled points hold as long as they stay."""
        self._points_of: dict[int, int] = {}
        """Points by raw score, for these extremes."""

    def forget(self) -> None:
        """Nothing is known any more."""
        self.empty = True
        self._known.fill(False)
        self._bounds = None

    def forget_row(self, row: int) -> None:
        """The row changed."""
        self._known[row] = False

    def update(self, feasible: Rows, mask: Mask, asking: Asking) -> Sequence[int] | None:
        """Settles all feasible rows.

        :param feasible: at least one row
        :param mask: the same as a mask
        :return: rows whose points changed; `None`: many
        :raises PluginError: if the plugin fails, or points are not 0 to 100 before the weight
        """
        fresh = np.greater(mask, self._known)
        count = int(np.count_nonzero(fresh))
        if count == len(feasible):
            self.empty = False
            self._known |= fresh
            return self._take_all(feasible, mask, self._ask(feasible, asking), asking)
        few: list[int] = []
        if count:
            rows = fresh.nonzero()[0]
            self._known |= fresh
            if count > FEW_ROWS:
                self._take(rows, self._ask(rows, asking))
                return None if self._normalizer is None else self._normalize(self._normalizer, feasible, mask, asking)
            few = rows.tolist()
            self._ask_few(few, asking)
        return few if self._normalizer is None else self._normalize(self._normalizer, feasible, mask, asking)

    def ask_one(self, row: int, asking: Asking) -> None:
        """One feasible row that changed; `update` has to follow. The plugin's exceptions are the caller's."""
        score = self._plugin.score_one(asking.state, asking.pod, asking.cluster, row)
        self._known[row] = True
        if self._normalizer is None:
            self._set(row, score)
        elif self._raw.item(row) != score or not self._settled.item(row):
            self._raw[row] = score
            self._settled[row] = False
            if self._bounds is not None and not self._bounds[0] <= score <= self._bounds[1]:
                self._bounds = min(score, self._bounds[0]), max(score, self._bounds[1])

    def update_one(self, row: int, joined: bool, asking: Asking, judged: Feasible) -> bool:
        """Settles one feasible row that changed, if that does not concern other rows. The plugin's exceptions are the caller's.

        :param joined: the row was not feasible before
        :return: False if other rows are concerned: call `update`
        """
        normalizer = self._normalizer
        if normalizer is None:
            self.ask_one(row, asking)
            return True
        before = self._raw.item(row)
        self.ask_one(row, asking)
        score = self._raw.item(row)
        if score == before and not joined:
            return True
        extremes = self._extremes
        if not self._by_extremes or extremes is None or not extremes[0] <= score <= extremes[1]:
            return False
        if not joined and not self._keeps_extremes(before, judged):
            return False
        self._settle_one(normalizer, row, score, asking)
        return True

    def leave(self, row: int, was_feasible: bool, judged: Feasible) -> bool:
        """The row is not feasible now. False if that concerns other rows: call `update`."""
        self._known[row] = False
        return not was_feasible or self._normalizer is None or self._keeps_extremes(self._raw.item(row), judged)

    # ---- inside --------------------------------------------------------------------------------------------------------------

    def _ask(self, rows: Rows, asking: Asking) -> Scores:
        try:
            return self._plugin.score(asking.state, asking.pod, asking.cluster, rows)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(self.name, "Score", fault) from fault

    def _ask_few(self, rows: Sequence[int], asking: Asking) -> None:
        try:
            for row in rows:
                self.ask_one(row, asking)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(self.name, "Score", fault) from fault

    def _take(self, rows: Rows, scores: Scores) -> None:
        """Some rows were asked."""
        if self._normalizer is None:
            self._settle(rows, scores)
        else:
            self._raw[rows] = scores
            self._settled[rows] = False
            self._widen(scores)

    def _widen(self, scores: Scores) -> tuple[int, int]:
        """Takes scores into the bounds; returns their lowest and highest."""
        lowest, highest = int(scores.min()), int(scores.max())
        known = self._bounds
        self._bounds = (lowest, highest) if known is None else (min(lowest, known[0]), max(highest, known[1]))
        return lowest, highest

    def _take_all(self, feasible: Rows, mask: Mask, scores: Scores, asking: Asking) -> None:
        """All feasible rows were asked."""
        normalizer = self._normalizer
        if normalizer is not None:
            self._raw[feasible] = scores
            self._bounds = None
            self._fix_extremes(self._widen(scores))
            scores = self._normalized(normalizer, feasible, scores, asking)
            self._settled = mask.copy()
        self._settle(feasible, scores)

    def _normalize(
        self, normalizer: NormalizeScore, feasible: Rows, mask: Mask, asking: Asking
    ) -> Sequence[int] | None:
        if not self._by_extremes:
            self._settle(feasible, self._normalized(normalizer, feasible, self._raw.take(feasible), asking))
            return None
        bounds = self._bounds
        if bounds is None or bounds[0] != bounds[1]:
            scores = self._raw.take(feasible)
            bounds = int(scores.min()), int(scores.max())
        if bounds != self._extremes:
            self._fix_extremes(bounds)
        needed = np.greater(mask, self._settled)
        count = int(np.count_nonzero(needed))
        if count == 0:
            return ()
        rows = needed.nonzero()[0]
        if count > FEW_ROWS:
            scores = np.concatenate((np.array(bounds), self._raw.take(rows)))
            self._settle(rows, self._normalized(normalizer, rows, scores, asking)[2:])
            self._settled[rows] = True
            return None
        few: list[int] = rows.tolist()
        for row in few:
            self._settle_one(normalizer, row, self._raw.item(row), asking)
        return few

    def _fix_extremes(self, extremes: tuple[int, int]) -> None:
        if self._by_extremes:
            self._extremes = extremes
            self._points_of = {}
            self._settled.fill(False)

    def _settle_one(self, normalizer: NormalizeScore, row: int, score: int, asking: Asking) -> None:
        """One row, the extremes being known."""
        points = self._points_of.get(score)
        if points is None:
            scores = np.array([*(self._extremes or ()), score], dtype=np.int64)
            points = self._normalized(normalizer, np.array([row]), scores, asking).item(-1)
            self._points_of[score] = points
        self._set(row, points)
        self._settled[row] = True

    def _normalized(self, normalizer: NormalizeScore, rows: Rows, scores: Scores, asking: Asking) -> Scores:
        try:
            return normalizer.normalize(asking.state, asking.pod, asking.cluster, rows, scores)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(self.name, "NormalizeScore", fault) from fault

    def _settle(self, rows: Rows, scores: Scores) -> None:
        if scores.min() < 0 or scores.max() > MAX_SCORE:
            raise _out_of_range(self.name, int(scores[(scores < 0) | (scores > MAX_SCORE)][0]))
        self.points[rows] = scores if self._weight == 1 else scores * self._weight

    def _set(self, row: int, score: int) -> None:
        if not 0 <= score <= MAX_SCORE:
            raise _out_of_range(self.name, score)
        self.points[row] = score * self._weight

    def _keeps_extremes(self, score: int, judged: Feasible) -> bool:
        """Whether the extremes stay, now that one feasible row with this score is gone, or has another score."""
        extremes = self._extremes
        if not self._by_extremes or extremes is None:
            return False
        if extremes[0] == extremes[1] or extremes[0] < score < extremes[1]:
            return True
        scores = self._raw.take(judged.feasible)
        return int(scores.min()) == extremes[0] and int(scores.max()) == extremes[1]


def _out_of_range(plugin: str, score: int) -> PluginError:
    """Source: framework.go, RunScorePlugins."""
    detail = f"returns an invalid score {score}, it should in the range of [0, {MAX_SCORE}] after normalizing"
    return PluginError(plugin, "weights", detail)
