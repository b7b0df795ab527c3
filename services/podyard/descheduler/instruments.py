"""The descheduler's metrics."""

import prometheus_client

from podyard.descheduler.core.cycle import CycleRecord
from podyard.telemetry.plugin_faults import PluginFaults


class Instruments:
    """Counters of one process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self.evictions = prometheus_client.Counter(
            "podyard_descheduler_evictions",
            "Pods that plugins wanted to go, by what became of them",
            ["profile", "strategy", "result"],
            registry=registry,
        )
        self.cycles = prometheus_client.Counter(
            "podyard_descheduler_cycles", "Cycles, by how they ended", ["result"], registry=registry
        )
        self.lost_records = prometheus_client.Counter(
            "podyard_descheduler_lost_records", "Records of moves that will never be stored", registry=registry
        )
        self.plugin_faults = PluginFaults(registry, "descheduler")
        self.duration = prometheus_client.Histogram(
            "podyard_descheduler_cycle_seconds", "How long a cycle took", registry=registry
        )

    def count(self, record: CycleRecord) -> None:
        """A cycle has ended."""
        self.cycles.labels("skipped" if record.skipped else "done").inc()
        for fault in record.faults:
            self.plugin_faults.told(fault.plugin, fault.point, fault.detail)
        for step in record.steps:
            for attempt in step.attempts:
                self.evictions.labels(step.profile, step.plugin, attempt.answer.value).inc()
