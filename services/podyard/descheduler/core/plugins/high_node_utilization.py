"""HighNodeUtilization: evicts pods from nodes that are used little, so that others take them and these become
free.

Source: pkg/framework/plugins/nodeutilization/highnodeutilization.go, types.go, validation.go (v0.36.0).
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from podyard.descheduler.core import event_hints, utilization
from podyard.descheduler.core.arguments import Args, Namespaces, PluginArgs
from podyard.descheduler.core.framework import Handle, Registration, Run, Target, Verdict
from podyard.descheduler.core.usage import Requested
from podyard.descheduler.core.utilization import Move, NodeState, Thresholds
from podyard.objects.node import Node
from podyard.objects.pod import Pod

NAME: Final = "HighNodeUtilization"
ONLY_THRESHOLDING_RESOURCES: Final = "OnlyThresholdingResources"


class HighNodeUtilizationArgs(PluginArgs, frozen=True, kw_only=True):
    """Thresholds are percent of a node."""

    thresholds: Thresholds = {}
    """Nodes that use no more of anything are the sources."""
    number_of_nodes: int = 0
    """Nothing is done unless more nodes than that are sources."""
    eviction_modes: tuple[str, ...] = ()
    """With ONLY_THRESHOLDING_RESOURCES, only pods go that request something that has a threshold."""
    evictable_namespaces: Namespaces | None = None


class HighNodeUtilization:
    """One run over all nodes."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = HighNodeUtilizationArgs

    def __init__(self, args: HighNodeUtilizationArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._resources = utilization.resources_of(args.thresholds)
        self._emptied: frozenset[str] = frozenset()
        """Nodes that are to become free in the run that is on."""

    @classmethod
    def faults(cls, args: HighNodeUtilizationArgs) -> list[str]:
        """The first thing that is wrong with the arguments."""
        mode = next((one for one in args.eviction_modes if one != ONLY_THRESHOLDING_RESOURCES), None)
        fault = (
            utilization.namespace_fault(args.evictable_namespaces)
            or utilization.threshold_fault(args.thresholds)
            or ("" if mode is None else f"invalid eviction mode {mode}")
        )
        return [fault] if fault else []

    @classmethod
    def events_to_register(cls, args: HighNodeUtilizationArgs) -> tuple[Registration, ...]:
        """Pods that leave, and other sizes: nodes are used less."""
        return event_hints.POD_LEFT, event_hints.NODE_ROOM

    def balance(self, nodes: list[Node]) -> Run:
        """Sources in ascending order of usage. Pods go wherever they may be placed, to any node that is not
        used so little."""
        source = Requested(self._resources, self._handle.state)
        used = source.of_nodes(nodes)
        most = dict.fromkeys(self._args.thresholds, float(utilization.MAX_PERCENT))
        below: list[NodeState] = []
        others: list[NodeState] = []
        for node in nodes:
            taken = used[node.metadata.name]
            state = NodeState(
                node,
                taken,
                self._handle.state.pods_on(node.metadata.name),
                utilization.capped(node, most, self._resources),
            )
            if utilization.is_below(utilization.percentages(taken, node), self._args.thresholds):
                below.append(state)
            elif not node.spec.unschedulable:
                others.append(state)
        if not others or len(below) <= self._args.number_of_nodes:
            return
        self._emptied = frozenset(one.node.metadata.name for one in below)
        move = Move(
            handle=self._handle,
            usage=source,
            resources=self._resources,
            namespaces=self._args.evictable_namespaces,
            may_leave=self._may_leave,
            goes_on=_goes_on,
            per_node=None,
            reason="its node is used no more than the thresholds say",
        )
        yield from move.run(sorted(below, key=NodeState.total), others)

    def is_better(self, pod: Pod, target: Target) -> Verdict:
        """Where the node is not to become free itself."""
        emptied = target.node.metadata.name in self._emptied
        return Verdict(not emptied, ("that node is to become free itself",) if emptied else ())

    def _may_leave(self, pod: Pod) -> bool:
        if ONLY_THRESHOLDING_RESOURCES in self._args.eviction_modes and not self._requests_one(pod):
            return False
        return self._handle.evictor.filter(pod).allowed

    def _requests_one(self, pod: Pod) -> bool:
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        return any(name in one.resources.requests for one in containers for name in self._args.thresholds)


def _goes_on(_source: NodeState, available: Mapping[str, int]) -> bool:
    return utilization.anything_left(available)
