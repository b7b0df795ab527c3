"""One pod on one row: all Filter plugins that are not skipped, with the pods counted that are to have room on
that node.

For trials (preemption), for nodes with nominated pods or kept room, and for the binder. A plugin's answer is
the one of the vectorised filter.

    with cluster.nodes.trial(row) as trial:          # a trial of preemption, on a cloned state
        victim = trial.remove(uid)
        judge.remove_pod(state, pod, victim, row)
        judge.passes(state, pod, row)

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go
(RunFilterPluginsWithNominatedPods, addGENominatedPods, RunPreFilterExtensionAddPod,
RunPreFilterExtensionRemovePod).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import PlacedPod
from podyard.cluster.pods import PodView
from podyard.framework import answers
from podyard.framework import status as statuses
from podyard.framework.answers import LARGEST
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import Filter, Rows, Verdicts
from podyard.framework.plugin_times import SUCCESS, UNSCHEDULABLE
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status

PASSES: Final = 0
"""No plugin rejects the node; number n + 1: filter plugin n of the profile does."""


class RowJudge:
    """Judges single rows of one snapshot by one profile; PostFilter knows it as `diagnosis.NodeJudge`.

    Keeps nothing between calls: all is in the state and the table.
    """

    __slots__ = ("_cluster", "_extensions", "_filters", "_node_filters", "_room_wanted")

    def __init__(self, profile: Profile, cluster: Snapshot) -> None:
        self._cluster = cluster
        self._filters = profile.filter
        self._node_filters = profile.node_filters
        self._room_wanted = profile.room_wanted
        self._extensions = profile.pre_filter_extensions

    def passes(self, state: CycleState, pod: PodInfo, row: int) -> Status:
        """Whether the node of this row takes the pod now, with `state` and the table as they are (in a trial:
        as the trial has them).

        If room on the node is kept for others, or pods of equal or higher priority are nominated to it, it
        must take the pod both with and without them.

        :param state: what PreFilter wrote, changed by `add_pod` and `remove_pod`; not changed here
        :return: SUCCESS, the first rejection with its plugin, or ERROR with the whole text; never raises for
            a plugin's fault
        """
        try:
            number, code = self.first_rejector(state, pod, row)
            if number == PASSES:
                return statuses.SUCCESS
            status = verdict(self._filters[number - 1], state, code)
            if status.code == Code.ERROR:
                raise PluginError(status.plugin, "filter", status.message)
        except PluginError as fault:
            return self._cluster.failed(fault)
        return status

    def takes(self, state: CycleState, pod: PodInfo, row: int) -> bool:
        """As `passes`, without a reason.

        :raises PluginError: if a plugin raises, or a nominated pod cannot be added
        """
        return self.first_rejector(state, pod, row)[0] == PASSES

    def room_wanted(self, state: CycleState) -> tuple[tuple[str, int], ...] | None:
        """What the pod takes of a node, if of what is on the node only the room counts for it: all plugins
        that are not skipped look at the node itself, or at room. `None`: something else may count, or people
        are to see what each plugin says to each trial.

        :raises PluginError: if a plugin raises
        """
        skipped, timing = state.skip_filter, self._cluster.timing
        if timing is not None and timing.tell_each_call:
            return None
        if any(plugin.name not in skipped for plugin in self._extensions):
            return None
        asked = [plugin.name for plugin in self._filters if plugin.name not in skipped and plugin.scope != "node"]
        if len(asked) != 1 or asked[0] not in self._room_wanted:
            return None
        try:
            wanted = tuple(self._room_wanted[asked[0]](state))
            strange = [one for one in wanted if [type(part) for part in one] != [str, int] or one[1] <= 0]
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(asked[0], "room_wanted", fault) from fault
        if strange:
            raise PluginError(asked[0], "room_wanted", f"answered {strange[0]!r}, not a resource and an amount above 0")
        return wanted

    def nodes_alone_take(self, state: CycleState, pod: PodInfo, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows' nodes the plugins that look at the node itself would take, in the order of
        `rows`.

        :raises PluginError: if a plugin raises
        """
        take = np.ones(len(rows), dtype=np.bool_)
        for plugin in self._node_filters:
            if plugin.name not in state.skip_filter:
                left = take.nonzero()[0]
                if not len(left):
                    break
                take[left] = ask(plugin, rows[left], state, pod, self._cluster) == 0
        return take

    def add_pod(self, state: CycleState, pod: PodInfo, placed: PlacedPod, row: int) -> Status:
        """`placed` is on the node of this row too (in the trial, by now): tells every plugin that is not
        skipped.

        :param state: a clone that only this trial uses
        :return: SUCCESS, or ERROR with the whole text; never raises for a plugin's fault
        """
        try:
            self._tell_added(state, pod, placed, row)
        except PluginError as fault:
            return self._cluster.failed(fault)
        return statuses.SUCCESS

    def remove_pod(self, state: CycleState, pod: PodInfo, placed: PlacedPod, row: int) -> Status:
        """`placed` is not on the node of this row any more; as `add_pod`."""
        timing = self._cluster.timing
        for plugin in self._extensions:
            if plugin.name not in state.skip_filter:
                started = 0.0 if timing is None else timing.watch()
                try:
                    status = answers.status(plugin.remove_pod(state, pod, placed, row, self._cluster))
                except Exception as fault:  # the boundary to plugins
                    return self._cluster.failed(PluginError.wrapping(plugin.name, "RemovePod", fault))
                if timing is not None:
                    timing.note(plugin.name, "PreFilterExtensionRemovePod", status.code.label, started)
                if not status.ok:
                    return self._cluster.failed(PluginError(plugin.name, "RemovePod", status.message))
        return statuses.SUCCESS

    def first_rejector(self, state: CycleState, pod: PodInfo, row: int) -> tuple[int, int]:
        """As `passes`, as (number, code): (PASSES, 0), or the number of the first plugin that rejects the
        node and its code.

        :raises PluginError: if a plugin raises, or a nominated pod cannot be added
        """
        cluster = self._cluster
        rivals = cluster.rivals.on(pod, row) if cluster.rivals else ()
        if rivals:
            number, code = self._with(rivals, state, pod, row)
            if number != PASSES:
                return number, code
        return self._ask(self._filters, state, pod, row)

    def _with(self, rivals: Sequence[PodView], state: CycleState, pod: PodInfo, row: int) -> tuple[int, int]:
        changed = state.clone()
        with self._cluster.nodes.trial(row) as trial:
            for rival in rivals:
                trial.add(rival)
                self._tell_added(changed, pod, rival, row)
            return self._ask(self._filters, changed, pod, row)

    def _tell_added(self, state: CycleState, pod: PodInfo, placed: PlacedPod, row: int) -> None:
        """
        :raises PluginError: if a plugin fails
        """
        timing = self._cluster.timing
        for plugin in self._extensions:
            if plugin.name not in state.skip_filter:
                started = 0.0 if timing is None else timing.watch()
                try:
                    status = answers.status(plugin.add_pod(state, pod, placed, row, self._cluster))
                except Exception as fault:  # the boundary to plugins
                    raise PluginError.wrapping(plugin.name, "AddPod", fault) from fault
                if timing is not None:
                    timing.note(plugin.name, "PreFilterExtensionAddPod", status.code.label, started)
                if not status.ok:
                    raise PluginError(plugin.name, "AddPod", status.message)

    def _ask(self, filters: Sequence[Filter], state: CycleState, pod: PodInfo, row: int) -> tuple[int, int]:
        """The first of these that rejects the row, by its number among them, and its code."""
        cluster, skipped = self._cluster, state.skip_filter
        timing = cluster.timing
        name = ""
        try:
            for number, plugin in enumerate(filters, start=1):
                name = plugin.name
                if name not in skipped:
                    started = 0.0 if timing is None else timing.watch()
                    code = plugin.filter_one(state, pod, cluster, row)
                    if timing is not None:
                        timing.note(name, "Filter", UNSCHEDULABLE if code else SUCCESS, started)
                    if type(code) is not int or not 0 <= code <= LARGEST:
                        code = answers.code(code)
                    if code:
                        return number, code
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "filter", fault) from fault
        return PASSES, 0


