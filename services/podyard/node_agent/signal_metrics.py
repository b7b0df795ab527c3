"""What nodes measure, as metrics: read when somebody asks for them, of as many nodes as one may look at."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from podyard.node_agent.core.virtual_node import VirtualNode

MOST_NODES: Final = 500
"""Nodes that are shown: the first by name, always the same ones. Each has up to 40 series."""

PREFIX: Final = "podyard_node_agent"


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
