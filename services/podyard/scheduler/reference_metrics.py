"""The scheduler's share of kube-scheduler's metrics, under its names, labels and buckets.

Source: kube-scheduler v1.36.2, pkg/scheduler/metrics/metrics.go; what is counted when: schedule_one.go,
framework/runtime, framework/preemption/executor.go, backend/cache.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final

import prometheus_client

from podyard.framework.plugin_times import Evaluated
from podyard.scheduler.core.measured import SCHEDULED, AttemptTime, CycleTimes, Measured
from podyard.telemetry.reference_metrics import (
    CounterFamily,
    GaugeFamily,
    HistogramFamily,
    exponential,
    extension_points,
)
from podyard.telemetry.tracing import Spans

SECONDS: Final = exponential(0.001, 2, 15)


class ReferenceMetrics:
    """Of one process, over all its terms."""

    def __init__(self, registry: prometheus_client.CollectorRegistry, spans: Spans) -> None:
        self._spans = spans
        self._attempts, self._attempt_seconds = _attempts(registry)
        self._algorithm = HistogramFamily(
            registry,
            "scheduler_scheduling_algorithm_duration_seconds",
            "From the start of a cycle to the choice of a node, or the end of PostFilter",
            buckets=SECONDS,
        ).labels()
        self._points = extension_points(
            registry, "Time of all plugins of an extension point for one pod; what is known from its like takes none"
        )
        self._plugins = HistogramFamily(
            registry,
            "scheduler_plugin_execution_duration_seconds",
            "Time of one call of a plugin, in one cycle in ten",
            ["plugin", "extension_point", "status"],
            buckets=exponential(0.00001, 1.5, 20),
        )
        self._evaluations = CounterFamily(
            registry,
            "scheduler_plugin_evaluation_total",
            "Pods that a plugin judged, by itself or by what it had said of their like",
            ["plugin", "extension_point", "profile"],
        )
        self._preemptions = CounterFamily(
            registry, "scheduler_preemption_attempts_total", "Attempts to make room by preemption"
        ).labels()
        self.victims = HistogramFamily(
            registry,
            "scheduler_preemption_victims",
            "Pods that one preemption ends or sends back",
            buckets=exponential(1, 2, 7),
        ).labels()
        self._permit_waits = HistogramFamily(
            registry,
            "scheduler_permit_wait_duration_seconds",
            "Time that pods waited at Permit, by how that ended",
            ["result"],
            buckets=SECONDS,
        )
        self._cache = GaugeFamily(
            registry, "scheduler_cache_size", "Nodes, placed pods, and assumed pods among them", ["type"]
        )

    def show_cache(self, read: Callable[[], Mapping[tuple[str, ...], float]]) -> None:
        """Where the cache's sizes come from."""
        self._cache.show(read)

    def measured(self, measured: Measured) -> None:
        """What the core measured."""
        if measured.attempts:
            self._ended(measured.attempts)
        if measured.cycles:
            self._cycles(measured.cycles)
        for one in measured.plugins:
            self._plugins.labels(one.plugin, one.point, one.status).observe(one.seconds)
        for result, seconds in measured.permit_waits:
            self._permit_waits.labels(result).observe(seconds)
        if measured.preemptions:
            self._preemptions.inc(measured.preemptions)

    def _ended(self, attempts: list[AttemptTime]) -> None:
        took: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for one in attempts:
            took[one.result, one.profile].append(one.seconds)
            if self._spans.wanted(one.trace, keep=one.result != SCHEDULED):
                self._attempt_seconds.labels(one.result, one.profile).show(one.seconds, one.trace, one.at)
        for labels, each in took.items():
            self._attempts.labels(*labels).inc(len(each))
            self._attempt_seconds.labels(*labels).observe_all(each)

    def _cycles(self, cycles: list[CycleTimes]) -> None:
        self._algorithm.observe_all([cycle.algorithm_s for cycle in cycles])
        took: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
        for cycle in cycles:
            profile = cycle.profile
            for one in cycle.points:
                took[one.point, one.status, profile].append(one.end - one.start)
        for labels, each in took.items():
            self._points.labels(*labels).observe_all(each)
        for profile in {cycle.profile for cycle in cycles}:
            evaluated = Counter(chain.from_iterable([one.evaluated for one in cycles if one.profile == profile]))
            for each, pods in evaluated.items():
                self._evaluated(profile, each, pods)

    def _evaluated(self, profile: str, evaluated: Evaluated, pods: int) -> None:
        for point, plugins in evaluated.points:
            for plugin in plugins:
                self._evaluations.labels(plugin, point, profile).inc(pods)


def _attempts(registry: prometheus_client.CollectorRegistry) -> tuple[CounterFamily, HistogramFamily]:
    count = CounterFamily(
        registry,
        "scheduler_schedule_attempts_total",
        "Attempts to schedule pods; error: it was not the cluster that was in the way",
        ["result", "profile"],
    )
    seconds = HistogramFamily(
        registry,
        "scheduler_scheduling_attempt_duration_seconds",
        "From the start of an attempt's first cycle to its end, the binding included",
        ["result", "profile"],
        buckets=SECONDS,
    )
    return count, seconds
