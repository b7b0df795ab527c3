"""How good every feasible node is for one pod, kept for pods of equal signature and brought up to date where
something changed.

    changed row               asked again by all plugins, if the plugins' points of other rows stay
    changed token of a plugin its PreScore runs again, then its layer is asked for all feasible rows
    other feasible rows       as above for scope `cluster`; others are asked what they do not know; normalised

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunPreScorePlugins,
RunScorePlugins), schedule_one.go (prioritizeNodes, selectHost).
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from podyard.cluster.node_columns import NameOrder
from podyard.framework import answers
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import PreScore, Rows
from podyard.framework.layers import Mask
from podyard.framework.normalizing import MAX_SCORE
from podyard.framework.plugin_times import Evaluated
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Profile, ScoreToken
from podyard.framework.score_layers import FEW_ROWS, Asking, Feasible, Points, ScoreLayer
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError
from podyard.proto.decisions import NodeScore

INFEASIBLE: Final = -1
"""Total of a row that does not take the pod."""
_ONE: Final = np.int8(1)
MOST_TOLD: Final = 16
"""Rows of which is remembered what was told: those that lead for long are told of for every pod."""
MANY_BEST: Final = 256
"""More best places than this are listed only when a total among them changes: to list them takes a tenth of a
cycle over 50,000 nodes."""
BLOCK: Final = 2048
"""So many places of a mask are looked through one by one."""
ALIKE: Final = 1
"""Total of every feasible node if no plugin scores. Source: schedule_one.go, prioritizeNodes."""


class Scoreboard:
    """Scores of one signature.

    Invariant after `refresh`: the total is INFEASIBLE exactly for rows that are not feasible, else the sum of
    the layers' points; the best are the places (by node name) with the highest total, ascending.
    """

    def __init__(
        self,
        profile: Profile,
        feasibility: Feasible,
        cluster: Snapshot,
        stopwatch: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """:param stopwatch: seconds of a monotonic clock, for `pre_scored` only"""
        self._profile = profile
        self._feasibility = feasibility
        self._cluster = cluster
        self._alike = 0 if profile.score else ALIKE
        highest = MAX_SCORE * sum(entry.weight for entry in profile.score)
        self._dtype: type[np.signedinteger[Any]] = (
            np.int16 if highest < 2**15 else np.int32 if highest < 2**31 else np.int64
        )
        """Of totals: a quarter of the bytes to go through if weights are usual."""
        self.evaluated = Evaluated(())
        """Plugins of PreScore and Score that take part."""
        self.pre_scored = 0.0
        """When the last `refresh` was done with PreScore, on the stopwatch."""
        self._stopwatch = stopwatch
        self._layers: list[ScoreLayer] = []
        self._by_row: list[ScoreLayer] = []
        """Those for which counts what is placed on a row."""
        self._named: list[tuple[str, Points]] = []
        self._state: CycleState | None = None
        self._watching: list[ScoreToken] = []
        """Plugins whose token may become another one."""
        self._tokens: list[Hashable] = []
        self._version = -1
        self._order: NameOrder = cluster.nodes.order
        self._known: Mask = np.zeros(0, dtype=np.bool_)
        """Rows that every layer knows which is not empty."""
        self._summed = False
        """Totals are sums over the layers there are now; not so when a plugin began, or ceased, to sit it
        out."""
        self._totals: Points = np.zeros(0, dtype=self._dtype)
        """By row; of rows that are not feasible anything."""
        self._ranked: Points = np.zeros(0, dtype=self._dtype)
        """Totals by place in the order of node names."""
        self._top = INFEASIBLE
        self._best: list[int] | None = []
        """Places with the highest total, ascending; `None`: the many of `_level`, which nobody had to list
        yet."""
        self._level: Mask = np.zeros(0, dtype=np.bool_)
        self._many = 0
        """How many `_level` has."""
        self._told: dict[int, NodeScore] = {}
        """By place: what was told of a row, until it has other points."""

    # ---- reading -------------------------------------------------------------------------------------------

    def total(self, row: int) -> int:
        """Sum of a node's points; INFEASIBLE if it does not take the pod."""
        return self._ranked.item(self._place(row))

    def points(self, row: int) -> dict[str, int]:
        """Points of a feasible node by plugin, times its weight; plugins that sat it out are missing."""
        return {name: points.item(row) for name, points in self._named}

    def node_score(self, row: int) -> NodeScore:
        """Total and points by plugin of one feasible row."""
        return NodeScore(node=self._cluster.nodes.names[row], total=self.total(row), plugins=self.points(row))

    def best(self) -> Sequence[int]:
        """Rows with the highest total, in order of node names."""
        best = self._level.nonzero()[0] if self._best is None else self._best
        return self._order.rows[best].tolist()

    def best_count(self) -> int:
        """How many rows share the highest total."""
        return self._many if self._best is None else len(self._best)

    def best_at(self, index: int) -> int:
        """One of the rows with the highest total, by its place in the order of node names."""
        place = _nth(self._level, index) if self._best is None else self._best[index]
        return self._order.rows.item(place)

    def leaders(self, chosen: int, count: int) -> tuple[NodeScore, ...]:
        """The chosen node and the next best ones, best first, equal ones by name; at most `count`."""
        own = self._place(chosen)
        best = _first(self._level, count) if self._best is None else self._best[:count]
        places = [own, *[place for place in best if place != own]][:count]
        if len(places) < count:
            left = self._ranked.copy()
            left[self._level if self._best is None else self._best] = INFEASIBLE
            while len(places) < count:
                place = int(left.argmax())
                if left.item(place) == INFEASIBLE:
                    break
                places.append(place)
                left[place] = INFEASIBLE
        return tuple([self._told.get(place) or self._tell(place) for place in places])

    def _tell(self, place: int) -> NodeScore:
        if len(self._told) > MOST_TOLD:
            self._told.clear()
        row = self._order.rows.item(place)
        points = {name: points.item(row) for name, points in self._named}
        name = self._cluster.nodes.names[row]
        told = self._told[place] = NodeScore(node=name, total=self._ranked.item(place), plugins=points)
        return told

    # ---- bringing up to date -------------------------------------------------------------------------------

    def refresh(self, pod: PodInfo) -> None:
        """Score again what changed since the last time; everything the first time.

        :param pod: any pod of the signature, which at least one node takes
        :raises PluginError: if a plugin fails, or a score is not 0 to 100 in the end
        """
        nodes, feasibility = self._cluster.nodes, self._feasibility
        asking = Asking(feasibility.state, pod, self._cluster)
        if (
            self._state is not feasibility.state
            or self._order is not nodes.order
            or len(feasibility.mask) != self._size()
        ):
            self._begin(asking)
            return
        changed = nodes.changed_since(self._version)
        moved = feasibility.take_moved()
        renewed = self._renew(asking, moved is None or len(moved) > 0)
        self.pre_scored = self._stopwatch()
        if not changed and not moved and moved is not None and not renewed:
            return
        since, self._version = self._version, nodes.version
        rows = None if moved is None else moved.union(changed)
        if rows is None or len(rows) > FEW_ROWS:
            self._known[changed] = False
            self._score_all(asking, () if len(changed) <= FEW_ROWS else None)
        elif renewed or not self._score_rows(rows, since, asking):
            self._ask_rows(rows, since, asking)
            self._score_all(asking, rows, others_stay=True)

    def _size(self) -> int:
        return len(self._layers[0].points) if self._layers else len(self._feasibility.mask)

    def _place(self, row: int) -> int:
        return self._order.rank.item(row)

    def _begin(self, asking: Asking) -> None:
        """PreScore and Score for all."""
        nodes = self._cluster.nodes
        self._state, self._order = asking.state, nodes.order
        self._watching, self._tokens = [], []
        for one in self._profile.score_tokens:
            try:
                token = one.token(asking.pod, self._cluster)
            except Exception as fault:  # the boundary to plugins
                raise PluginError.wrapping(one.name, "score_token", fault) from fault
            if token is not None:
                self._watching.append(one)
                self._tokens.append(token)
        asking.state.skip_score.clear()
        for plugin in self._profile.pre_score:
            _pre_score(plugin, asking, self._feasibility.feasible)
        self.pre_scored = self._stopwatch()
        self._layers = []
        self._known = np.zeros(nodes.capacity, dtype=np.bool_)
        self._choose_layers()
        self._score_all(asking, None)
        self._version = nodes.version
        self._feasibility.take_moved()

    def _renew(self, asking: Asking, moved: bool) -> bool:
        """Ask PreScore again where a token, or what is feasible, changed; returns whether that concerns
        points."""
        renewed: set[str] = set()
        skipped = set(asking.state.skip_score)
        name = ""
        try:
            for at, one in enumerate(self._watching):
                name = one.name
                token = one.token(asking.pod, self._cluster)
                if token == self._tokens[at] and not (moved and one.by_feasible):
                    continue
                self._tokens[at] = token
                renewed.add(name)
                if one.pre_score is not None:
                    _pre_score(one.pre_score, asking, self._feasibility.feasible)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "score_token", fault) from fault
        hit = False
        for layer in self._layers:
            if layer.name in renewed:
                layer.empty = hit = True
        if skipped != asking.state.skip_score:
            self._choose_layers()
            return True
        return hit

    def _choose_layers(self) -> None:
        """Layers of the plugins that do not sit it out."""
        there = {layer.name: layer for layer in self._layers}
        skipped, capacity = self._feasibility.state.skip_score, self._cluster.nodes.capacity
        self._layers = [
            there.get(entry.plugin.name) or ScoreLayer(entry, capacity, self._dtype)
            for entry in self._profile.score
            if entry.plugin.name not in skipped
        ]
        self._by_row = [layer for layer in self._layers if not layer.by_node]
        self._named = [(layer.name, layer.points) for layer in self._layers]
        self._summed = False
        taking_part = tuple([plugin.name for plugin in self._profile.pre_score if plugin.name not in skipped])
        self.evaluated = Evaluated(
            (("PreScore", taking_part), ("Score", tuple([layer.name for layer in self._layers])))
        )

    # ---- all rows ------------------------------------------------------------------------------------------

    def _score_all(self, asking: Asking, changed: Iterable[int] | None, *, others_stay: bool = False) -> None:
        """
        :param changed: rows whose points may be others already, apart from what the layers tell; `None`: all
        :param others_stay: all rows that became feasible, or ceased to be so, are among them
        """
        mask, order = self._feasibility.mask, self._order
        fresh = np.greater(mask, self._known).nonzero()[0]
        few = self._summed and changed is not None and len(fresh) <= FEW_ROWS
        different = {*changed, *fresh.tolist()} if few and changed is not None else None
        for layer in self._layers:
            if layer.empty:
                if layer.ask_all(self._feasibility.feasible, asking):
                    different = None
                np.logical_and(self._known, mask, out=self._known)
                continue
            if len(fresh):
                layer.ask(fresh, asking)
            if layer.normalizes:
                settled = layer.settle(self._feasibility, asking)
                different = None if settled is None or different is None else different.union(settled)
        self._known |= mask
        if different is None:
            self._totals, self._summed = _sum(self._layers, len(mask), self._dtype), True
        else:
            for row in different:
                self._totals[row] = sum([layer.points.item(row) for layer in self._layers])
            if others_stay and self._layers:
                self._rank_some(different)
                return
        self._told.clear()
        totals = self._totals if self._layers else np.full(len(mask), self._alike, dtype=self._totals.dtype)
        feasible_by_name = order.arranged(mask).view(np.int8)
        self._ranked = order.arranged(totals) | (feasible_by_name - _ONE)  # all bits set: INFEASIBLE
        self._find_best()

    def _rank_some(self, rows: Iterable[int]) -> None:
        """The totals of these rows only are others."""
        mask = self._feasibility.mask
        for row in rows:
            place = self._place(row)
            if place >= 0:
                self._told.pop(place, None)
                self._set_total(place, self._totals.item(row) if mask.item(row) else INFEASIBLE)
        if self._best == []:
            self._find_best()

    def _find_best(self) -> None:
        first = int(self._ranked.argmax())
        self._top = self._ranked.item(first)
        level = self._ranked == self._top
        count = int(np.count_nonzero(level))
        if count > MANY_BEST:
            self._best, self._level, self._many = None, level, count
        else:
            self._best = [first] if count == 1 else level.nonzero()[0].tolist()

    # ---- some rows -----------------------------------------------------------------------------------------

    def _ask_rows(self, changed: Iterable[int], since: int, asking: Asking) -> None:
        """A few rows that changed after version `since`, so that layers that know all others need no arrays
        for them."""
        mask, nodes = self._feasibility.mask, self._cluster.nodes
        name = ""
        try:
            for row in changed:
                same_node = self._known.item(row) and nodes.same_node_since(row, since)
                self._known[row] = mask.item(row)
                if mask.item(row):
                    for layer in self._by_row if same_node else self._layers:
                        name = layer.name
                        if not layer.empty:
                            layer.ask_one(row, asking)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "Score", fault) from fault

    def _score_rows(self, changed: Iterable[int], since: int, asking: Asking) -> bool:
        """A few rows that changed after version `since`, by themselves; False if points of other rows are
        concerned: all have to be gone through."""
        nodes = self._cluster.nodes
        for row in changed:
            place = self._place(row)
            if place < 0:
                continue
            self._told.pop(place, None)
            was = self._ranked.item(place) != INFEASIBLE
            feasible = self._known[row] = self._feasibility.mask.item(row)
            if feasible:
                same_node = was and nodes.same_node_since(row, since)
                if not self._score_row(row, not was, same_node, asking):
                    return False
                total = sum([layer.points.item(row) for layer in self._layers])
                self._totals[row] = total
                self._set_total(place, total if self._layers else self._alike)
            elif was:
                if not all([layer.leave(row, self._feasibility) for layer in self._layers]):  # noqa: C419 - all of them
                    return False
                self._set_total(place, INFEASIBLE)
        if self._best == []:
            self._find_best()
        return True

    def _score_row(self, row: int, joined: bool, same_node: bool, asking: Asking) -> bool:
        name = ""
        try:
            for layer in self._by_row if same_node else self._layers:
                name = layer.name
                if not layer.update_one(row, joined, asking, self._feasibility):
                    return False
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "Score", fault) from fault
        return True

    def _set_total(self, place: int, total: int) -> None:
        before = self._ranked.item(place)
        if total == before:
            return
        self._ranked[place] = total
        if total > self._top:
            self._top, self._best = total, [place]
            return
        best = self._best
        if best is None:
            best = self._best = self._level.nonzero()[0].tolist()
        if before == self._top:
            del best[bisect_left(best, place)]
        if total == self._top:
            insort(best, place)


