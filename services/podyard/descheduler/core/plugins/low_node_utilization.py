"""LowNodeUtilization: evicts pods from nodes that are used too much, as long as others are used little.

Source: pkg/framework/plugins/nodeutilization/lownodeutilization.go, types.go, validation.go (v0.36.0).
"""

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from podyard.descheduler.core import event_hints, usage, utilization
from podyard.descheduler.core.arguments import Args, Namespaces, PluginArgs, Unsigned
from podyard.descheduler.core.framework import Handle, Registration, Run, Target, Verdict
from podyard.descheduler.core.metrics_providers import KUBERNETES, PROMETHEUS
from podyard.descheduler.core.usage import METRIC, Usage
from podyard.descheduler.core.utilization import Move, NodeState, Thresholds
from podyard.objects.node import Node
from podyard.objects.pod import Pod

NAME: Final = "LowNodeUtilization"


class PrometheusQuery(Args, frozen=True, kw_only=True):
    """A query that returns a vector: a share of 1 for each node, which `instance` names."""

    query: str = ""


class MetricsUtilization(Args, frozen=True, kw_only=True):
    """Usage as it is measured, in place of requests. `metrics_server` is the old way to say
    KubernetesMetrics."""

    metrics_server: bool = False
    source: str = ""
    prometheus: PrometheusQuery | None = None


class EvictionLimits(Args, frozen=True, kw_only=True):
    """How many pods may leave a node in one run."""

    node: Unsigned | None = None


class LowNodeUtilizationArgs(PluginArgs, frozen=True, kw_only=True):
    """Thresholds are percent of a node; with `use_deviation_thresholds`, percent below and above the average
    of all nodes."""

    use_deviation_thresholds: bool = False
    thresholds: Thresholds = {}
    """Nodes that use no more of anything are the destinations."""
    target_thresholds: Thresholds = {}
    """Nodes that use more of something are the sources."""
    number_of_nodes: int = 0
    """Nothing is done unless more nodes than that are destinations."""
    metrics_utilization: MetricsUtilization | None = None
    evictable_namespaces: Namespaces | None = None
    eviction_limits: EvictionLimits | None = None


class _Levels(NamedTuple):
    """What nodes are held against in a run."""

    source: Usage
    used: Mapping[str, dict[str, int]]
    """By node and resource; of sources it sinks as pods go."""
    high: Thresholds
    below: frozenset[str]
    """Nodes that are destinations."""


