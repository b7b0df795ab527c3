"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go."""

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, Final

import numpy as np

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import Registration
from podyard.framework.interfaces import Detail, PreFilterResult, Rows, Scope, Scores, Verdicts
from podyard.framework.normalizing import default_normalize
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.objects import selectors
from podyard.objects.affinity import NodeAffinity as NodeAffinityRules
from podyard.objects.affinity import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from podyard.objects.core import Pod
from podyard.objects.errors import SelectorError
from podyard.objects.selectors import NodeTerms, PreferredTerm, RequiredNodeAffinity
from podyard.plugins import node_matching
from podyard.plugins.node_affinity import hints, lacking
from podyard.plugins.node_affinity.args import Args

NAME: Final = "NodeAffinity"
REASON_POD: Final = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED: Final = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT: Final = "pod affinity terms conflict"
NOT_ENFORCED: Final = 1
NOT_WANTED: Final = 2

REQUIRED: Final = StateKey[RequiredNodeAffinity]("PreFilterNodeAffinity")
PREFERRED: Final = StateKey[tuple[PreferredTerm, ...]]("PreScoreNodeAffinity")


def affinity_of(pod: PodInfo) -> NodeAffinityRules | None:
    """The pod's own node affinity."""
    affinity = pod.pod.spec.affinity
    return None if affinity is None else affinity.node_affinity


def required_of(pod: PodInfo) -> NodeSelector | None:
    """The pod's own required node affinity."""
    rules = affinity_of(pod)
    return None if rules is None else rules.required_during_scheduling_ignored_during_execution


def preferred_of(pod: PodInfo) -> tuple[PreferredSchedulingTerm, ...]:
    """The pod's own preferred node affinity."""
    rules = affinity_of(pod)
    return () if rules is None else rules.preferred_during_scheduling_ignored_during_execution


def named_nodes(terms: Iterable[NodeSelectorTerm]) -> frozenset[str] | None:
    """The nodes that the terms name by `metadata.name`; `None` if one of them names none, so that all nodes
    may do.

    Terms are ORed, the requirements of one are ANDed (docs/rules.md, terms-that-name-nodes-are-ored). An
    empty answer: the names contradict each other.
    """
    names: frozenset[str] | None = None
    for term in terms:
        listed = [
            frozenset(field.values)
            for field in term.match_fields
            if field.key == selectors.NODE_NAME_FIELD and field.operator == selectors.IN
        ]
        if not listed:
            return None
        agreed = listed[0].intersection(*listed[1:])
        names = agreed if names is None else names | agreed
    return names


class NodeAffinity:
    """PreFilter, Filter, PreScore, Score."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "node"
    reads_template: ClassVar[bool] = True
    by_extremes: ClassVar[bool] = True

    def __init__(self, args: Args) -> None:
        """
        :raises SelectorError: if a preferred term of the added affinity is no valid selector
        """
        self.args = args
        added = args.added_affinity
        required = None if added is None else added.required_during_scheduling_ignored_during_execution
        preferred = () if added is None else added.preferred_during_scheduling_ignored_during_execution
        self._added: NodeTerms | None = None if required is None else selectors.compile_nodes(required)
        self._prefers = bool(preferred)
        self._added_preferred = selectors.compile_preferred(preferred)

    def signature(self, pod: PodInfo) -> Hashable:
        spec = pod.pod.spec
        if spec.affinity is None and not spec.node_selector:
            return None
        return tuple(sorted(spec.node_selector.items())), affinity_of(pod)

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations(self._added)

    def hint_signature(self, pod: Pod) -> Hashable:
        affinity = pod.spec.affinity
        return tuple(sorted(pod.spec.node_selector.items())), None if affinity is None else affinity.node_affinity

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        required = required_of(pod)
        if required is None and self._added is None and not pod.pod.spec.node_selector:
            return PreFilterResult(status=statuses.SKIP)
        state.write(REQUIRED, selectors.required_node_affinity(pod.pod))
        names = None if required is None else named_nodes(required.node_selector_terms)
        if names is not None and not names:
            return PreFilterResult(status=statuses.unresolvable(REASON_CONFLICT))
        return PreFilterResult(node_names=names)

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        wanted = node_matching.required(self._required(state, pod), cluster.nodes, rows)
        codes = np.where(wanted, 0, NOT_WANTED)
        if self._added is not None:
            codes[~node_matching.terms(self._added, cluster.nodes, rows)] = NOT_ENFORCED
        return codes

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        if self._added is not None and not node_matching.terms_one(self._added, cluster.nodes, row):
            return NOT_ENFORCED
        return 0 if node_matching.required_one(self._required(state, pod), cluster.nodes, row) else NOT_WANTED

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unresolvable(REASON_ENFORCED if code == NOT_ENFORCED else REASON_POD)

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        if not len(rows):
            return None
        if reason == REASON_ENFORCED and self._added is not None:
            return lacking.of_terms(self._added, cluster.nodes, rows)
        return lacking.detail(self._required(state, pod), cluster.nodes, rows)

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        if not preferred_of(pod) and not self._prefers:
            return statuses.SKIP
        try:
            state.write(PREFERRED, self._compiled(pod))
        except SelectorError as error:
            return statuses.error(str(error))
        return statuses.SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        scores = np.zeros(len(rows), dtype=np.int64)
        for preferred in self._preferred(state, pod):
            scores += preferred.weight * node_matching.term(preferred.term, cluster.nodes, rows)
        return scores

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        node = cluster.nodes.nodes[row]
        if node is None:
            return 0
        labels, name = node.metadata.labels, node.metadata.name
        return sum(one.weight for one in self._preferred(state, pod) if one.term.matches(labels, name))

    def normalize(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, scores: Scores) -> Scores:
        return default_normalize(scores)

    def _compiled(self, pod: PodInfo) -> tuple[PreferredTerm, ...]:
        return (*self._added_preferred, *selectors.compile_preferred(preferred_of(pod)))

    def _preferred(self, state: CycleState, pod: PodInfo) -> tuple[PreferredTerm, ...]:
        """What PreScore compiled; the same made here if PreScore is disabled, as the reference does."""
        return state.find_or_make(PREFERRED, self._compiled, pod)

    def _required(self, state: CycleState, pod: PodInfo) -> RequiredNodeAffinity:
        """What PreFilter compiled; the same made here if PreFilter is disabled, as the reference does."""
        return state.find_or_make(REQUIRED, selectors.required_node_affinity, pod.pod)