def _nth(mask: Mask, index: int) -> int:
    """The place where the mask holds for the n-th time, counted from 0. How often it holds in a half is
    counted, which is cheaper than to list all places."""
    begin, end = 0, len(mask)
    while end - begin > BLOCK:
        half = (begin + end) // 2
        before = int(np.count_nonzero(mask[begin:half]))
        if index < before:
            end = half
        else:
            begin, index = half, index - before
    return begin + mask[begin:end].nonzero()[0].item(index)


def _first(mask: Mask, count: int) -> list[int]:
    """The first so many places where the mask holds, or all of them."""
    found = mask[:BLOCK].nonzero()[0]
    return (found if len(found) >= count else mask.nonzero()[0])[:count].tolist()


def _sum(layers: Sequence[ScoreLayer], capacity: int, dtype: type[np.signedinteger[Any]]) -> Points:
    if not layers:
        return np.zeros(capacity, dtype=dtype)
    totals = layers[0].points.copy()
    for layer in layers[1:]:
        totals += layer.points
    return totals


def _pre_score(plugin: PreScore, asking: Asking, feasible: Rows) -> None:
    """
    :raises PluginError: if it answers neither SUCCESS nor SKIP
    """
    timing = asking.cluster.timing
    started = 0.0 if timing is None else timing.watch()
    try:
        status = answers.status(plugin.pre_score(asking.state, asking.pod, asking.cluster, feasible))
    except Exception as fault:  # the boundary to plugins
        raise PluginError.wrapping(plugin.name, "PreScore", fault) from fault
    if timing is not None:
        timing.note(plugin.name, "PreScore", status.code.label, started)
    if status.code == Code.SKIP:
        asking.state.skip_score.add(plugin.name)
    elif status.ok:
        asking.state.skip_score.discard(plugin.name)
    else:
        raise PluginError(plugin.name, "PreScore", status.message or f"answered {status.code.label}")
