"""How much of their nodes pods use: what they request, or what somebody measured.

Source: pkg/framework/plugins/nodeutilization/usageclients.go, pkg/descheduler/metricscollector (v0.36.0; one
measurement, no smoothing).
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final, Protocol

from podyard.descheduler.core import metrics_providers
from podyard.descheduler.core.framework import PluginError
from podyard.descheduler.core.measured import Amounts, KubernetesMetrics, Measured, QueryFailed, QueryResult
from podyard.descheduler.core.state import CycleState
from podyard.objects import quantity
from podyard.objects.node import Node
from podyard.objects.pod import Pod

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
BASIC: Final = (CPU, MEMORY, PODS)

METRIC: Final = "MetricResource"
"""Stands for what a query of Prometheus tells of a node, as a share of 100."""


class Usage(Protocol):
    """One source of usage. All amounts are nano-units."""

    @abstractmethod
    def of_nodes(self, nodes: Iterable[Node]) -> dict[str, dict[str, int]]:
        """By node and resource.

        :raises PluginError: if it is not known of all nodes
        """

    @abstractmethod
    def of_pod(self, pod: Pod) -> Amounts | None:
        """By resource. None: this source knows nodes only.

        :raises PluginError: if it is not known of this pod
        """


class Requested(Usage):
    """What pods request."""

    def __init__(self, resources: Iterable[str], state: CycleState) -> None:
        self._resources = tuple(resources)
        self._state = state

    def of_nodes(self, nodes: Iterable[Node]) -> dict[str, dict[str, int]]:
        """Of pods that have not ended."""
        return {node.metadata.name: self._of_node(node.metadata.name) for node in nodes}

    def _of_node(self, name: str) -> dict[str, int]:
        taken = self._state.taken(name)
        found = {resource: taken.amounts.get(resource, 0) for resource in self._resources}
        return {**found, PODS: taken.pods * quantity.NANO}

    def of_pod(self, pod: Pod) -> Amounts:
        """0 of what it does not request."""
        requests = self._state.requests(pod)
        return {resource: requests.get(resource, 0) for resource in self._resources}


class Actual(Usage):
    """What nodes and pods use as Kubernetes measures it: cpu and memory, and how many pods there are."""

    def __init__(self, resources: Iterable[str], metrics: KubernetesMetrics, state: CycleState) -> None:
        self._resources = tuple(resources)
        self._metrics = metrics
        self._state = state

    def of_nodes(self, nodes: Iterable[Node]) -> dict[str, dict[str, int]]:
        """
        :raises PluginError: if a node was not measured, or other resources are asked for
        """
        return {node.metadata.name: self._of_node(node.metadata.name) for node in nodes}

    def _of_node(self, name: str) -> dict[str, int]:
        measured = self._metrics.nodes.get(name)
        if measured is None:
            why = f": {self._metrics.lacking}" if self._metrics.lacking else ""
            raise PluginError(f'error getting node usage: unable to find node "{name}" in the collected metrics{why}')
        found = {
            CPU: measured.get(CPU, 0),
            MEMORY: measured.get(MEMORY, 0),
            PODS: self._state.taken(name).pods * quantity.NANO,
        }
        for resource in self._resources:
            if resource not in found:
                sentence = f'unable to find "{resource}" resource for collected "{name}" node metric'
                raise PluginError(f"error getting node usage: {sentence}")
        return {resource: found[resource] for resource in self._resources}

    def of_pod(self, pod: Pod) -> Amounts:
        """The sum of its containers."""
        namespace, name = pod.key
        containers = self._metrics.pods.get(pod.key)
        if not containers:
            raise PluginError(f'unable to get podmetrics for "{namespace}"/"{name}"')
        total = dict.fromkeys(self._resources, 0)
        for container in containers:
            for resource in self._resources:
                if resource == PODS:
                    continue
                if resource not in container.amounts:
                    missing = f'container "{container.name}" is missing "{resource}" resource'
                    raise PluginError(f"pod {namespace}/{name}: {missing}")
                total[resource] += container.amounts[resource]
        return total


class Queried(Usage):
    """What a query of Prometheus says of nodes: a share of 1, counted in whole hundredths, rounded down."""

    def __init__(self, result: QueryResult | None) -> None:
        self._result = result

    def of_nodes(self, nodes: Iterable[Node]) -> dict[str, dict[str, int]]:
        """
        :raises PluginError: if the query failed, a sample makes no sense, or a node has none
        """
        shares = self._shares()
        found: dict[str, dict[str, int]] = {}
        for node in nodes:
            name = node.metadata.name
            if name not in shares:
                raise PluginError(f"error getting node usage: unable to find metric entry for {name}")
            found[name] = {METRIC: shares[name] * quantity.NANO}
        return found

    def _shares(self) -> Mapping[str, int]:
        if self._result is None or isinstance(self._result, QueryFailed):
            reason = "the query was not asked" if self._result is None else self._result.reason
            raise PluginError(f"error getting node usage: unable to capture prometheus metrics: {reason}")
        found: dict[str, int] = {}
        for sample in self._result:
            node = sample.labels.get("instance")
            if node is None:
                raise PluginError("error getting node usage: the collected metrics sample is missing 'instance' key")
            if not 0 <= sample.value <= 1:
                sentence = f'the collected metrics sample for "{node}" has value {_shown(sample.value)}'
                raise PluginError(f"error getting node usage: {sentence} outside of <0; 1> interval")
            found[node] = int(sample.value * 100)
        return found

    def of_pod(self, pod: Pod) -> None:
        """Nobody knows."""
        del pod


def measured_usage(source: str, query: str, resources: Iterable[str], state: CycleState) -> Usage:
    """Usage of a source as a policy names it (docs/rules.md, without-usage-nothing-is-moved).

    :raises PluginError: if there is no such source, or nobody measured for it before this cycle
    """
    measured: Measured = state.measured
    if source == metrics_providers.KUBERNETES:
        if measured.kubernetes is None:
            raise PluginError("error initializing usage client: metrics client not initialized")
        return Actual(resources, measured.kubernetes, state)
    if source == metrics_providers.PROMETHEUS:
        if measured.prometheus is None:
            raise PluginError("error initializing usage client: prometheus client not initialized")
        return Queried(measured.prometheus.get(query))
    problem = "unrecognized metrics source" if source else "metrics source is empty"
    raise PluginError(f"error initializing usage client: {problem}")


def _shown(value: float) -> str:
    """As Go prints it: as short as it can be, without an exponent."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    return format(Decimal(repr(value)), "f").removesuffix(".0")
