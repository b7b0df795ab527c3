"""The queue's share of kube-scheduler's metrics, under its names, labels and buckets.

Source: kube-scheduler v1.36.2, pkg/scheduler/metrics/metrics.go; what is counted when: backend/queue,
eventhandlers.go, schedule_one.go (bindingCycle).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import prometheus_client

from podyard.proto.pools import Pool
from podyard.proto.requeues import HintCall
from podyard.queue.core.effects import AttemptEnded
from podyard.queue.core.tally import ACTIVE, BACKOFF, UNSCHEDULABLE, Counted
from podyard.telemetry.reference_metrics import (
    CounterFamily,
    GaugeFamily,
    HistogramFamily,
    HistogramSeries,
    exponential,
)
from podyard.telemetry.tracing import Spans

MANY_ATTEMPTS: Final = 15
"""From so many on, attempts have one label. Source: schedule_one.go, getAttemptsLabel."""

POOLS: Final[dict[str, str]] = {
    Pool.ACTIVE.value: ACTIVE,
    Pool.BACKOFF.value: BACKOFF,
    Pool.ERROR_BACKOFF.value: BACKOFF,
    Pool.UNSCHEDULABLE.value: UNSCHEDULABLE,
    Pool.GATED.value: "gated",
}
"""Which of the reference's queues a pool is. Pods in flight, or with a node, are in none."""


class Pools(Protocol):
    """What the gauges are read from (`core.queue.Queue` is one). Any thread may ask."""

    def counts(self) -> dict[str, int]:
        """Pods by pool."""
        ...

    def rejected(self) -> dict[tuple[str, ...], int]:
        """Rejected pods by plugin and profile."""
        ...

    def in_flight_events(self) -> dict[str, int]:
        """Events that are kept for pods in flight, by label."""
        ...


class ReferenceMetrics:
    """Of one process, over all its terms. Gauges are shown while it leads."""

    def __init__(
        self, registry: prometheus_client.CollectorRegistry, spans: Spans, bounded: Callable[[str], str]
    ) -> None:
        """:param bounded: an event's label, or one that stands for many"""
        self._spans = spans
        self._bounded = bounded
        self._pending = GaugeFamily(registry, "scheduler_pending_pods", "Pending pods by queue", ["queue"])
        self._unschedulable = GaugeFamily(
            registry,
            "scheduler_unschedulable_pods",
            "Pods in the queue by plugin that rejected them; one with several counts for each",
            ["plugin", "profile"],
        )
        self._inflight = GaugeFamily(
            registry,
            "scheduler_inflight_events",
            "Events that are kept for pods in flight; PodPopped: pods in flight",
            ["event"],
        )
        self._incoming = CounterFamily(
            registry,
            "scheduler_queue_incoming_pods_total",
            "Pods that entered a queue, by what brought them there",
            ["queue", "event"],
        )
        self._handled = HistogramFamily(
            registry,
            "scheduler_event_handling_duration_seconds",
            "Time that the queue takes for a change of the cluster",
            ["event"],
            buckets=exponential(0.0001, 2, 12),
        )
        self._hints = HistogramFamily(
            registry,
            "scheduler_queueing_hint_execution_duration_seconds",
            "Time of a plugin's queueing hints for one pod",
            ["plugin", "event", "hint"],
            buckets=exponential(0.00001, 1.5, 20),
        )
        self._sli = HistogramFamily(
            registry,
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From a pod's first entry into activeQ to its binding; time in which it was gated does not count",
            ["attempts"],
            buckets=exponential(0.01, 2, 20),
        )
        self._attempts = HistogramFamily(
            registry,
            "scheduler_pod_scheduling_attempts",
            "Attempts that it took to bind a pod",
            buckets=exponential(1, 2, 5),
        ).labels()
        self._after_flush = CounterFamily(
            registry,
            "scheduler_pod_scheduled_after_flush_total",
            "Pods that were bound after the safety flush had brought them back: a queueing hint may be wrong",
        ).labels()

    def show(self, core: Pools | None) -> None:
        """What the gauges are read from; None while this process does not lead."""
        self._pending.show(None if core is None else lambda: _by_queue(core.counts()))
        self._unschedulable.show(None if core is None else core.rejected)
        self._inflight.show(None if core is None else lambda: self._events(core.in_flight_events()))

    def _events(self, counts: dict[str, int]) -> dict[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for event, count in counts.items():
            label = (self._bounded(event),)
            found[label] = found.get(label, 0.0) + count
        return found

    def counted(self, counted: Counted) -> None:
        """What the core counted."""
        for (queue, event), pods in counted.entered.items():
            self._incoming.labels(queue, self._bounded(event)).inc(pods)
        took: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        for events, seconds in counted.handled:
            took[events].append(seconds)
        for events, each in took.items():
            for event in events:
                self._handled.labels(self._bounded(event)).observe_all(each)

    def asked(self, call: HintCall, event: str) -> None:
        """A hint was asked. :param event: bounded"""
        self._hints.labels(call.plugin, event, call.answer).observe(call.duration_us / 1e6)

    def ended(self, endings: Sequence[AttemptEnded], traced: Sequence[AttemptEnded]) -> None:
        """Attempts are over.

        :param traced: those whose traces are kept
        """
        bound = [one for one in endings if one.outcome == "scheduled"]
        for number, attempts in Counter([one.number for one in bound]).items():
            self._attempts.observe(number, attempts)
        self._after_flush.inc(sum([one.was_flushed for one in bound]))
        took: defaultdict[int, list[float]] = defaultdict(list)
        for one in bound:
            if one.initial_attempt_at is not None:
                took[one.number].append(max(0.0, one.at - one.initial_attempt_at))
        for number, each in took.items():
            self._sli_of(number).observe_all(each)
        for one in traced:
            if one.outcome == "scheduled" and one.initial_attempt_at is not None and self._spans.wanted(one.trace):
                self._sli_of(one.number).show(max(0.0, one.at - one.initial_attempt_at), one.trace, one.at)

    def _sli_of(self, number: int) -> HistogramSeries:
        return self._sli.labels(str(number) if number < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+")


def _by_queue(pools: dict[str, int]) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for pool, queue in POOLS.items():
        found[queue,] = found.get((queue,), 0.0) + pools[pool]
    return found
