"""Pods near other pods, or apart from them, by topology domain.

What placed pods ask for is found in an index of their terms, what the incoming pod asks for in counts of the
pods that its terms mean; both are kept up to date pod by pod, and a cycle works on domains, not on pods.

Source: kube-scheduler v1.36.2,
pkg/scheduler/framework/plugins/interpodaffinity/{plugin,filtering,scoring}.go.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, Final, NamedTuple

from podyard.cluster.node_table import PlacedPod
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import OwnRegistration, Registration
from podyard.framework.interfaces import Detail, PreFilterResult, Rows, Scope, Scores, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.objects.core import Pod
from podyard.plugins.inter_pod_affinity import (
    filtering,
    hints,
    in_the_way,
    incoming,
    obstacles,
    own_hints,
    scoring,
    term_index,
    terms,
)
from podyard.plugins.inter_pod_affinity.args import Args
from podyard.plugins.inter_pod_affinity.domain_places import Places
from podyard.plugins.inter_pod_affinity.filtering import Change, FilterState, Looked
from podyard.plugins.inter_pod_affinity.incoming import Incoming
from podyard.plugins.inter_pod_affinity.placed_terms import Group, PlacedTerms
from podyard.plugins.inter_pod_affinity.scoring import PointsByKey
from podyard.plugins.inter_pod_affinity.terms import NO_TERMS, PodTerms

NAME: Final = "InterPodAffinity"
REASON_AFFINITY: Final = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING: Final = "node(s) didn't satisfy existing pods anti-affinity rules"

FILTER_STATE: Final = StateKey[FilterState]("PreFilterInterPodAffinity")
LOOKED: Final = StateKey[Looked]("PreFilterInterPodAffinityLooked")
"""Ours only."""
POINTS: Final = StateKey[PointsByKey]("PreScoreInterPodAffinity")
PLACES: Final = StateKey[Places]("ScoreInterPodAffinityPlaces")
FILTER_PLACES: Final = StateKey[Places]("FilterInterPodAffinityPlaces")
"""Ours only: which domain each row is in, as the rows are mostly the same again."""

UNCONCERNED: Final = ()
"""Token of a pod that has no terms while no placed pod's term means it."""


ASKED_BYTES: Final = 8 * 1024 * 1024
"""What incoming pods' terms take that are kept resolved; their counts are the index's."""
HELD: Final = 4
"""Resolved terms take so many times what the pod's labels and terms do, at most."""


