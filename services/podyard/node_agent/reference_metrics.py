"""The kubelet's metrics, under its names, labels and buckets: of all nodes of an agent together.

Source: kubernetes v1.36.2, pkg/kubelet/metrics/metrics.go; what is counted when:
pkg/kubelet/eviction/eviction_manager.go, pkg/kubelet/preemption/preemption.go.
"""

from collections.abc import Iterable
from typing import Final

import prometheus_client

from podyard.node_agent.core.eviction import signals
from podyard.node_agent.core.eviction.local_storage import LIMITS
from podyard.telemetry.reference_metrics import CounterFamily, HistogramFamily

BY_SIGNAL: Final = ("eviction_signal",)
DEF_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Seconds. Source: DefBuckets of Prometheus' Go library."""


class ReferenceMetrics:
    """Of one process, over all its terms."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._evictions = CounterFamily(
            registry, "kubelet_evictions", "Cumulative number of pod evictions by eviction signal", BY_SIGNAL
        )
        for signal in (*signals.ALL, *LIMITS):  # so that a rate knows the first one
            self._evictions.labels(signal)
        self._stats_age = HistogramFamily(
            registry,
            "kubelet_eviction_stats_age_seconds",
            "Time between when stats are collected, and when pod is evicted based on those stats by eviction signal",
            BY_SIGNAL,
            buckets=DEF_BUCKETS,
        )
        self._preemptions = CounterFamily(
            registry,
            "kubelet_preemptions",
            "Cumulative number of pod preemptions by preemption resource",
            ["preemption_signal"],
        )

    def evicted(self, signal: str) -> None:
        """A node has evicted a pod."""
        self._evictions.labels(signal).inc()

    def must_evict(self, ages: Iterable[tuple[str, float]]) -> None:
        """A node goes by signals that were measured so many seconds ago."""
        for signal, age_s in ages:
            self._stats_age.labels(signal).observe(age_s)

    def preempted(self, resource: str) -> None:
        """A pod goes for a critical one, which is short of this."""
        self._preemptions.labels(resource).inc()
