"""Why a pod fits nowhere: each rejected node with its first rejector, and the reference's text.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/types.go (Diagnosis, FitError, NodeToStatus).
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import PlacedPod
from podyard.framework.cycle_state import CycleState
from podyard.framework.pod_info import PodInfo
from podyard.framework.status import Code, Status
from podyard.proto.decisions import Rejection

NO_NODES: Final = "no nodes available to schedule pods"
"""The attempt's error when the cluster has no node at all."""

EXAMPLES: Final = 3
"""Node names kept for each reason."""

MOST_REASONS: Final = 128
"""Different reasons that a record or message names, those of most nodes: a plugin may give every node its
own; semi-arbitrary.
"""

_NO_CODES: Final[NDArray[np.int8]] = np.zeros(0, dtype=np.int8)


class RejectedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that one plugin rejected with one status. `nodes` counts all, `examples` names the first by
    name."""

    status: Status
    nodes: int
    examples: tuple[str, ...] = ()


class NodeJudge(Protocol):
    """Whether single nodes would take the pod, for PostFilter: asked while a trial of the node table has pods
    less, or more, on that node. `row_judge` keeps the rule.
    """

    def passes(self, state: CycleState, pod: PodInfo, row: int) -> Status:
        """SUCCESS if the node of this row takes the pod as `state` and the table are now; else why not."""
        ...

    def takes(self, state: CycleState, pod: PodInfo, row: int) -> bool:
        """The same without a reason, which takes less time.

        :raises PluginError: if a plugin raises, or a nominated pod cannot be added
        """
        ...

    def room_wanted(self, state: CycleState) -> tuple[tuple[str, int], ...] | None:
        """What the pod takes of a node, if of what is on the node only the room counts for it: resources with
        amounts above 0. `None`: something else may count, or each trial is to be seen.

        :raises PluginError: if a plugin raises
        """
        ...

    def nodes_alone_take(self, state: CycleState, pod: PodInfo, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of these rows' nodes take the pod as far as what is on them does not count, in the order of
        `rows`.

        :raises PluginError: if a plugin raises
        """
        ...

    def add_pod(self, state: CycleState, pod: PodInfo, placed: PlacedPod, row: int) -> Status:
        """Tell the plugins that `placed` is on the node of this row too; SUCCESS, or ERROR with the whole
        text.

        :param state: a clone that only this trial uses
        """
        ...

    def remove_pod(self, state: CycleState, pod: PodInfo, placed: PlacedPod, row: int) -> Status:
        """Tell the plugins that `placed` is not on the node of this row any more; as `add_pod`."""
        ...


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What Filter (and PreFilter) found, when no node is left."""

    nodes_total: int
    groups: tuple[RejectedGroup, ...] = ()
    """Nodes by first rejector and status."""
    absent: Status | None = None
    """Status of the nodes that were not filtered, because PreFilter left them out or rejected the pod."""
    pre_filter_message: str = ""
    """Why PreFilter rejected the pod for all nodes."""
    plugins: frozenset[str] = frozenset()
    """Further rejectors: plugins whose PreFilter narrowed the nodes
    (docs/rules.md, who-narrows-is-a-rejector)."""
    codes: NDArray[np.int8] = _NO_CODES
    """By row of the table: `Code` of the node's status, SUCCESS for a free row; nodes that were not filtered
    have that of `absent`.
    """
    judge: NodeJudge
    """For PostFilter: judges single nodes in trials."""

    def rows(self, code: Code) -> NDArray[np.intp]:
        """Rows of the nodes whose status has this code, ascending; UNSCHEDULABLE: those that preemption may
        help (docs/rules.md, prefilters-run-before-preemption).

        Source: framework/types.go, NodeToStatus.NodesForStatusCode.
        """
        return np.flatnonzero(self.codes == code)

    def code(self, row: int) -> Code:
        """The code of one node's status."""
        return Code(self.codes.item(row))

    @property
    def unschedulable_plugins(self) -> tuple[str, ...]:
        """Plugins whose events may make the pod schedulable, sorted."""
        return self._rejectors(pending=False)

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Plugins that wait for something outside, sorted."""
        return self._rejectors(pending=True)

    @property
    def obstacles(self) -> dict[str, tuple[str, ...]]:
        """What stands in the pod's way, by plugin, sorted; of plugins that say so."""
        found: dict[str, set[str]] = {}
        for status in self._statuses():
            if status.obstacles and status.rejected:
                found.setdefault(status.plugin, set()).update(status.obstacles)
        return {plugin: tuple(sorted(obstacles)) for plugin, obstacles in sorted(found.items())}

    def _statuses(self) -> list[Status]:
        """All that nodes were rejected with."""
        found = [group.status for group in self.groups]
        return found if self.absent is None else [*found, self.absent]

    def _rejectors(self, *, pending: bool) -> tuple[str, ...]:
        statuses = self._statuses()
        found = {s.plugin for s in statuses if s.plugin and s.rejected and (s.code == Code.PENDING) is pending}
        return tuple(sorted(found if pending else found | self.plugins))

    def message(self, post_filter: str = "") -> str:
        """The reference's FitError text.

        :param post_filter: what PostFilter said, "" if nothing
        """
        text = f"0/{self.nodes_total} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        else:
            reasons = self._reasons()
            if reasons:
                text += f" {_counted(reasons)}."
        return f"{text} {post_filter}" if post_filter else text

    def _reasons(self) -> Counter[str]:
        reasons: Counter[str] = Counter()
        for group in self.groups:
            for reason in group.status.reasons:
                reasons[reason] += group.nodes
        judged = sum(group.nodes for group in self.groups)
        if self.absent is not None and judged < self.nodes_total:
            for reason in self.absent.reasons:
                reasons[reason] += self.nodes_total - judged
        return reasons

    def rejections(self) -> tuple[Rejection, ...]:
        """For the decision record: counts and examples by plugin and reason, most nodes first."""
        found = list(rejections(self.groups))
        judged = sum(group.nodes for group in self.groups)
        if self.absent is not None and judged < self.nodes_total:
            plugin = self.absent.plugin or ", ".join(sorted(self.plugins))
            unresolvable = self.absent.code == Code.UNRESOLVABLE
            found += [
                Rejection(plugin=plugin, reason=reason, nodes=self.nodes_total - judged, unresolvable=unresolvable)
                for reason in self.absent.reasons
            ]
        return tuple(sorted(found, key=_order)[:MOST_REASONS])


