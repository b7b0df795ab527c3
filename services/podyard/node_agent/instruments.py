"""The node agent's metrics."""

from collections.abc import Callable, Iterable, Sized
from typing import Final

import prometheus_client
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from podyard.node_agent.core.virtual_node import VirtualNode
from podyard.node_agent.reference_metrics import ReferenceMetrics

MOST_NODES: Final = 500
"""Nodes that are shown: the first by name, always the same ones. Each has up to 40 series."""

PREFIX: Final = "podyard_node_agent"


class Instruments:
    """Counters of one process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._evicted = prometheus_client.Counter(
            "podyard_node_agent_evictions", "Pods evicted, by the signal that was low", ["signal"], registry=registry
        )
        self.reference = ReferenceMetrics(registry)
        self.refused = prometheus_client.Counter(
            "podyard_node_agent_refusals", "Pods that their node did not take, by reason", ["reason"], registry=registry
        )
        self.facts = prometheus_client.Counter(
            "podyard_node_agent_facts_stored", "Facts about pods and nodes that were stored", registry=registry
        )
        self._collected = prometheus_client.Counter(
            "podyard_node_agent_collected_image_bytes",
            "Images that nodes collected by themselves, by the kubelet's reason: age or space",
            ["reason"],
            registry=registry,
        )
        self.signals = SignalMetrics()
        registry.register(self.signals)
        self._nodes = prometheus_client.Gauge("podyard_node_agent_nodes", "Nodes it plays", registry=registry)
        self._awaited = prometheus_client.Gauge(
            "podyard_node_agent_awaited_nodes",
            "Nodes it is to play, and another agent plays",
            registry=registry,
        )
        self._pods = prometheus_client.Gauge(
            "podyard_node_agent_pods", "Pods on its nodes whose object lives", registry=registry
        )
        self.start_delay = prometheus_client.Histogram(
            "podyard_node_agent_pod_start_seconds",
            "From the binding to the moment when the pod runs",
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
            registry=registry,
        )

    def evicted(self, signal: str) -> None:
        """A node has evicted a pod."""
        self._evicted.labels(signal).inc()
        self.reference.evicted(signal)

    def collected(self, for_age: int, for_space: int) -> None:
        """A node has collected so many bytes of images."""
        self._collected.labels("age").inc(for_age)
        self._collected.labels("space").inc(for_space)

    def plays(self, nodes: Sized, pods: Sized, awaited: Sized) -> None:
        """What it plays from now on, and what it waits for; empty ones when a term has ended."""
        self._awaited.set_function(lambda: len(awaited))
        self._nodes.set_function(lambda: len(nodes))
        self._pods.set_function(lambda: len(pods))


class SignalMetrics(Collector):
    """Signals, thresholds and the age of readings of those nodes of which something is measured."""

    def __init__(self) -> None:
        self._read: Callable[[], Iterable[VirtualNode]] = tuple[VirtualNode]
        self._now: Callable[[], float] = float

    def show(self, read: Callable[[], Iterable[VirtualNode]], now: Callable[[], float]) -> None:
        """Where nodes come from, and the time by their agent's clock."""
        self._read, self._now = read, now

    def hide(self) -> None:
        """A term has ended: there are no nodes."""
        self._read = tuple[VirtualNode]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Amounts are bytes, of inodes and processes pieces."""
        labels = ["node", "signal"]
        available = GaugeMetricFamily(
            f"{PREFIX}_signal_available", "What is left, as of the last reading", None, labels
        )
        capacity = GaugeMetricFamily(f"{PREFIX}_signal_capacity", "What there is of it", None, labels)
        kinds = [*labels, "kind"]
        threshold = GaugeMetricFamily(f"{PREFIX}_threshold", "What should be left: hard, or soft", None, kinds)
        age = GaugeMetricFamily(f"{PREFIX}_reading_age_seconds", "Since what is known was measured", None, ["node"])
        nodes = sorted((node for node in self._read() if node.reading is not None), key=lambda node: node.name)
        for node in nodes[:MOST_NODES]:
            assert node.reading is not None, "others are left out"
            signals = node.reading.signals
            for name, value in signals.items():
                available.add_metric([node.name, name], value.available)
                capacity.add_metric([node.name, name], value.capacity)
            bounds = {
                (one.signal, "hard" if one.hard else "soft"): one.value.amount(signals[one.signal].capacity)
                for one in node.manager.thresholds
                if one.signal in signals
            }
            for (signal, kind), bound in bounds.items():
                threshold.add_metric([node.name, signal, kind], float(bound))
            age.add_metric([node.name], max(self._now() - node.read_at, 0.0))
        beyond = GaugeMetricFamily(
            f"{PREFIX}_nodes_without_signal_metrics",
            f"Nodes of which something is measured beyond the {MOST_NODES} that are shown",
            max(len(nodes) - MOST_NODES, 0),
        )
        yield from (available, capacity, threshold, age, beyond)
