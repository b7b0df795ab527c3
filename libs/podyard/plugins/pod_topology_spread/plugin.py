"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, filtering.go,
scoring.go."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import msgspec

from podyard.cluster.node_table import PlacedPod
from podyard.cluster.selector_counts import SelectorCounts
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import OwnRegistration, Registration
from podyard.framework.interfaces import Detail, PreFilterResult, Rows, Scope, Scores, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Objects, Snapshot
from podyard.framework.status import Status
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.objects.core import Pod
from podyard.objects.errors import SelectorError
from podyard.objects.selectors import Selector
from podyard.plugins.pod_topology_spread import constraints, hints, own_hints, owners, plans, scoring, skew
from podyard.plugins.pod_topology_spread.args import Args
from podyard.plugins.pod_topology_spread.hints import HardConstraints
from podyard.plugins.pod_topology_spread.plans import NO_PLAN, Plan, Planned
from podyard.plugins.pod_topology_spread.scoring import Spreading
from podyard.plugins.pod_topology_spread.skew import Skews

NAME: Final = "PodTopologySpread"
REASON: Final = "node(s) didn't match pod topology spread constraints"
REASON_NO_LABEL: Final = REASON + " (missing required label)"

SKEWS: Final = StateKey[Skews]("PreFilterPodTopologySpread")
SPREADING: Final = StateKey[Spreading]("PreScorePodTopologySpread")
PASSES: Final = PreFilterResult()
SKIPS: Final = PreFilterResult(status=statuses.SKIP)

PLANS_BYTES: Final = 8 * 1024 * 1024
"""What plans take that are kept for pods like those that came before."""

HELD: Final = 4
"""A plan with its selectors takes so many times what its key does, at most ..."""
PLAN_BYTES: Final = 2048
"""... and this."""

_ENCODER: Final = msgspec.json.Encoder()