def _counted(reasons: Counter[str]) -> str:
    """Reasons with their numbers of nodes, in the order of that text; of too many those of most nodes."""
    told = sorted(f"{count} {reason}" for reason, count in reasons.most_common(MOST_REASONS))
    more = len(reasons) - len(told)
    return ", ".join(told) if more <= 0 else f"{', '.join(told)}, and {more} further reasons"


def rejections(groups: Iterable[RejectedGroup]) -> tuple[Rejection, ...]:
    """Groups of rejected nodes as a decision record shows them: one entry a plugin, reason and code."""
    merged: dict[tuple[str, str, bool], tuple[int, tuple[str, ...]]] = {}
    for group in groups:
        status = group.status
        unresolvable = status.code == Code.UNRESOLVABLE
        for reason in status.reasons:
            key = status.plugin, reason, unresolvable
            known = merged.get(key)
            if known is None:
                merged[key] = group.nodes, group.examples
            else:
                merged[key] = known[0] + group.nodes, tuple(sorted((*known[1], *group.examples))[:EXAMPLES])
    found = [
        Rejection(plugin=plugin, reason=reason, nodes=nodes, unresolvable=unresolvable, examples=examples)
        for (plugin, reason, unresolvable), (nodes, examples) in merged.items()
    ]
    if len(found) > 1:
        found.sort(key=_order)
    return tuple(found[:MOST_REASONS])


def _order(rejection: Rejection) -> tuple[int, str, str]:
    return -rejection.nodes, rejection.plugin, rejection.reason
