"""The points that one Score plugin gives every node, kept for pods of one signature.

Raw scores are kept of every row that was ever asked for and did not change since. What normalising makes of a
score may depend on all feasible nodes; if a plugin says that only the lowest and the highest score count
(`by_extremes`), its points are kept as long as those two stay.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunScorePlugins).
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.framework import answers, optional_hooks
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import NormalizeScore, Rows, Scores
from podyard.framework.layers import Mask
from podyard.framework.normalizing import MAX_SCORE
from podyard.framework.plugin_times import SUCCESS
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import WeightedScore
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginError

Points: TypeAlias = NDArray[np.signedinteger[Any]]
"""By row, or by place in the order of names."""

FEW_ROWS: Final = 8
"""Up to so many rows are scored one at a time, which is then cheaper than arrays (measured: 2 µs a row
against 25 µs)."""


class Asking(NamedTuple):
    """What a plugin is asked with."""

    state: CycleState
    pod: PodInfo
    cluster: Snapshot


class Feasible(Protocol):
    """The nodes to score (`feasibility.Feasibility` is one)."""

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

    Which rows it knows is the scoreboard's business. Invariant: `points` of a known row that is settled is
    what the plugin would say now, normalised and weighted. All known rows are settled if the plugin does not
    normalise; else those of `_settled`.
    """

    __slots__ = (
        "_by_extremes", "_extremes", "_last", "_late", "_normalizer", "_plugin", "_points_of", "_settled", "_weight", "_witnesses",
        "_written", "by_node", "empty", "name", "points",
    )  # fmt: skip

    def __init__(self, entry: WeightedScore, capacity: int, dtype: type[np.signedinteger[Any]]) -> None:
        """
        :param capacity: rows of the table
        :param dtype: of points; holds the sum of all plugins'
        """
        self.name = entry.plugin.name
        self._plugin = entry.plugin
        self._weight = entry.weight
        self._normalizer: NormalizeScore | None = entry.normalizer
        self._by_extremes = optional_hooks.by_extremes(entry.normalizer)
        self.by_node = entry.plugin.scope == "node"
        """What is placed on a row does not count."""
        self.empty = True
        """It knows no row."""
        self.points: Points = np.zeros(capacity, dtype=dtype)
        normalizes = capacity if entry.normalizer is not None else 0
        self._written: Scores = np.zeros(normalizes, dtype=np.int64)
        self._late: tuple[Rows, Scores] | None = None
        """Raw scores of settled rows, all there are, that are not written yet; extremes are not looked for
        yet either."""
        self._last: tuple[Rows, Scores] | None = None
        """What was settled last for all feasible rows, if no point changed since."""
        self._settled: Mask = np.zeros(normalizes, dtype=np.bool_)
        self._extremes: tuple[int, int] | None = None
        """Lowest and highest raw score of the feasible rows, if settled points hold as long as they stay."""
        self._witnesses = (0, 0)
        """Rows that had them when somebody looked."""
        self._points_of: dict[int, int] = {}
        """Points by raw score, for these extremes."""

    @property
    def normalizes(self) -> bool:
        """Whether points may depend on other rows."""
        return self._normalizer is not None

    def ask_all(self, feasible: Rows, asking: Asking) -> bool:
        """Asks for all feasible rows, and settles them.

        :param feasible: at least one row
        :return: whether points may be others than before: often other scores come to the same once they are
            normalised
        :raises PluginError: if the plugin fails, or points are not 0 to 100 before the weight
        """
        self.empty = False
        scores = self._ask(feasible, asking)
        if self._normalizer is None:
            self._settle(feasible, scores)
            return True
        self._late = feasible, scores
        points, before = self._normalized(self._normalizer, feasible, scores, asking), self._last
        if before is not None and before[0] is feasible and (before[1] is points or np.array_equal(before[1], points)):
            return False
        self._settle(feasible, points)
        self._last = feasible, points
        return True

    def ask(self, rows: Rows, asking: Asking) -> None:
        """Asks for some rows; if the plugin normalises, `settle` has to follow. Raises as `ask_all`."""
        if len(rows) <= FEW_ROWS:
            try:
                for row in rows.tolist():
                    self.ask_one(row, asking)
            except Exception as fault:  # the boundary to plugins
                raise PluginError.wrapping(self.name, "Score", fault) from fault
            return
        scores = self._ask(rows, asking)
        if self._normalizer is None:
            self._settle(rows, scores)
        else:
            self._raw()[rows] = scores
            self._settled[rows] = False

    def ask_one(self, row: int, asking: Asking) -> None:
        """The same for one row. The plugin's exceptions are the caller's."""
        timing = asking.cluster.timing
        if timing is None:
            score = self._plugin.score_one(asking.state, asking.pod, asking.cluster, row)
        else:
            started = timing.watch()
            score = self._plugin.score_one(asking.state, asking.pod, asking.cluster, row)
            timing.note(self.name, "Score", SUCCESS, started)
        if type(score) is not int:
            score = answers.whole(score)
        if self._normalizer is None:
            self._set(row, score)
        elif self._raw().item(row) != score or not self._settled.item(row):
            self._raw()[row] = score
            self._settled[row] = False

    def settle(self, judged: Feasible, asking: Asking) -> Sequence[int] | None:
        """Settles all feasible rows, which are known; for plugins that normalise.

        :param judged: asked for the rows only if they are needed: mostly the mask will do
        :return: rows whose points changed; `None`: many
        """
        normalizer = self._normalizer
        if normalizer is None:
            return ()
        mask = judged.mask
        if not self._by_extremes:
            feasible = judged.feasible
            self._settle(feasible, self._normalized(normalizer, feasible, self._raw().take(feasible), asking))
            return None
        self._raw()
        needed = np.greater(mask, self._settled)
        count = int(np.count_nonzero(needed))
        if count or not self._witnessed(mask):
            self._look_for_extremes(judged.feasible, self._raw().take(judged.feasible))
            needed = np.greater(mask, self._settled)
            count = int(np.count_nonzero(needed))
        if not count:
            return ()
        rows = needed.nonzero()[0]
        if count > FEW_ROWS:
            scores = np.concatenate((np.array(self._extremes), self._raw().take(rows)))
            self._settle(rows, self._normalized(normalizer, rows, scores, asking)[2:])
            self._settled[rows] = True
            return None
        few: list[int] = rows.tolist()
        for row in few:
            self._settle_one(normalizer, row, self._raw().item(row), asking)
        return few

    def update_one(self, row: int, joined: bool, asking: Asking, judged: Feasible) -> bool:
        """Settles one feasible row that changed, if that does not concern other rows. The plugin's exceptions
        are the caller's.

        :param joined: the row was not feasible before
        :return: False if other rows are concerned: call `settle`
        """
        normalizer = self._normalizer
        if normalizer is None:
            self.ask_one(row, asking)
            return True
        before = self._raw().item(row)
        self.ask_one(row, asking)
        score = self._raw().item(row)
        if score == before and not joined:
            return True
        extremes = self._extremes
        if not self._by_extremes or extremes is None or not extremes[0] <= score <= extremes[1]:
            return False
        if not joined and not self._keeps_extremes(before, judged):
            return False
        self._settle_one(normalizer, row, score, asking)
        return True

    def leave(self, row: int, judged: Feasible) -> bool:
        """A feasible row is not so any more. False if that concerns other rows: call `settle`."""
        return self._normalizer is None or self._keeps_extremes(self._raw().item(row), judged)

    # ---- inside --------------------------------------------------------------------------------------------

    def _raw(self) -> Scores:
        """Raw scores by row. Written when somebody looks: a plugin that is asked for all rows in every cycle
        never does."""
        if self._late is not None:
            rows, scores = self._late
            self._late = None
            self._written[rows] = scores
            if self._by_extremes:
                self._look_for_extremes(rows, scores)
            self._settled.fill(False)
            self._settled[rows] = True
        return self._written

    def _ask(self, rows: Rows, asking: Asking) -> Scores:
        timing = asking.cluster.timing
        started = 0.0 if timing is None else timing.watch()
        try:
            scores = self._plugin.score(asking.state, asking.pod, asking.cluster, rows)
            if type(scores) is not np.ndarray or scores.shape != rows.shape or scores.dtype != np.int64:
                scores = answers.by_row(scores, len(rows))
            if timing is not None:
                timing.note(self.name, "Score", SUCCESS, started)
            return scores
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(self.name, "Score", fault) from fault

    def _normalized(self, normalizer: NormalizeScore, rows: Rows, scores: Scores, asking: Asking) -> Scores:
        timing = asking.cluster.timing
        started = 0.0 if timing is None else timing.watch()
        try:
            points = normalizer.normalize(asking.state, asking.pod, asking.cluster, rows, scores)
            if type(points) is not np.ndarray or points.shape != scores.shape or points.dtype != np.int64:
                points = answers.by_row(points, len(scores))
            if timing is not None:
                timing.note(self.name, "ScoreExtensionNormalize", SUCCESS, started)
            return points
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(self.name, "NormalizeScore", fault) from fault

    def _settle(self, rows: Rows, scores: Scores) -> None:
        if int(scores.view(np.uint64).max()) > MAX_SCORE:  # so negative ones are great, too
            raise _out_of_range(self.name, int(scores[(scores < 0) | (scores > MAX_SCORE)][0]))
        self._last = None
        points = scores.astype(self.points.dtype)
        if self._weight != 1:
            points *= self._weight
        self.points[rows] = points

    def _settle_one(self, normalizer: NormalizeScore, row: int, score: int, asking: Asking) -> None:
        """One row, the extremes being known."""
        points = self._points_of.get(score)
        if points is None:
            scores = np.array([*(self._extremes or ()), score], dtype=np.int64)
            points = self._normalized(normalizer, np.array([row]), scores, asking).item(-1)
            self._points_of[score] = points
        self._set(row, points)
        self._settled[row] = True

    def _set(self, row: int, score: int) -> None:
        if not 0 <= score <= MAX_SCORE:
            raise _out_of_range(self.name, score)
        self._last = None
        self.points[row] = score * self._weight

    def _look_for_extremes(self, feasible: Rows, scores: Scores) -> None:
        low, high = int(scores.argmin()), int(scores.argmax())
        self._witnesses = feasible.item(low), feasible.item(high)
        extremes = scores.item(low), scores.item(high)
        if extremes != self._extremes:
            self._extremes = extremes
            self._points_of = {}
            self._settled.fill(False)

    def _witnessed(self, mask: Mask) -> bool:
        """Whether the extremes are what they were, if no feasible row has a new score: the rows that had them
        are still feasible."""
        if self._extremes is None:
            return False
        low, high = self._witnesses
        return mask.item(low) and mask.item(high) and (self._raw().item(low), self._raw().item(high)) == self._extremes

    def _keeps_extremes(self, score: int, judged: Feasible) -> bool:
        """Whether the extremes stay, now that one feasible row with this score is gone, or has another score
        between them."""
        extremes = self._extremes
        if not self._by_extremes or extremes is None:
            return False
        if extremes[0] == extremes[1] or extremes[0] < score < extremes[1] or self._witnessed(judged.mask):
            return True
        self._look_for_extremes(judged.feasible, self._raw().take(judged.feasible))
        return extremes == self._extremes


def _out_of_range(plugin: str, score: int) -> PluginError:
    """Source: framework.go, RunScorePlugins."""
    detail = f"returns an invalid score {score}, it should in the range of [0, {MAX_SCORE}] after normalizing"
    return PluginError(plugin, "weights", detail)