class PodTopologySpread:
    """PreFilter, Filter, PreScore, Score, NormalizeScore."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "cluster"
    reads_template: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = owners.READ

    def __init__(self, args: Args) -> None:
        """
        :raises SelectorError: never for valid arguments: default constraints have no selectors
        """
        self.args = args
        self._system = args.defaulting_type == "System"
        listed = constraints.SYSTEM_DEFAULTS if self._system else args.default_constraints
        self._hard_defaults = constraints.compiled(listed, constraints.DO_NOT_SCHEDULE, {})
        self._soft_defaults = constraints.compiled(listed, constraints.SCHEDULE_ANYWAY, {})
        self._has_defaults = bool(listed)
        self._hints = HardConstraints(self._hard_defaults)
        self._owners = owners.OwnerSelectors()
        self._plans = Kept[Hashable, Plan](PLANS_BYTES, fewest=1)
        self._last: tuple[Pod, Selector | None, Plan] | None = None

    def signature(self, pod: PodInfo) -> Hashable:
        if pod.pod.spec.topology_spread_constraints:
            return _own_key(pod)
        return (owners.identity(pod.pod), plans.of_node(pod)) if self._has_defaults else None

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations(self._hints)

    def own_events_to_register(self) -> Sequence[OwnRegistration]:
        return own_hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return self._hints.read_of(pod)

    def use_objects(self, objects: Objects) -> None:
        """Where hints find Services and controllers. Without it they say Queue for pods under hard default
        constraints."""
        self._hints.lookup = objects

    # ---- Filter --------------------------------------------------------------------------------------------

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        if not self._hard_defaults and not pod.pod.spec.topology_spread_constraints:
            return None
        return _token(pod, cluster, self._plan(pod, cluster).hard)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        if not self._hard_defaults and not pod.pod.spec.topology_spread_constraints:
            return SKIPS
        plan = self._plan(pod, cluster)
        if plan.hard_fault:
            return PreFilterResult(status=statuses.error(f"get constraints from pod: {plan.hard_fault}"))
        if not plan.hard:
            return SKIPS
        counts = cluster.nodes.index(SelectorCounts)
        skews = [
            skew.Skew(planned, counts.sums(planned.pods, planned.constraint.topology_key, planned.among))
            for planned in plan.hard
        ]
        state.write(SKEWS, tuple(skews))
        return PASSES

    def add_pod(self, state: CycleState, pod: PodInfo, added: PlacedPod, row: int, cluster: Snapshot) -> Status:
        return _with_pod(state, pod, added, row, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PlacedPod, row: int, cluster: Snapshot) -> Status:
        return _with_pod(state, pod, removed, row, -1)

    def filter_pattern(self, state: CycleState, cluster: Snapshot) -> Hashable:
        return cluster.nodes.topology_version, *[one.codes().tobytes() for one in state.read(SKEWS)]

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return skew.codes(state.read(SKEWS), rows)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return skew.code(state.read(SKEWS), row)

    def verdict(self, state: CycleState, code: int) -> Status:
        if code == skew.NO_LABEL:
            return statuses.unresolvable(REASON_NO_LABEL)
        return statuses.unschedulable(REASON, obstacles=own_hints.obstacles(state.read(SKEWS)))

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        return skew.detail(state.read(SKEWS), rows)

    # ---- Score ---------------------------------------------------------------------------------------------

    def score_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        if not self._soft_defaults and not pod.pod.spec.topology_spread_constraints:
            return None
        return _token(pod, cluster, self._plan(pod, cluster).soft)

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        if not self._soft_defaults and not pod.pod.spec.topology_spread_constraints:
            return statuses.SKIP
        plan = self._plan(pod, cluster)
        if plan.soft_fault:
            return statuses.error(f"calculating preScoreState: {plan.soft_fault}")
        if not plan.soft:
            return statuses.SKIP
        state.write(SPREADING, scoring.spreading(plan, cluster.nodes, feasible, state.find(SPREADING)))
        return statuses.SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return _spreading(state).scores(rows)

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return _spreading(state).score(row)

    def normalize(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, scores: Scores) -> Scores:
        return scoring.normalized(scores, _spreading(state).ignored(rows))

    # ---- plans ---------------------------------------------------------------------------------------------

    def _plan(self, pod: PodInfo, cluster: Snapshot) -> Plan:
        """The pod's constraints, its own or the defaults. The last answer is kept: a cycle asks several times
        for its pod."""
        own = bool(pod.pod.spec.topology_spread_constraints)
        selector = None if own else self._owners.selector(pod.pod, cluster)
        if self._last is not None and self._last[0] is pod.pod and self._last[1] is selector:
            return self._last[2]
        key = _own_key(pod) if own else (selector, owners.identity(pod.pod), plans.of_node(pod))
        plan = self._plans.get(key)
        if plan is None:
            plan = _own_plan(pod) if selector is None else self._default_plan(pod, selector)
            self._plans.keep(key, plan, HELD * bytes_of(key) + PLAN_BYTES)
        else:
            self._plans.use(key)
        self._last = pod.pod, selector, plan
        return plan

    def _default_plan(self, pod: PodInfo, selector: Selector) -> Plan:
        """Source: buildDefaultConstraints."""
        if selector.everything:
            return NO_PLAN
        all_labels = not self._system
        hard = constraints.with_selector(self._hard_defaults, selector)
        soft = constraints.with_selector(self._soft_defaults, selector)
        return Plan(
            hard=plans.planned(pod, hard, all_labels=True),
            soft=plans.planned(pod, soft, all_labels=all_labels),
            all_labels=all_labels,
        )


def _token(pod: PodInfo, cluster: Snapshot, planned: Sequence[Planned]) -> Hashable:
    """What the answer for a pod's hard or soft constraints depends on. Without any, a pod may get default
    constraints with the first Service."""
    if not planned:
        return None if pod.pod.spec.topology_spread_constraints else ()
    counts = cluster.nodes.index(SelectorCounts)
    return cluster.nodes.topology_version, *[counts.of(one.pods).version for one in planned]


def _own_key(pod: PodInfo) -> Hashable:
    """All that the plan of a pod with constraints depends on."""
    spread = _ENCODER.encode(pod.pod.spec.topology_spread_constraints)
    return spread, pod.namespace, frozenset(pod.labels.items()), plans.of_node(pod)


def _own_plan(pod: PodInfo) -> Plan:
    listed, labels = pod.pod.spec.topology_spread_constraints, pod.labels
    try:
        hard = plans.planned(pod, constraints.compiled(listed, constraints.DO_NOT_SCHEDULE, labels), all_labels=True)
    except SelectorError as error:
        return Plan(hard_fault=f"obtaining pod's hard topology spread constraints: {error.detail}")
    try:
        soft = plans.planned(pod, constraints.compiled(listed, constraints.SCHEDULE_ANYWAY, labels), all_labels=True)
    except SelectorError as error:
        return Plan(hard=hard, soft_fault=f"obtaining pod's soft topology spread constraints: {error.detail}")
    return Plan(hard=hard, soft=soft)


def _with_pod(state: CycleState, pod: PodInfo, other: PlacedPod, row: int, more: int) -> Status:
    if other.namespace == pod.namespace:
        skews = state.read(SKEWS)
        state.write(SKEWS, tuple([one.with_pod(other.labels, row, more) for one in skews]))
    return statuses.SUCCESS


def _spreading(state: CycleState) -> Spreading:
    return state.read(SPREADING, "error ")
