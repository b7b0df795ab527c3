"""A scheduling cycle rehearsed, for people: where a pod would go if it were tried now, and what each plugin
says of each node.

The cycle is made anew and shares nothing with those of the scheduler. It ends with the choice of a node:
Reserve and Permit, which change what plugins hold, are not asked, and nobody is assumed, nominated or
preempted. What it finds is what a cycle over the same snapshot would find.

In a cycle a node is judged up to the first plugin that rejects it. Here every Filter plugin is asked about
every node.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podyard.framework import answers, details, row_judge
from podyard.framework.cycle import LEADERS, Cycle, CycleResult
from podyard.framework.extenders import REJECTOR, Answers, Calls, Extender
from podyard.framework.feasibility import Feasibility
from podyard.framework.interfaces import Filter
from podyard.framework.layers import Mask
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Profile
from podyard.framework.row_judge import RowJudge
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status, described

LEFT_OUT: Final = "an HTTP extender left the node out"
NO_OTHER_REASON: Final = "the node is not taken"


class Verdict(NamedTuple):
    """What one plugin has against a node."""

    plugin: str
    reasons: tuple[str, ...]
    unresolvable: bool
    """Preemption cannot help."""


class NodesAlike(NamedTuple):
    """Nodes against which all plugins say the same."""

    verdicts: tuple[Verdict, ...]
    """In the order in which plugins are asked."""
    names: tuple[str, ...]
    """Sorted."""


class Rehearsed(NamedTuple):
    """What was found."""

    result: CycleResult
    """Its scores are those of all nodes that fit, the chosen one first; of one node alone there are none."""
    equals: int = 0
    """Nodes with the highest total, from which the pod's uid chose one; 0: nobody scores."""
    rejected: tuple[NodesAlike, ...] = ()
    """All nodes that do not take the pod, most first."""


def rehearse(
    profile: Profile, cluster: Snapshot, pod: PodInfo, extenders: Sequence[Extender] = ()
) -> Generator[Calls, Answers, Rehearsed]:
    """Yields what extenders are to be asked, is sent their answers. Between a yield and its answer nothing
    may change in the snapshot. Never raises for a plugin's fault.

    :param pod: not counted in the table
    """
    cycle = Cycle(profile, cluster, extenders=extenders, leaders=max(LEADERS, len(cluster.nodes)))
    cluster.timing = None
    result = yield from cycle.steps(pod)
    if result.error:
        return Rehearsed(result)
    left = _left(pod, result) if extenders else None
    try:
        rejected = _Nodes(profile, cluster, pod, cycle.judge(pod), left).rejected()
    except PluginError as fault:
        result.node, result.scores, result.error = "", (), described(fault)
        return Rehearsed(result)
    top = result.scores[0].total if result.scores else None
    return Rehearsed(result, sum(score.total == top for score in result.scores), rejected)


def _left(pod: PodInfo, result: CycleResult) -> frozenset[str] | None:
    """Names of the nodes that extenders left; None: they were asked about the pod's nominated node alone,
    which it gets."""
    if pod.nominated_node and result.node == pod.nominated_node and result.nodes_feasible == 1:
        return None
    return frozenset(score.node for score in result.scores) or frozenset({result.node}) - {""}


