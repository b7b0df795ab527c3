"""Preemption: pods of lower priority make room. Decides only; who carries it out is the scheduler (victims)
and the queue (nominations).

Source: kube-scheduler v1.36.2, plugins/defaultpreemption/default_preemption.go,
pkg/scheduler/framework/preemption/preemption.go (Preempt).
"""

from collections.abc import Generator, Hashable, Mapping, Sequence
from random import Random
from typing import ClassVar, Final

import numpy as np

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import Diagnosis, RejectedGroup
from podyard.framework.events import Registration
from podyard.framework.interfaces import NodeVictims, PostFilterResult, Rows
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, Status
from podyard.objects.core import Pod
from podyard.plugins.default_preemption import budgets, choice, hints, importance
from podyard.plugins.default_preemption.args import Args
from podyard.plugins.default_preemption.budgets import Budgets
from podyard.plugins.default_preemption.choice import Candidate
from podyard.plugins.default_preemption.dry_run import NO_VICTIMS, DryRun, Found
from podyard.plugins.default_preemption.lowest_priority import LowestPriority
from podyard.proto.decisions import Victim

NAME: Final = "DefaultPreemption"
REASON_NEVER: Final = "not eligible due to preemptionPolicy=Never."
REASON_TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
REASON_NONE_LEFT: Final = "no candidate node for preemption"
NOT_HELPFUL: Final = statuses.unresolvable("Preemption is not helpful for scheduling")


class DefaultPreemption:
    """PreEnqueue, PostFilter."""

    name: ClassVar[str] = NAME
    reads: ClassVar[tuple[str, ...]] = (budgets.RESOURCE,)

    def __init__(self, args: Args) -> None:
        self.args = args

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return None

    def pre_enqueue(self, pod: Pod) -> Status:
        """Lets every pod in. Which preemptions run the queue alone knows, and its `PreemptionGate` answers
        for this plugin."""
        return statuses.SUCCESS

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis) -> PostFilterResult:
        """SUCCESS with a node and its victims. UNSCHEDULABLE leaves the nomination while victims end, and
        ends it if nothing helps."""
        random = Random(pod.uid)
        found = self._found(state, pod, cluster, diagnosis, random)
        return (
            found if isinstance(found, PostFilterResult) else _takes(found.candidate(choice.pick(found.costs, random)))
        )

    def post_filter_steps(
        self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis
    ) -> Generator[Mapping[str, NodeVictims], Mapping[str, NodeVictims], PostFilterResult]:
        random = Random(pod.uid)
        found = self._found(state, pod, cluster, diagnosis, random)
        if isinstance(found, PostFilterResult):
            return found
        by_node = {one.node: one for one in found.candidates}
        left = yield {
            node: NodeVictims(pods=one.victims, pdb_violations=one.violations) for node, one in by_node.items()
        }
        agreed = [_agreed(node, left[node], by_node.get(node)) for node in sorted(left)]
        if not agreed:
            return PostFilterResult(status=_says(Code.UNSCHEDULABLE, REASON_NONE_LEFT))
        return _takes(agreed[choice.pick(choice.costs(agreed), random)])

    def _found(
        self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis, random: Random
    ) -> Found | PostFilterResult:
        """With at least one candidate, or the answer if there is none."""
        reason = ineligible(pod, cluster, diagnosis)
        if reason:
            return PostFilterResult(status=_says(Code.UNSCHEDULABLE, reason))
        found = self._search(state, pod, cluster, diagnosis, random)
        if len(found.costs):
            return found
        if found.errors:
            return PostFilterResult(status=_says(Code.ERROR, _aggregate(found.errors)))
        return PostFilterResult(status=_says(Code.UNSCHEDULABLE, _no_help(diagnosis, found)), nominated_node="")

    def _search(
        self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis, random: Random
    ) -> Found:
        """Try nodes with pods of lower priority, by name, from one that the pod's uid chooses."""
        rows = diagnosis.rows(Code.UNSCHEDULABLE)
        hopeful = _by_name(cluster.nodes.index(LowestPriority).below(rows, pod.priority), cluster)
        without = len(rows) - len(hopeful)
        if len(hopeful):
            wanted = choice.candidates_wanted(self.args, len(rows))
            hopeful = np.roll(hopeful, -random.randrange(len(hopeful)))
            found = dry_run(state, pod, cluster, diagnosis).search(hopeful, wanted)
        else:
            found = Found.of([], {})
        found.without_victims = without
        return found


