"""The scheduler's metrics."""

from collections import Counter

import prometheus_client

from podyard.scheduler.reference_metrics import ReferenceMetrics
from podyard.telemetry.plugin_faults import PluginFaults
from podyard.telemetry.tracing import Spans

CYCLE_BUCKETS = (2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 5e-2)
"""Seconds for one pod: below 100 µs when its like was seen before, below 1 ms when not."""


class Instruments:
    """Counters and histograms of one process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry, spans: Spans) -> None:
        self.reference = ReferenceMetrics(registry, spans)
        """kube-scheduler's."""
        self.plugin_faults = PluginFaults(registry, "scheduler")
        counter, gauge = prometheus_client.Counter, prometheus_client.Gauge
        self.results = counter("podyard_scheduler_results", "Results told to the queue", ["outcome"], registry=registry)
        self.pops = counter("podyard_scheduler_popped_pods", "Pods taken from the queue", registry=registry)
        self.decisions = counter("podyard_scheduler_decisions", "Decisions sent to the binder", registry=registry)
        self.conflicts = counter(
            "podyard_scheduler_bind_conflicts", "Decisions that the binder refused", ["cause"], registry=registry
        )
        self.retries = counter(
            "podyard_scheduler_bind_retries",
            "Refused decisions that were made again within their attempt",
            registry=registry,
        )
        self.repeats = counter(
            "podyard_scheduler_repeated_requests", "Requests sent again", ["subject"], registry=registry
        )
        self.sessions = counter("podyard_scheduler_sessions", "Sessions begun", registry=registry)
        self.lost_records = counter("podyard_scheduler_lost_records", "Records that were not stored", registry=registry)
        self.cycles = prometheus_client.Histogram(
            "podyard_scheduler_cycle_seconds",
            "Time of a scheduling cycle, mean of the pods of one slice",
            buckets=CYCLE_BUCKETS,
            registry=registry,
        )
        self.preemptions = prometheus_client.Histogram(
            "podyard_scheduler_preemption_seconds",
            "Time to have a preemption's victims deleted, by how that ended",
            ["outcome"],
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        self.victims = prometheus_client.Histogram(
            "podyard_scheduler_preemption_victims",
            "Pods that one preemption ends or sends back",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )
        self.unanswered = gauge(
            "podyard_scheduler_unanswered_pods", "Decided pods whose binding is not known yet", registry=registry
        )
        self.window = gauge(
            "podyard_scheduler_window_pods",
            "Decisions that may be with the binder at once: fewer when it refuses many",
            registry=registry,
        )
        self.waiting = gauge(
            "podyard_scheduler_waiting_pods",
            "Decided pods that wait in the binder for a PreBind plugin",
            registry=registry,
        )
        self.backlog = gauge("podyard_scheduler_backlog_pods", "Popped pods not looked at yet", registry=registry)

    def count_results(self, outcomes: Counter[str]) -> None:
        """Results of one step."""
        for outcome, number in outcomes.items():
            self.results.labels(outcome).inc(number)
