"""What Filter says of every node for one pod, kept for pods of equal signature and brought up to date where
something changed.

    changed row               judged again by all plugins, one after the other
    changed token of a plugin its PreFilter runs again, then its layer is asked for all rows that get to it
    nominated pods of a node  the row is contested: judged with and without them, apart from the layers

Source: kube-scheduler v1.36.2, pkg/scheduler/schedule_one.go (findNodesThatPassFilters),
pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from podyard.framework import answers, details, diagnosis, grouping
from podyard.framework.cycle_state import CycleState
from podyard.framework.details import Details
from podyard.framework.diagnosis import Diagnosis, RejectedGroup
from podyard.framework.grouping import Rejector
from podyard.framework.interfaces import Rows
from podyard.framework.layers import Layer, Mask
from podyard.framework.plugin_times import Evaluated
from podyard.framework.pod_info import PodInfo
from podyard.framework.prefilter import PreFiltered, PreFiltering
from podyard.framework.profile import FilterToken, Profile
from podyard.framework.rivals import NO_RIVALS, RivalsByRow
from podyard.framework.row_judge import PASSES, RowJudge
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status
from podyard.proto.decisions import Rejection

FEW_MOVES: Final = 8
"""More rows that join or leave are not told one by one."""

NOT_JUDGED: Final = -1
"""The row is free, or PreFilter left its node out."""

MOST_TOLD: Final = 16
"""Different sets of groups whose rejections are remembered."""

ROWS_ONE_BY_ONE: Final = 12
"""Up to so many changed rows are judged one at a time, which is then cheaper than arrays (measured: 3 µs a
row against 40 µs)."""

NO_ROWS: Final[Mask] = np.zeros(0, dtype=np.bool_)


class Feasibility:
    """Filter results of one signature.

    Invariant after `refresh`: `mask` has exactly the rows whose node every plugin would pass now; `status`
    says of each other node what its first rejector would say.
    """

    def __init__(self, profile: Profile, pod: PodInfo, cluster: Snapshot) -> None:
        """Runs PreFilter.

        :raises PluginError: if a PreFilter fails
        """
        self._profile = profile
        self._cluster = cluster
        self._row_judge = RowJudge(profile, cluster)
        self.mask: Mask = NO_ROWS
        """By row: every plugin passes the node. Not to be changed."""
        self.feasible_count = 0
        self._moved: set[int] | None = None
        self._begin(pod)

    # ---- reading -------------------------------------------------------------------------------------------

    @property
    def pre_filtered(self) -> PreFiltered:
        """What PreFilter said."""
        return self._pre_filtering.result

    @property
    def feasible(self) -> Rows:
        """Rows of the nodes that take the pod, ascending."""
        if self._feasible is None:
            self._feasible = self.mask.nonzero()[0]
        return self._feasible

    def take_moved(self) -> set[int] | None:
        """Rows that joined or left `mask` since last asked (and maybe some that did both); `None`: many, or
        this is the first time."""
        moved, self._moved = self._moved, set()
        return moved

    def rejector(self, row: int) -> Rejector:
        """First plugin that rejects the row, as (number from 1, its code); (PASSES, 0); (NOT_JUDGED, 0)."""
        if row in self._contested:
            return self._contested[row]
        if self._own is not None and self._own[0] == row:
            return self._own[1]
        if self.mask.item(row):
            return PASSES, 0
        for layer in self._layers:
            if layer.reached.item(row) and not layer.passes.item(row):
                return layer.number, layer.code(row)
        return NOT_JUDGED, 0

    def status(self, row: int) -> Status | None:
        """Why the node is rejected, `None` if it passes; the status of absent nodes if it was not judged."""
        rejector = self.rejector(row)
        if rejector[0] == PASSES:
            return None
        return self.absent if rejector[0] == NOT_JUDGED else grouping.status_of(self._layers, rejector, self.state)

    @property
    def absent(self) -> Status | None:
        """Status of the nodes that PreFilter left out; `None` if it left out none.

        It lists the plugins that named nodes, and the one that rejects the pod's own nominated node, which is
        looked at before.
        """
        return self.pre_filtered.left_out(self._narrowing())

    def takes_nominated(self, pod: PodInfo) -> bool:
        """Whether the node that the pod itself is nominated to takes it, also if PreFilter leaves that node
        out.

        Asked before all others; failures do not count. Source: schedule_one.go, evaluateNominatedNode.

        :raises PluginError: if a PreFilter fails
        """
        self._renew(pod)
        row = self._cluster.nodes.row_of.get(pod.nominated_node)
        if row is None or not self.pre_filtered.status.ok:
            return False
        try:
            return self._row_judge.first_rejector(self.state, pod, row)[0] == PASSES
        except PluginError:
            return False

    def evaluated(self, fits: bool) -> Evaluated:
        """Plugins of PreFilter and Filter that took part: a Filter only if a node got as far as to it.

        :param fits: a node was found: then one got past all
        """
        pre_filters = self._pre_filtering.evaluated
        if not fits:
            reached = [layer.name for layer in self._layers if self._contested or layer.reached.any()]
            return Evaluated((("PreFilter", pre_filters), ("Filter", tuple(reached))))
        if self._evaluated is None or self._evaluated.points[0][1] is not pre_filters:
            skipped = self.state.skip_filter
            names = tuple([plugin.name for plugin in self._profile.filter if plugin.name not in skipped])
            self._evaluated = Evaluated((("PreFilter", pre_filters), ("Filter", names)))
        return self._evaluated

    def rejections(self) -> tuple[Rejection, ...]:
        """For decision records: rejected nodes by plugin and reason. The same object until one of them
        changes."""
        if self._rejections is None:
            self._rejections = self._told()
        return self._rejections

    def _told(self) -> tuple[Rejection, ...]:
        """Layers that come back to an answer bring its very groups with them: then what was told of them is
        told again."""
        if self._apart():
            return diagnosis.rejections(self._groups)
        groups = tuple([layer.groups for layer in self._layers])
        known = self._told_of.get(tuple(map(id, groups)))
        if known is None:
            if len(self._told_of) > MOST_TOLD:
                self._told_of.clear()
            known = self._told_of[tuple(map(id, groups))] = groups, diagnosis.rejections(self._groups)
        return known[1]

    def diagnosis(self) -> Diagnosis:
        """Why the pod fits nowhere."""
        found = self.pre_filtered
        return Diagnosis(
            nodes_total=len(self._cluster.nodes),
            groups=tuple(self._groups),
            absent=self.absent,
            pre_filter_message="" if found.status.ok else found.status.message,
            plugins=self._narrowing(),
            codes=grouping.status_codes(self._layers, self._apart(), self.absent, self.state, self._cluster.nodes),
            judge=self._row_judge,
        )

    def detailed(self, pod: PodInfo) -> Details:
        """For decision records: what stands in the pod's way, if no node takes it. Looked into once, until a
        node changes or a plugin may say something else."""
        if self._details is None:
            found = details.of_filters(self._layers, self.state, pod, self._cluster)
            found |= details.of_rivals(self._layers, self._contested, self._rivals, self.state, self._cluster)
            found |= self._left_out(pod)
            self._details = Details(found)
        return self._details

    def _left_out(self, pod: PodInfo) -> dict[details.Key, details.Found]:
        found, absent = self.pre_filtered, self.absent
        if absent is None:
            return {}
        if found.node_names is not None:
            plugin = absent.plugin or ", ".join(sorted(self._narrowing()))
            return details.of_names(plugin, absent, found.node_names, self._cluster)
        plugins = {plugin.name: plugin for plugin in self._profile.pre_filter}
        return details.of_pre_filter(plugins[absent.plugin], absent, self.state, pod, self._cluster)

    # ---- bringing up to date -------------------------------------------------------------------------------

    def refresh(self, pod: PodInfo) -> None:
        """Judge again what changed since the last time; everything the first time.

        :param pod: any pod of the signature (and of the same priority, while pods are nominated)
        :raises PluginError: if a plugin fails, or answers ERROR for a node that no plugin before it rejects
        """
        nodes = self._cluster.nodes
        self._renew(pod)
        before, self._rivals = self._rivals, self._find_rivals(pod)
        if before is not self._rivals:
            self._touched |= _others(before, self._rivals)
        own = pod.nominated_node
        if own and self.pre_filtered.node_names is None:
            own = ""
        apart = bool(own) or self._own is not None
        if self._version == nodes.version and self._first is None and not self._touched and not apart:
            return
        self._details = None
        if self._version < 0 or len(self.mask) != nodes.capacity:
            self._allot(pod)
        else:
            changed = nodes.changed_since(self._version)
            self._update(pod, sorted(self._touched.union(changed)) if self._touched else changed)
        self._version, self._first, self._touched = nodes.version, None, set()
        if apart:
            self._look_at_own(pod, own)
        if not self._grouped:
            self._groups = grouping.grouped(self._layers, self._apart(), self.state, nodes)
            self._rejections = None
            self._grouped = True

    def _begin(self, pod: PodInfo) -> None:
        """PreFilter for all plugins, with an empty state."""
        self.state = CycleState()
        self._watching: list[FilterToken] = []
        """Plugins whose token may become another one."""
        self._tokens: list[Hashable] = []
        self._ask_tokens(pod)
        self._pre_filtering = PreFiltering(self._profile.pre_filter, self.state)
        self._pre_filtering.run(pod, self._cluster)
        self.pre_filter_label = self._pre_filtering.result.status.code.label
        """Of what PreFilter said."""
        self._evaluated: Evaluated | None = None
        self._layers: list[Layer] = []
        self._by_row: list[Layer] = []
        """Those for which counts what is placed on a row."""
        self._candidates: Mask = NO_ROWS
        self._rivals: RivalsByRow = NO_RIVALS
        self._contested: dict[int, Rejector] = {}
        self._feasible: Rows | None = None
        self._groups: list[RejectedGroup] = []
        self._grouped = False
        self._rejections: tuple[Rejection, ...] | None = None
        self._details: Details | None = None
        self._told_of: dict[tuple[int, ...], tuple[Any, tuple[Rejection, ...]]] = {}
        """By the identities of the layers' groups, which are kept with it so that no other list gets their
        identity."""
        self._own: tuple[int, Rejector] | None = None
        """The nominated node of the pod that was judged last, if PreFilter names nodes and rejects it or
        leaves it out: row and first rejector."""
        self._version = -1
        self._touched: set[int] = set()
        """Rows that a plugin may judge otherwise now."""
        self._first: int | None = None
        """The first layer that has to be gone through for all rows; `None`: none."""

    def _ask_tokens(self, pod: PodInfo) -> None:
        name = ""
        try:
            for one in self._profile.filter_tokens:
                name, token = one
                value = token(pod, self._cluster)
                if value is not None:
                    self._watching.append(one)
                    self._tokens.append(value)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "filter_token", fault) from fault

    def _renew(self, pod: PodInfo) -> None:
        """Ask again the plugins whose token changed."""
        cluster, tokens = self._cluster, self._tokens
        renewed: list[str] = []
        name = ""
        try:
            for at, (name, token) in enumerate(self._watching):
                value = token(pod, cluster)
                if value != tokens[at]:
                    tokens[at] = value
                    if not self._touch(name, pod):
                        renewed.append(name)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "filter_token", fault) from fault
        if not renewed:
            return
        again = self._pre_filtering.again(renewed, pod, cluster)
        self.pre_filter_label = self._pre_filtering.result.status.code.label
        match again:
            case "begin anew":
                self._begin(pod)
            case "other":
                self._version = -1
            case "same":
                pass
        for at, layer in enumerate(self._layers):
            if layer.name in renewed:
                layer.forget()
                self._first = at if self._first is None else min(at, self._first)

    def _touch(self, name: str, pod: PodInfo) -> bool:
        """Whether the plugin tells which rows its new token is about: only they are judged again."""
        touched = self._profile.filter_touched.get(name)
        if touched is None:
            return False
        try:
            rows = touched(self.state, pod, self._cluster)
            if rows is None:
                return False
            self._touched.update(answers.rows(rows, self._cluster.nodes.capacity))
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "filter_touched", fault) from fault
        return True

    def _allot(self, pod: PodInfo) -> None:
        """New layers for the plugins that are not skipped, asked for all rows."""
        capacity = self._cluster.nodes.capacity
        self._layers = [
            Layer(number, plugin, capacity)
            for number, plugin in enumerate(self._profile.filter, start=1)
            if plugin.name not in self.state.skip_filter
        ]
        self._by_row = [layer for layer in self._layers if not layer.by_node]
        self._candidates = self._admitted()
        self._contested = {}
        self._go_through(pod, 0)
        self._judge_contested(pod, self._rivals)

    def _admitted(self) -> Mask:
        """Rows that PreFilter leaves."""
        nodes, found = self._cluster.nodes, self.pre_filtered
        if found.status.ok and found.node_names is None:
            return nodes.live.copy()
        admitted = np.zeros(nodes.capacity, dtype=np.bool_)
        if found.status.ok and found.node_names is not None:
            admitted[[nodes.row_of[name] for name in found.node_names if name in nodes.row_of]] = True
        return admitted

    def _is_candidate(self, row: int) -> bool:
        if row in self._rivals:
            return False
        nodes, found = self._cluster.nodes, self.pre_filtered
        if not found.status.ok or not nodes.live.item(row):
            return False
        return found.node_names is None or nodes.names[row] in found.node_names

    # ---- rows ----------------------------------------------------------------------------------------------

    def _update(self, pod: PodInfo, changed: Sequence[int]) -> None:
        """
        :param changed: rows that changed in the table, or have other rivals
        """
        contested = self._rivals
        if contested and self._first is None:
            contested = {row: contested[row] for row in changed if row in contested}
        for row in changed:
            self._contested.pop(row, None)
        if len(changed) <= ROWS_ONE_BY_ONE:
            for row in changed:
                self._judge_row(pod, row)
        else:
            rows = np.array(changed, dtype=np.intp)
            self._candidates[rows] = self._admitted()[rows]
            for layer in self._layers:
                layer.stale[rows] = True
            self._first = 0
        if self._first is not None:
            self._go_through(pod, self._first)
        if self._rivals:
            self._judge_contested(pod, contested)

    def _judge_row(self, pod: PodInfo, row: int) -> None:
        """One row by itself; of the layers that all rows go through next, the first only learns whether it
        gets there."""
        same_node = row not in self._touched and self._cluster.nodes.same_node_since(row, self._version)
        if same_node and self._passes_still(pod, row):
            return
        reached = candidate = self._is_candidate(row)
        layers = self._layers if self._first is None else self._layers[: self._first]
        name = ""
        try:
            for layer in layers:
                name = layer.name
                reached = layer.pass_one(row, reached, same_node, self.state, pod, self._cluster)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "filter", fault) from fault
        if self._first is None:
            self._set(row, reached)
        else:
            self._layers[self._first].reach(row, reached)
            for layer in self._layers[self._first + 1 :]:
                layer.stale[row] = True
        self._candidates[row] = candidate  # last: the first layer has the same array

    def _passes_still(self, pod: PodInfo, row: int) -> bool:
        """Whether all layers passed a row, and do so with what is placed there now; False: nobody knows.

        :raises PluginError: if a plugin fails
        """
        if self._first is not None or not self.mask.item(row) or row in self._rivals or self._last_is_stale(row):
            return False
        name = ""
        try:
            for layer in self._by_row:
                name = layer.name
                if not layer.pass_one(row, True, True, self.state, pod, self._cluster):
                    return False
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "filter", fault) from fault
        return True

    def _last_is_stale(self, row: int) -> bool:
        """Of a row that passes: it was contested, and the layers were not asked."""
        return not self._layers or self._layers[-1].stale.item(row)

    def _set(self, row: int, passes: bool) -> None:
        """One row passes or not; groups stay as they are only for one that passed before too."""
        before = self.mask.item(row)
        if before and passes:
            return
        self._grouped = False
        if before != passes:
            if self._moved is not None:
                self._moved.add(row)
            self.mask[row] = passes
            self.feasible_count += 1 if passes else -1
            self._feasible = None

    def _go_through(self, pod: PodInfo, first: int) -> None:
        layers = self._layers
        if self._rivals:
            self._candidates[list(self._rivals)] = False
        left = layers[first].reached if first else self._candidates
        rows = layers[first].rows() if first else None
        for layer in layers[first:]:
            left, rows = layer.pass_on(left, rows, self.state, pod, self._cluster)
        if left is self._candidates:
            left = left.copy()
        self._grouped = False
        self._replace_mask(left)
        if self._feasible is None:
            self._feasible = rows

    def _replace_mask(self, mask: Mask) -> None:
        before, self.mask = self.mask, mask
        if len(before) != len(mask):
            self._moved = None
        else:
            different = before != mask
            count = int(np.count_nonzero(different))
            if not count:
                return
            if count > FEW_MOVES:
                self._moved = None
            elif self._moved is not None:
                self._moved.update(different.nonzero()[0].tolist())
        self.feasible_count = int(np.count_nonzero(mask))
        self._feasible = None

    # ---- contested rows ------------------------------------------------------------------------------------

    def _find_rivals(self, pod: PodInfo) -> RivalsByRow:
        """Rows with pods that are to have room there before this one, with those pods."""
        if not self._cluster.rivals or not self.pre_filtered.status.ok:
            return NO_RIVALS
        found, names = self._cluster.rivals.by_row(pod), self.pre_filtered.node_names
        if names is None:
            return found
        return {row: rivals for row, rivals in found.items() if self._cluster.nodes.names[row] in names}

    def _judge_contested(self, pod: PodInfo, rows: Iterable[int]) -> None:
        """
        :param rows: contested rows to judge; of the others the last verdict counts
        """
        for row in rows:
            self._contested[row] = self._row_judge.first_rejector(self.state, pod, row)
        for row in rows if self._first is None else self._contested:
            self._set(row, self._contested[row][0] == PASSES)

    def _look_at_own(self, pod: PodInfo, node: str) -> None:
        """The pod's nominated node is judged even if PreFilter leaves it out, and its rejector is listed with
        those who named nodes.

        Source: schedule_one.go, findNodesThatFitPod, whose diagnosis evaluateNominatedNode shares.

        :param node: its name; "": there is none, or PreFilter leaves in all nodes
        """
        row = self._cluster.nodes.row_of.get(node)
        before, self._own = self._own, None
        if row is not None and self.pre_filtered.status.ok:
            number, code = PASSES, 0
            with suppress(PluginError):
                number, code = self._row_judge.first_rejector(self.state, pod, row)
            if number != PASSES and grouping.status_of(self._layers, (number, code), self.state).code != Code.ERROR:
                self._own = row, (number, code)
        if self._own != before:
            self._grouped = False

    def _narrowing(self) -> frozenset[str]:
        narrowed_by = self.pre_filtered.narrowed_by
        if self._own is None:
            return narrowed_by
        return narrowed_by | {grouping.status_of(self._layers, self._own[1], self.state).plugin}

    def _apart(self) -> Mapping[int, Rejector]:
        """Rows that no layer counts, with their first rejectors."""
        if self._own is None or self._is_candidate(self._own[0]):
            return self._contested
        return {**self._contested, self._own[0]: self._own[1]}


def _others(before: RivalsByRow, now: RivalsByRow) -> set[int]:
    """Rows whose rivals are not the same."""
    return {row for row in before.keys() | now.keys() if before.get(row) != now.get(row)}