def _takes(best: Candidate) -> PostFilterResult:
    return PostFilterResult(status=statuses.SUCCESS, nominated_node=best.node, victims=victims_of(best))


def _agreed(node: str, victims: NodeVictims, before: Candidate | None) -> Candidate:
    """What extenders left of a candidate, or made one."""
    known = frozenset[str]() if before is None else before.violating
    uids = {pod.uid for pod in victims.pods}
    return Candidate(node=node, victims=victims.pods, violations=victims.pdb_violations, violating=known & uids)


def ineligible(pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis) -> str:
    """Why the pod may not preempt (now); empty if it may.

    It waits while victims on its nominated node end, unless that node cannot take it any more
    (docs/rules.md, preemptor-waits-for-its-victims).

    Source: PodEligibleToPreemptOthers.
    """
    if pod.pod.spec.preemption_policy == "Never":
        return REASON_NEVER
    node, priority = pod.nominated_node, pod.priority
    row = cluster.nodes.row_of.get(node) if node else None
    if row is None or diagnosis.code(row) == Code.UNRESOLVABLE:
        return ""
    going = any(
        placed.priority < priority and importance.terminating_by_preemption(placed)
        for placed in cluster.nodes.pods_on(node).values()
    )
    return REASON_TERMINATING if going else ""


def potential_rows(cluster: Snapshot, diagnosis: Diagnosis) -> list[int]:
    """Rows of the nodes where pods less might help, in the order of their names
    (docs/rules.md, preemption-choice-repeats; docs/rules.md, prefilters-run-before-preemption)."""
    return _by_name(diagnosis.rows(Code.UNSCHEDULABLE), cluster).tolist()


def _by_name(rows: Rows, cluster: Snapshot) -> Rows:
    return rows[cluster.nodes.order.rank[rows].argsort()]


def dry_run(state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis) -> DryRun:
    """Preemption for the pod, to be tried on single nodes.

    :param state: as `post_filter` is given it
    """
    known = Budgets(cluster.objects(budgets.RESOURCE).values(), cluster.version(budgets.RESOURCE))
    return DryRun(judge=diagnosis.judge, state=state, pod=pod, cluster=cluster, budgets=known)


def victims_of(candidate: Candidate) -> tuple[Victim, ...]:
    """For the decision record: most important first."""
    return tuple(
        Victim(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            priority=pod.priority,
            pdb_violation=pod.uid in candidate.violating,
        )
        for pod in candidate.victims
    )


def _no_help(diagnosis: Diagnosis, found: Found) -> str:
    """The reference's text: of each node that was tried why not, the others are not helped."""
    nodes: dict[Status, int] = {NO_VICTIMS: found.without_victims} if found.without_victims else {}
    for status in found.statuses.values():
        nodes[status] = nodes.get(status, 0) + 1
    tried = Diagnosis(
        nodes_total=diagnosis.nodes_total,
        groups=tuple(RejectedGroup(status=status, nodes=count) for status, count in nodes.items()),
        absent=NOT_HELPFUL,
        judge=diagnosis.judge,
    )
    return tried.message()


def _aggregate(errors: Sequence[str]) -> str:
    """Several errors in one text. Source: k8s.io/apimachinery/pkg/util/errors, Aggregate."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _says(code: Code, message: str) -> Status:
    return Status(code=code, reasons=(f"preemption: {message}",))
