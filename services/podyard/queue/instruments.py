"""The queue's metrics."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, get_args

import prometheus_client
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from podyard.proto.decisions import Outcome
from podyard.queue.core.effects import AttemptEnded, Judged
from podyard.queue.core.tally import Counted
from podyard.queue.reference_metrics import Pools, ReferenceMetrics
from podyard.telemetry.plugin_faults import PluginFaults
from podyard.telemetry.reference_metrics import CounterFamily, HistogramFamily
from podyard.telemetry.tracing import Spans

HINT_BUCKETS = (1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3, 1e-2, 0.1)
"""Seconds; a hint takes a few microseconds, and delays every pop while it runs
(docs/rules.md, hints-are-timed).
"""

WAIT_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300)


MOST_EVENTS: Final = 256
"""Events with counters of their own: labels of custom kinds' are somebody's words, and each takes some 10 KB
of counters for ever.
"""
OTHERS: Final = "others"


class Instruments:
    """Counters and histograms of one process; a term's pools are read when somebody scrapes."""

    def __init__(self, registry: prometheus_client.CollectorRegistry, spans: Spans) -> None:
        counter = prometheus_client.Counter
        self.pops = counter("podyard_queue_popped_pods", "Pods handed out", registry=registry)
        self.attempts = CounterFamily(registry, "podyard_queue_attempts_total", "Attempts that ended", ["outcome"])
        self._outcomes = {outcome: self.attempts.labels(outcome) for outcome in get_args(Outcome)}
        self.moves = counter(
            "podyard_queue_moves", "Parked pods that an event moved", ["event", "plugin", "to"], registry=registry
        )
        self.skips = counter(
            "podyard_queue_skips", "Parked pods that an event's hints left parked", ["event"], registry=registry
        )
        self.hints = HistogramFamily(
            registry,
            "podyard_queue_hint_seconds",
            "Time of one hint",
            ["plugin", "event", "answer"],
            buckets=HINT_BUCKETS,
        )
        self.waits = HistogramFamily(
            registry,
            "podyard_queue_wait_seconds",
            "From becoming ready (entering activeQ) to the pop",
            buckets=WAIT_BUCKETS,
        ).labels()
        self.rescued = counter(
            "podyard_queue_flush_rescues",
            "Pods that were scheduled right after the safety flush: a hint is wrong (kubernetes#134999)",
            registry=registry,
        )
        self.lost_records = counter("podyard_queue_lost_records", "Records that were not stored", registry=registry)
        self.plugin_faults = PluginFaults(registry, "queue")
        self._events: set[str] = set()
        self._reference = ReferenceMetrics(registry, spans, self._bounded)
        self._pools = _Pools()
        registry.register(self._pools)

    def show_pools(self, core: Pools | None) -> None:
        """Where sizes of the pools come from; None while this process does not lead."""
        self._pools.read = None if core is None else core.counts
        self._reference.show(core)

    def counted(self, counted: Counted) -> None:
        """What the core counted while it worked."""
        self._reference.counted(counted)

    def judged(self, judged: Judged) -> None:
        """An event reached parked pods."""
        event = self._bounded(judged.incoming.event.label)
        for move in judged.moved:
            self.moves.labels(event, move.plugin, move.to).inc()
        if judged.skipped_pods:
            self.skips.labels(event).inc(judged.skipped_pods)
        asked = [*(move.hints for move in judged.moved), *(skip.calls for skip in judged.skipped)]
        for calls in asked:
            for call in calls:
                self.hints.labels(call.plugin, event, call.answer).observe(call.duration_us / 1e6)
                self._reference.asked(call, event)

    def _bounded(self, event: str) -> str:
        if event not in self._events and len(self._events) >= MOST_EVENTS:
            return OTHERS
        self._events.add(event)
        return event

    def ended(self, endings: Sequence[AttemptEnded], traced: Sequence[AttemptEnded] = ()) -> None:
        """Attempts are over, in one step of the core.

        :param traced: those whose traces are kept: they become the examples of their waits
        """
        for outcome, attempts in Counter([one.outcome for one in endings]).items():
            self._outcomes[outcome].inc(attempts)
        self.waits.observe_all([_waited(one) for one in endings])
        for one in traced:
            self.waits.show(_waited(one), one.trace, one.at)
        self._reference.ended(endings, traced)


def _waited(ended: AttemptEnded) -> float:
    return max(0.0, ended.popped_at - ended.queued_at)


class _Pools(Collector):
    """Sizes of the pools, read at the scrape."""

    def __init__(self) -> None:
        self.read: Callable[[], dict[str, int]] | None = None

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """One gauge by pool; none while this process does not lead."""
        family = GaugeMetricFamily("podyard_queue_pods", "Pods by pool", labels=["pool"])
        if self.read is not None:
            for pool, size in self.read().items():
                family.add_metric([pool], size)
        yield family