def ask(plugin: Filter, rows: Rows, state: CycleState, pod: PodInfo, cluster: Snapshot) -> Verdicts:
    """A plugin's codes for these rows, at least one, in their order.

    :raises PluginError: if it raises, or answers anything else
    """
    timing = cluster.timing
    started = 0.0 if timing is None else timing.watch()
    try:
        codes = plugin.filter(state, pod, cluster, rows)
        if type(codes) is not np.ndarray or codes.shape != rows.shape or codes.dtype != np.int64:
            codes = answers.by_row(codes, len(rows))
        highest = int(codes.view(np.uint64).max())  # so those below 0 are great
        if highest > LARGEST:
            raise answers.NonsenseError(f"answered code {codes.min()}; codes are 0 or above")
        if timing is not None:
            timing.note(plugin.name, "Filter", UNSCHEDULABLE if highest else SUCCESS, started)
        return codes
    except Exception as fault:  # the boundary to plugins: their bug ends the attempt under their name
        raise PluginError.wrapping(plugin.name, "filter", fault) from fault


def verdict(plugin: Filter, state: CycleState, code: int) -> Status:
    """What a plugin's code for a node that it rejects means, under its name.

    :raises PluginError: if it cannot say, or says that the node takes the pod after all. Source:
        framework.go, RunFilterPlugins
    """
    try:
        status = answers.status(plugin.verdict(state, code))
    except Exception as fault:  # the boundary to plugins
        raise PluginError.wrapping(plugin.name, "filter", fault) from fault
    if not status.rejected and status.code != Code.ERROR:
        raise PluginError(plugin.name, "filter", f"rejects a node with code {code}, which means {status.code.label}")
    return status.by(plugin.name)
