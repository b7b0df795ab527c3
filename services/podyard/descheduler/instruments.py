"""The descheduler's metrics."""

from typing import Final

import prometheus_client

from podyard.descheduler.core.cycle import CycleRecord
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionResult
from podyard.descheduler.core.framework import Answer
from podyard.descheduler.reference_metrics import ReferenceMetrics
from podyard.telemetry.plugin_faults import PluginFaults

ENDS: Final = ("done", "skipped", "failed")
"""How cycles end."""


class Instruments:
    """Counters of one process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._evictions = prometheus_client.Counter(
            "podyard_descheduler_evictions",
            "Pods that plugins wanted to go, by what became of them",
            ["profile", "strategy", "result"],
            registry=registry,
        )
        self._cycles = prometheus_client.Counter(
            "podyard_descheduler_cycles", "Cycles, by how they ended", ["result"], registry=registry
        )
        for end in ENDS:  # so that a rate knows the first one
            self._cycles.labels(end)
        self.lost_records = prometheus_client.Counter(
            "podyard_descheduler_lost_records", "Records of moves that will never be stored", registry=registry
        )
        self.plugin_faults = PluginFaults(registry, "descheduler")
        self._duration = prometheus_client.Histogram(
            "podyard_descheduler_cycle_seconds", "How long a cycle took that came to its end", registry=registry
        )
        self._reference = ReferenceMetrics(registry)

    def answered(self, wanted: Eviction, result: EvictionResult) -> None:
        """A pod was evicted, or could not be; in a dry run as if it had been."""
        metadata, node = wanted.pod.metadata, wanted.pod.spec.node_name
        answer = Answer.EVICTED if isinstance(result, EvictionDone) else Answer.FAILED
        self._count(answer, wanted.plugin, wanted.profile, metadata.namespace, node)

    def ended(self, record: CycleRecord, took_s: float) -> None:
        """A cycle has come to its end. Its evictions are counted already."""
        self._cycles.labels("skipped" if record.skipped else "done").inc()
        self._duration.observe(took_s)
        self._reference.cycle(took_s)
        for fault in record.faults:
            self.plugin_faults.told(fault.plugin, fault.point, fault.detail)
        for step in record.steps:
            self._reference.ran(step.plugin, step.profile, step.took_s)
            for one in step.attempts:
                if one.answer not in (Answer.EVICTED, Answer.FAILED):
                    self._count(one.answer, step.plugin, step.profile, one.namespace, one.node)

    def failed(self, took_s: float) -> None:
        """A cycle could not begin, or broke off."""
        self._cycles.labels("failed").inc()
        self._reference.cycle(took_s)

    def _count(self, answer: Answer, plugin: str, profile: str, namespace: str, node: str) -> None:
        self._evictions.labels(profile, plugin, answer.value).inc()
        self._reference.wanted(answer, plugin, profile, namespace, node)
