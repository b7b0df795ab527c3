"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/noderesources/fit.go."""

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, Final

from podyard.cluster.node_table import NodeTable
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey, StateMissingError
from podyard.framework.events import Registration
from podyard.framework.interfaces import Detail, PreFilterResult, Rows, Scope, Scores, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Objects, Snapshot
from podyard.framework.status import Code, Status
from podyard.objects.core import Pod
from podyard.objects.resource import DeviceClass
from podyard.plugins.node_resources_fit import allocation, fit, hints, strategies
from podyard.plugins.node_resources_fit.allocation import Counted
from podyard.plugins.node_resources_fit.args import Args
from podyard.plugins.node_resources_fit.fit import Wanted
from podyard.proto.placement import Usage

NAME: Final = "NodeResourcesFit"
WANTED: Final = StateKey[Wanted]("PreFilterNodeResourcesFit")
COUNTED: Final = StateKey[tuple[Counted, ...]]("PreScoreNodeResourcesFit")
PASSES: Final = PreFilterResult()

CLASSES: Final = "deviceclasses"


def _signed(usage: Usage) -> Hashable:
    return tuple(usage.requests.items()), usage.nonzero_cpu_milli, usage.nonzero_memory_bytes


class NodeResourcesFit:
    """PreFilter, Filter, PreScore, Score."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "row"
    reads_template: ClassVar[bool] = True

    def __init__(self, args: Args) -> None:
        self.args = args
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._strategy = strategies.strategy(args.scoring_strategy)
        self._objects: Objects | None = None

    def use_objects(self, objects: Objects) -> None:
        """Where the hints find device classes."""
        self._objects = objects

    def signature(self, pod: PodInfo) -> Hashable:
        signed = _signed(pod.usage)
        return signed if pod.pod.spec.resources is None else (signed, _signed(allocation.containers_only(pod)))

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations(self._ignored, self._ignored_groups, self._by_devices)

    def hint_signature(self, pod: Pod) -> Hashable:
        return tuple(sorted(hints.wanted(pod).items()))

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        want = fit.wanted(pod.usage.requests, self._ignored, self._ignored_groups)
        if len(want.resources) > fit.MOST_RESOURCES:
            reason = (
                f"the pod requests {len(want.resources)} kinds of resources, at most {fit.MOST_RESOURCES} can be judged"
            )
            return PreFilterResult(status=statuses.error(reason))
        state.write(WANTED, want)
        return PASSES

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return fit.shortages(self._wanted(state), cluster.nodes, rows)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return fit.shortages_one(self._wanted(state), cluster.nodes, row)

    def room_wanted(self, state: CycleState) -> Sequence[tuple[str, int]]:
        return self._wanted(state).resources

    def lacking(self, usage: Usage, nodes: NodeTable, row: int) -> tuple[str, ...]:
        """The reasons why the node in `row` has no room for a pod that takes `usage`; none if it has: the
        binder's check."""
        want = fit.wanted(usage.requests, self._ignored, self._ignored_groups)
        code = fit.shortages_one(want, nodes, row)
        return fit.reasons(want, code) if code else ()

    def verdict(self, state: CycleState, code: int) -> Status:
        unresolvable = code & fit.UNRESOLVABLE
        return Status(
            code=Code.UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE,
            reasons=fit.reasons(self._wanted(state), code),
        )

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        return fit.detail(self._wanted(state), cluster.nodes, rows, reason)

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        state.write(COUNTED, self._count(pod))
        return statuses.SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return self._strategy.scores(self._counted(state, pod), cluster.nodes, rows)

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return self._strategy.score_one(self._counted(state, pod), cluster.nodes, row)

    def _count(self, pod: PodInfo) -> tuple[Counted, ...]:
        return allocation.assumed(self.args.scoring_strategy.resources, allocation.containers_only(pod))

    def _counted(self, state: CycleState, pod: PodInfo) -> tuple[Counted, ...]:
        """What PreScore wrote; the same made here if PreScore is disabled, as the reference does."""
        return state.find_or_make(COUNTED, self._count, pod)

    def _by_devices(self, resource: str) -> bool:
        """Whether a device class stands for this extended resource: devices of a node may then be what the
        pod asks for."""
        classes: Iterable[DeviceClass] = () if self._objects is None else self._objects.objects(CLASSES).values()
        return any(hints.stands_for(one, resource) for one in classes)

    def _wanted(self, state: CycleState) -> Wanted:
        """
        :raises StateMissingError: if PreFilter is disabled and Filter is not
        """
        try:
            return state.read(WANTED)
        except StateMissingError as missing:
            raise StateMissingError(missing.name, "error ") from None