class LowNodeUtilization:
    """One run over all nodes."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = LowNodeUtilizationArgs

    def __init__(self, args: LowNodeUtilizationArgs, handle: Handle) -> None:
        """
        :raises ValueError: if a query tells of one resource, and thresholds of others
        """
        self._args = args
        self._handle = handle
        self._resources = utilization.resources_of(args.thresholds)
        self._levels: _Levels | None = None
        """Of the run that is on."""
        metrics = args.metrics_utilization
        if metrics is not None and metrics.source == PROMETHEUS:
            _check_resources("thresholds", args.thresholds)
            _check_resources("targetThresholds", args.target_thresholds)
            self._resources = (METRIC,)

    @classmethod
    def faults(cls, args: LowNodeUtilizationArgs) -> list[str]:
        """The first thing that is wrong with the arguments."""
        fault = (
            utilization.namespace_fault(args.evictable_namespaces)
            or _thresholds_fault(args)
            or _metrics_fault(args.metrics_utilization)
        )
        return [fault] if fault else []

    @classmethod
    def events_to_register(cls, args: LowNodeUtilizationArgs) -> tuple[Registration, ...]:
        """New nodes, and other sizes: there are destinations, or sources."""
        return event_hints.NODE_CAME, event_hints.NODE_ROOM

    def balance(self, nodes: list[Node]) -> Run:
        """Sources in descending order of usage."""
        source = self._usage()
        used = source.of_nodes(nodes)
        percent, low, high = self._assessed(nodes, used)
        below: list[NodeState] = []
        above: list[NodeState] = []
        for node in nodes:
            name = node.metadata.name
            if not node.spec.unschedulable and utilization.is_below(percent[name], low):
                below.append(self._state(node, used[name], high))
            elif utilization.is_above(percent[name], high):
                above.append(self._state(node, used[name], high))
        if not above or len(below) <= self._args.number_of_nodes:
            return
        self._levels = _Levels(source, used, high, frozenset(one.node.metadata.name for one in below))
        limits = self._args.eviction_limits
        move = Move(
            handle=self._handle,
            usage=source,
            resources=self._resources,
            namespaces=self._args.evictable_namespaces,
            may_leave=self._may_leave,
            goes_on=_goes_on,
            per_node=limits.node if limits is not None else None,
            reason="its node is used more than the target thresholds say",
        )
        yield from move.run(sorted(above, key=NodeState.total, reverse=True), below)

    def is_better(self, pod: Pod, target: Target) -> Verdict:
        """Where no more is used than the target thresholds say, with the pod and those that go there before
        it; if nobody knows what pods use, where little is used. Of nodes that the policy does not select it
        knows nothing."""
        assert self._levels is not None, "it is asked during a run"
        name = target.node.metadata.name
        used = self._levels.used.get(name)
        if used is None:
            return Verdict(True)
        with_it = utilization.with_pods(used, (pod, *target.coming.get(name, ())), self._levels.source)
        if with_it is None:
            fits = name in self._levels.below
        else:
            fits = not utilization.is_above(utilization.percentages(with_it, target.node), self._levels.high)
        return Verdict(fits, () if fits else ("more would be used there than the target thresholds say",))

    def _may_leave(self, pod: Pod) -> bool:
        return self._handle.evictor.filter(pod).allowed

    def _usage(self) -> Usage:
        """
        :raises PluginError: if usage is to be measured, and was not
        """
        metrics = self._args.metrics_utilization
        if metrics is None:
            return usage.Requested(self._resources, self._handle.state)
        source = KUBERNETES if metrics.metrics_server else metrics.source
        query = metrics.prometheus.query if metrics.prometheus is not None else ""
        return usage.measured_usage(source, query, self._resources, self._handle.state)

    def _assessed(
        self, nodes: list[Node], used: Mapping[str, dict[str, int]]
    ) -> tuple[dict[str, Thresholds], Thresholds, Thresholds]:
        """Percentages by node, and the thresholds that they are held against."""
        args = self._args
        percent = {node.metadata.name: utilization.percentages(used[node.metadata.name], node) for node in nodes}
        if not args.use_deviation_thresholds:
            return percent, args.thresholds, args.target_thresholds
        percent = {
            node: {name: share for name, share in found.items() if name in args.thresholds}
            for node, found in percent.items()
        }
        low, high = utilization.around_average(percent.values(), args.thresholds, args.target_thresholds)
        return percent, low, high

    def _state(self, node: Node, used: dict[str, int], high: Thresholds) -> NodeState:
        pods = self._handle.state.pods_on(node.metadata.name)
        return NodeState(node, used, pods, utilization.capped(node, high, self._resources))


def _goes_on(source: NodeState, available: Mapping[str, int]) -> bool:
    return source.over_cap() and utilization.anything_left(available)


def _check_resources(field: str, thresholds: Thresholds) -> None:
    if list(thresholds) != [METRIC]:
        got = " ".join(sorted(thresholds))
        raise ValueError(
            f'{field} are expected to specify a single instance of "{METRIC}" resource, got [{got}] instead'
        )


def _thresholds_fault(args: LowNodeUtilizationArgs) -> str:
    for field, thresholds in (("thresholds", args.thresholds), ("targetThresholds", args.target_thresholds)):
        fault = utilization.threshold_fault(thresholds)
        if fault:
            return f"{field} config is not valid: {fault}"
    if args.thresholds.keys() != args.target_thresholds.keys():
        return "thresholds and targetThresholds configured different resources"
    for name in sorted(args.thresholds):
        if args.thresholds[name] > args.target_thresholds[name] and not args.use_deviation_thresholds:
            return f"thresholds' {name} percentage is greater than targetThresholds'"
    return ""


def _metrics_fault(metrics: MetricsUtilization | None) -> str:
    if metrics is None:
        return ""
    if metrics.source == KUBERNETES:
        if metrics.metrics_server:
            return f'it is not allowed to set both "{KUBERNETES}" source and metricsServer'
        if metrics.prometheus is not None:
            return f'prometheus configuration is not allowed to set when source is set to "{KUBERNETES}"'
    if metrics.source == PROMETHEUS and (metrics.prometheus is None or not metrics.prometheus.query):
        return f'prometheus query is required when metrics source is set to "{PROMETHEUS}"'
    return ""