class _Nodes:
    """All nodes of one rehearsal, judged by each plugin by itself."""

    def __init__(
        self, profile: Profile, cluster: Snapshot, pod: PodInfo, feasibility: Feasibility, left: frozenset[str] | None
    ) -> None:
        """:param left: of those that the plugins pass; None: all of them"""
        self._filters = profile.filter
        self._cluster = cluster
        self._pod = pod
        self._feasibility = feasibility
        self._left = left
        self._judge = RowJudge(profile, cluster)
        self._rows = cluster.nodes.rows()

    def rejected(self) -> tuple[NodesAlike, ...]:
        """Those that do not take the pod, together where all say the same."""
        said, columns = self._columns()
        if not columns:
            return ()
        codes = np.stack(columns, axis=1)
        patterns, of_row = np.unique(codes, axis=0, return_inverse=True)
        names: list[list[str]] = [[] for _ in range(len(patterns))]
        nodes = self._cluster.nodes
        place = {row: at for at, row in enumerate(self._rows.tolist())}
        belongs: list[int] = of_row.reshape(-1).tolist()
        by_name: list[int] = nodes.order.rows.tolist()
        for row in by_name:
            names[belongs[place[row]]].append(nodes.names[row])
        alike = [
            NodesAlike(tuple(verdicts), tuple(names[at]))
            for at, pattern in enumerate(patterns.tolist())
            if (verdicts := [said[column][code] for column, code in enumerate(pattern) if code])
        ]
        return tuple(sorted(alike, key=lambda one: (-len(one.names), one.names)))

    def _columns(self) -> tuple[list[dict[int, Verdict]], list[NDArray[np.int64]]]:
        """For each who may say something: what codes other than 0 mean, and the code of each row."""
        found = self._feasibility.pre_filtered
        said: list[dict[int, Verdict]] = []
        columns: list[NDArray[np.int64]] = []
        absent = self._feasibility.absent
        if absent is not None:
            plugin = absent.plugin or ", ".join(sorted(found.narrowed_by))
            said.append({1: _verdict(absent, plugin)})
            columns.append(self._outside(found.node_names if found.status.ok else frozenset()))
        if found.status.ok:
            for plugin in self._filters:
                if plugin.name not in self._feasibility.state.skip_filter:
                    codes, meant = self._asked(plugin)
                    said.append(meant)
                    columns.append(codes)
        codes, meant = self._otherwise(columns)
        return [*said, meant], [*columns, codes]

    def _outside(self, names: frozenset[str] | None) -> NDArray[np.int64]:
        """1 for nodes that PreFilter leaves out."""
        nodes = self._cluster.nodes.names
        inside = names or frozenset()
        return np.array([nodes[row] not in inside for row in self._rows.tolist()], dtype=np.int64)

    def _asked(self, plugin: Filter) -> tuple[NDArray[np.int64], dict[int, Verdict]]:
        """What one Filter plugin says of all rows. One that raises, about nodes that no cycle would show it,
        has that said of it."""
        state = self._feasibility.state
        if not len(self._rows):
            return np.zeros(0, dtype=np.int64), {}
        try:
            codes = answers.by_row(plugin.filter(state, self._pod, self._cluster, self._rows), len(self._rows))
            found: list[int] = np.unique(codes).tolist()
            meant = {code: _verdict(row_judge.verdict(plugin, state, code), plugin.name) for code in found if code}
        except Exception as fault:  # the boundary to plugins: nobody's attempt ends by it
            told = Verdict(plugin.name, (described(fault),), unresolvable=True)
            return np.logical_not(self._feasibility.mask[self._rows]).astype(np.int64), {1: told}
        return codes, meant

    def _otherwise(self, columns: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], dict[int, Verdict]]:
        """Nodes that each plugin would pass, and that do not take the pod: room is kept there for others, or
        an extender left them out."""
        passed = np.all([column == 0 for column in columns], axis=0) if columns else np.ones(len(self._rows), bool)
        codes = np.zeros(len(self._rows), dtype=np.int64)
        meant: dict[int, Verdict] = {}
        numbers: dict[Verdict, int] = {}
        for at, row in self._of(passed):
            verdict = self._apart(row)
            if verdict is not None:
                code = numbers.setdefault(verdict, len(numbers) + 1)
                codes[at], meant[code] = code, verdict
        return codes, meant

    def _of(self, mask: Mask) -> Iterator[tuple[int, int]]:
        """Places and rows where a mask holds."""
        for at in mask.nonzero()[0].tolist():
            yield at, int(self._rows[at])

    def _apart(self, row: int) -> Verdict | None:
        name = self._cluster.nodes.names[row]
        if self._feasibility.mask.item(row):
            return None if self._left is None or name in self._left else Verdict(REJECTOR, (LEFT_OUT,), True)
        status = self._feasibility.status(row)
        if status is None:
            return None
        rivals = [f"{pod.namespace}/{pod.name}" for pod in self._cluster.rivals.on(self._pod, row)]
        kept = f", with the room that is kept for {details.listed(rivals)}" if rivals else ""
        verdict = _verdict(status, status.plugin)
        return verdict._replace(reasons=tuple(f"{reason}{kept}" for reason in verdict.reasons))


def _verdict(status: Status, plugin: str) -> Verdict:
    return Verdict(plugin, status.reasons or (NO_OTHER_REASON,), status.code != Code.UNSCHEDULABLE)