class Signature(NamedTuple):
    """All that the plugin reads of a pod."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    terms: PodTerms


NO_SIGNATURE: Final = Signature("", frozenset(), NO_TERMS)


class InterPodAffinity:
    """PreFilter with AddPod and RemovePod, Filter, PreScore, Score."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "row"
    reads_template: ClassVar[bool] = True
    by_extremes: ClassVar[bool] = True

    def __init__(self, args: Args) -> None:
        self.args = args
        self._last: tuple[Pod | None, Signature] = (None, NO_SIGNATURE)
        self._cluster: Snapshot | None = None
        self._last_asked: tuple[Pod | None, Incoming | None, int] = (None, None, 0)
        """With the table's version at which it was brought up to date."""
        self._asked = Kept[Signature, Incoming](ASKED_BYTES, fewest=1)
        """Pods as resolved in `_cluster`."""

    def signature(self, pod: PodInfo) -> Hashable:
        return self._signature(pod)

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def own_events_to_register(self) -> Sequence[OwnRegistration]:
        return own_hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return term_index.read_of(pod)

    # ---- filtering -----------------------------------------------------------------------------------------

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        own, index = self._signature(pod).terms, cluster.nodes.index(PlacedTerms)
        if not own.affinity and not own.anti_affinity and not index.anti_affinity:
            return UNCONCERNED
        asked = self._incoming(pod, cluster)
        versions = [counts.edged for counts in (*asked.near, *asked.apart)]
        return (*versions, *_token(index, index.anti_affinity.meaning(asked.subject)))

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        own, index = self._signature(pod).terms, cluster.nodes.index(PlacedTerms)
        if own.fault:
            return PreFilterResult(status=statuses.unresolvable(f"parsing pod: {own.fault}"))
        if not own.affinity and not own.anti_affinity and not index.anti_affinity:
            return PreFilterResult(status=statuses.SKIP)
        asked = self._incoming(pod, cluster)
        made = filtering.made(asked, self._excluding(asked, cluster))
        if made is None:
            return PreFilterResult(status=statuses.SKIP)
        state.write(FILTER_STATE, made)
        state.write(LOOKED, filtering.looked(made))
        return PreFilterResult()

    def filter_touched(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> Iterable[int] | None:
        """What PreFilter wrote stays right if pods come and go, since it reads their counts as they are."""
        before = state.find(LOOKED)
        if before is None or not before.made.apart:
            return None
        asked = self._incoming(pod, cluster)
        if before.made.pod is not asked or before.made.groups is not self._excluding(asked, cluster):
            return None
        rows = filtering.touched(before, cluster.nodes)
        if rows is not None:
            state.write(LOOKED, filtering.looked(before.made))
        return rows

    def add_pod(self, state: CycleState, pod: PodInfo, added: PlacedPod, row: int, cluster: Snapshot) -> Status:
        found = cluster.nodes.index(PlacedTerms).terms_of(added)
        return self._change(state, pod, Change(added, found, row, 1), cluster)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PlacedPod, row: int, cluster: Snapshot) -> Status:
        found = cluster.nodes.index(PlacedTerms).terms_of(removed)
        return self._change(state, pod, Change(removed, found, row, -1), cluster)

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return filtering.verdicts(_filter_state(state), cluster.nodes, _filter_places(state), rows)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return filtering.verdict_one(_filter_state(state), cluster.nodes, row)

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        if not len(rows):
            return None
        made, row = _filter_state(state), int(rows[0])
        ask = {REASON_AFFINITY: in_the_way.not_near, REASON_ANTI_AFFINITY: in_the_way.not_apart}
        return ask.get(reason, in_the_way.kept_out)(made, cluster.nodes, row)

    def verdict(self, state: CycleState, code: int) -> Status:
        found = _filter_state(state)
        if code == filtering.NOT_NEAR:
            return statuses.unresolvable(REASON_AFFINITY, obstacles=obstacles.not_near(found))
        if code == filtering.NOT_APART:
            return statuses.unschedulable(REASON_ANTI_AFFINITY, obstacles=obstacles.not_apart(found))
        return statuses.unschedulable(REASON_EXISTING, obstacles=obstacles.kept_out(found))

    # ---- scoring -------------------------------------------------------------------------------------------

    def score_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        own, index = self._signature(pod).terms, cluster.nodes.index(PlacedTerms)
        if not own.preferences and self._unpreferred(index):
            return UNCONCERNED
        asked = self._incoming(pod, cluster)
        versions = [counts.counted for counts, _ in asked.liked]
        bound, preferring = self._counting(asked, index)
        return (*versions, *_token(index, (*bound, *preferring)))

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        own, index = self._signature(pod).terms, cluster.nodes.index(PlacedTerms)
        if not own.preferences and self._unpreferred(index):
            return statuses.SKIP
        asked = self._incoming(pod, cluster)
        bound, preferring = self._counting(asked, index)
        worth = list(asked.liked)
        if bound:
            worth += scoring.of_groups(bound, self.args.hard_pod_affinity_weight)
        if preferring:
            worth += scoring.of_groups(preferring)
        found = scoring.points(worth)
        if not found:
            return statuses.SKIP
        state.write(POINTS, found)
        return statuses.SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return scoring.scores(_points(state), cluster.nodes, _places(state), rows)

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return scoring.score_one(_points(state), cluster.nodes, row)

    def normalize(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, scores: Scores) -> Scores:
        points = _points(state)
        found: Scores | None = None
        if len(points) == 1 and len(rows) == len(scores):
            found = scoring.normalized_by_domain(points[0], cluster.nodes, _places(state), rows)
        return scoring.normalized(scores) if found is None else found

    # ---- inside --------------------------------------------------------------------------------------------

    def _signature(self, pod: PodInfo) -> Signature:
        """All that is read of the pod; that of the last pod is remembered."""
        known, found = self._last
        joined = pod.pod
        if known is not joined:
            found = Signature(pod.namespace, frozenset(pod.labels.items()), terms.of_pod(joined))
            self._last = joined, found
        return found

    def _incoming(self, pod: PodInfo, cluster: Snapshot) -> Incoming:
        """The pod with its terms resolved and their counts as of now; those of the latest signatures are
        remembered."""
        if cluster is not self._cluster:
            self._cluster, self._last_asked = cluster, (None, None, 0)
            self._asked.clear()
        known, asked, looked = self._last_asked
        version, now = cluster.version(incoming.NAMESPACES), cluster.nodes.version
        if asked is None or known is not pod.pod or asked.subject.namespaces_version != version:
            asked = self._find(pod, cluster, version)
        elif looked == now:
            return asked
        asked.refresh()
        self._last_asked = pod.pod, asked, now
        return asked

    def _find(self, pod: PodInfo, cluster: Snapshot, version: int) -> Incoming:
        signature = self._signature(pod)
        asked = self._asked.get(signature)
        if asked is None or asked.subject.namespaces_version != version:
            asked = incoming.resolve(pod, signature.terms, cluster)
            self._asked.keep(signature, asked, HELD * bytes_of(signature))
        else:
            self._asked.use(signature)
        return asked

    def _unpreferred(self, index: PlacedTerms) -> bool:
        """Whether no placed pod's terms can count in the score of a pod without preferences of its own."""
        if self.args.ignore_preferred_terms_of_existing_pods:
            return True
        return not index.preferences and not (self.args.hard_pod_affinity_weight and index.affinity)

    def _counting(self, asked: Incoming, index: PlacedTerms) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
        """Groups whose required affinity, and whose preferences, count in the pod's score."""
        bound = index.affinity.meaning(asked.subject) if self.args.hard_pod_affinity_weight else ()
        return bound, index.preferences.meaning(asked.subject)

    def _excluding(self, asked: Incoming, cluster: Snapshot) -> tuple[Group, ...]:
        """Groups whose required anti-affinity means the pod; the same object until groups come or go."""
        return cluster.nodes.index(PlacedTerms).anti_affinity.meaning(asked.subject)

    def _change(self, state: CycleState, pod: PodInfo, change: Change, cluster: Snapshot) -> Status:
        labels = incoming.labels_of(pod.namespace, cluster.objects(incoming.NAMESPACES))
        state.write(FILTER_STATE, filtering.after(_filter_state(state), change, labels, cluster.nodes))
        return statuses.SUCCESS


def _token(index: PlacedTerms, groups: tuple[Group, ...]) -> tuple[int, ...]:
    """Equal as long as these are the groups, and their counts by domain are the same.

    Versions are drawn from one clock: a group that is new, or changed, has a greater one than all before.
    """
    if not groups:
        return ()
    newest = number = 0
    stamps: dict[str, int] = {}
    for group in groups:
        number += 1
        newest = max(newest, group.counts.version)
        key = group.term.topology_key
        if key not in stamps:
            stamps[key] = index.domains.stamp(key)
    return number, newest, *stamps.values()


def _filter_state(state: CycleState) -> FilterState:
    """What PreFilter wrote.

    :raises StateMissingError: if it is disabled
    """
    return state.read(FILTER_STATE, "error ")


def _points(state: CycleState) -> PointsByKey:
    """What PreScore wrote.

    :raises ScoreStateMissingError: if it is disabled
    """
    return state.read_for_score(POINTS)


def _places(state: CycleState) -> Places:
    return state.find_or_make(PLACES, Places)


def _filter_places(state: CycleState) -> Places:
    return state.find_or_make(FILTER_PLACES, Places)
