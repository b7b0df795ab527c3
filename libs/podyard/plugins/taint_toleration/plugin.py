"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from podyard.framework import details
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import Registration
from podyard.framework.interfaces import Detail, Rows, Scope, Scores, Verdicts
from podyard.framework.normalizing import default_normalize
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.objects import taints
from podyard.objects.affinity import Taint, Toleration
from podyard.objects.core import Pod
from podyard.plugins.taint_toleration import hints

NAME: Final = "TaintToleration"
REASON: Final = "node(s) had untolerated taint(s)"
UNTOLERATED: Final = 1


def repels(on_node: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Whether a hard taint (NoSchedule, NoExecute) keeps the pod off the node."""
    return taints.untolerated(on_node, tolerations) is not None


def soft_taints(on_node: Sequence[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many PreferNoSchedule taints the pod does not tolerate. Source:
    countIntolerableTaintsPreferNoSchedule."""
    soft = [one for one in tolerations if not one.effect or one.effect == taints.PREFER_NO_SCHEDULE]
    return sum(taint.effect == taints.PREFER_NO_SCHEDULE and not taints.tolerated(soft, taint) for taint in on_node)


class TaintJudge:
    """What one list of tolerations means for each combination of taints, worked out once a combination."""

    __slots__ = ("_hard", "_hard_of", "_soft", "_soft_of", "_tolerations")

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._tolerations = tolerations
        self._hard: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._hard_of: Sequence[tuple[Taint, ...]] = ()
        self._soft: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._soft_of: Sequence[tuple[Taint, ...]] = ()

    def hard(self, sets: Sequence[tuple[Taint, ...]]) -> NDArray[np.int64]:
        """By number of the combination: UNTOLERATED or 0."""
        if len(self._hard) < len(sets) or self._hard_of is not sets:
            self._hard_of = sets
            self._hard = np.array([UNTOLERATED if repels(one, self._tolerations) else 0 for one in sets], np.int64)
        return self._hard

    def soft(self, sets: Sequence[tuple[Taint, ...]]) -> NDArray[np.int64]:
        """By number of the combination: how many soft taints are not tolerated."""
        if len(self._soft) < len(sets) or self._soft_of is not sets:
            self._soft_of = sets
            self._soft = np.array([soft_taints(one, self._tolerations) for one in sets], np.int64)
        return self._soft


JUDGE: Final = StateKey[TaintJudge]("TaintToleration")
"""Ours only, for Filter and Score."""
SCORED: Final = StateKey[TaintJudge]("PreScoreTaintToleration")


def _first_of_each(numbers: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Different numbers, the first so many, with their first places."""
    found, places = np.unique(numbers, return_index=True)
    return sorted(zip(found.tolist(), places.tolist(), strict=True), key=lambda one: one[1])[: details.MOST_LOOKED_AT]


def judge(state: CycleState, pod: PodInfo) -> TaintJudge:
    """The judge of this pod's tolerations, made at first use."""
    return state.find_or_make(JUDGE, TaintJudge, pod.pod.spec.tolerations)


def _scored(state: CycleState) -> TaintJudge:
    """
    :raises ScoreStateMissingError: if PreScore is disabled and Score is not
    """
    return state.read_for_score(SCORED)


class TaintToleration:
    """Filter, PreScore, Score."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "node"
    reads_template: ClassVar[bool] = True
    by_extremes: ClassVar[bool] = True

    def signature(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.tolerations

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return pod.spec.tolerations

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        nodes = cluster.nodes
        return judge(state, pod).hard(nodes.taints.sets).take(nodes.taint_set.take(rows))

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        nodes = cluster.nodes
        taint_set = nodes.taint_set.item(row)
        return judge(state, pod).hard(nodes.taints.sets).item(taint_set) if taint_set else 0

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unresolvable(REASON)

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        """Of the node with the fewest taints in the way."""
        nodes, tolerations = cluster.nodes, pod.pod.spec.tolerations
        found = [
            (len(missing := taints.all_untolerated(nodes.taints.sets[number], tolerations)), place, missing)
            for number, place in _first_of_each(nodes.taint_set.take(rows))
        ]
        if not found:
            return None
        count, place, missing = min(found)
        spelled = details.listed([taints.spelled(taint) for taint in missing])
        return Detail(f"does not tolerate {'taint' if count == 1 else 'taints'} {spelled}", int(rows[place]), count)

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        state.write(SCORED, judge(state, pod))
        return statuses.SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        nodes = cluster.nodes
        return _scored(state).soft(nodes.taints.sets).take(nodes.taint_set.take(rows))

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        nodes = cluster.nodes
        scored, taint_set = _scored(state), nodes.taint_set.item(row)
        return scored.soft(nodes.taints.sets).item(taint_set) if taint_set else 0

    def normalize(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, scores: Scores) -> Scores:
        return default_normalize(scores, reverse=True)
