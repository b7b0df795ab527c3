"""The binder's metrics."""

from collections.abc import Sequence
from typing import Final

import prometheus_client

from podyard.binder.core.effects import Committed, FenceMoving, Settled, UsageDrift
from podyard.binder.core.points import PointTime
from podyard.framework.plugin_times import SUCCESS
from podyard.memory.latest import Latest
from podyard.runtime import sessions
from podyard.telemetry.plugin_faults import PluginFaults
from podyard.telemetry.reference_metrics import CounterFamily, HistogramFamily, extension_points

BATCH_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SECONDS_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_SCHEDULERS: Final = 32
"""Instances with counters of their own; names that are made up at each start must not make ever more."""
OTHERS: Final = "others"
MOST_SESSIONS: Final = 1024


class Schedulers:
    """Whom decisions are counted for: the instance that a session is named after, as long as there are
    few."""

    def __init__(self) -> None:
        self._by_session = Latest[str, str](MOST_SESSIONS)
        self._names: set[str] = set()

    def name_of(self, session: str) -> str:
        """The label for a session's decisions."""
        found = self._by_session.get(session)
        if found is None:
            found = self._bounded(sessions.instance_of(session))
            self._by_session.keep(session, found)
        return found

    def _bounded(self, instance: str) -> str:
        if instance not in self._names and len(self._names) >= MOST_SCHEDULERS:
            return OTHERS
        self._names.add(instance)
        return instance


class Instruments:
    """Counters and histograms of one process, over all its terms."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self.plugin_faults = PluginFaults(registry, "binder")
        self._points = extension_points(
            registry, "Time of all plugins of an extension point for one decision; of Bind, of the commit"
        )
        self._committed_s = 0.0
        """What the last commit took."""
        self._bound: dict[str, int] = {}
        """Decisions that it bound, by profile, until they are counted."""
        counter, histogram = prometheus_client.Counter, prometheus_client.Histogram
        self.decisions = CounterFamily(
            registry,
            "podyard_binder_decisions_total",
            "Decisions answered, by result, cause of a refusal, profile, and the scheduler's instance",
            ["result", "cause", "profile", "scheduler"],
        )
        self._schedulers = Schedulers()
        self.commits = counter("podyard_binder_commits", "Batches that became durable", registry=registry)
        self.batch_bindings = histogram(
            "podyard_binder_batch_bindings", "Bindings of one batch", buckets=BATCH_BUCKETS, registry=registry
        )
        self.batch_bytes = counter("podyard_binder_batch_bytes", "Payload of durable batches", registry=registry)
        self.skipped = counter(
            "podyard_binder_skipped_filters",
            "Bindings for which the filters were not asked again: nothing had happened that their scheduler did not count on",
            registry=registry,
        )
        self.commit_seconds = histogram(
            "podyard_binder_commit_seconds",
            "From sending a batch to knowing that it is durable",
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )
        self.bind_seconds = HistogramFamily(
            registry,
            "podyard_binder_bind_seconds",
            "From receiving a decision to its answer",
            buckets=SECONDS_BUCKETS,
        ).labels()
        self.forced = counter(
            "podyard_binder_forced_bindings", "Pods that their creator put on a node", registry=registry
        )
        self.releases = counter("podyard_binder_releases", "Bindings that ended", ["reason"], registry=registry)
        self.fence_moves = counter(
            "podyard_binder_fence_moves", "Moves of the fence without a commit", registry=registry
        )
        self.drifts = counter(
            "podyard_binder_usage_drifts",
            "Times the node table was not the sum of the live bindings: each one is a bug",
            registry=registry,
        )
        self.waiting = prometheus_client.Gauge(
            "podyard_binder_waiting_decisions",
            "Decisions that wait for a PreBind plugin, as for a volume that is made; their pods' room is kept",
            registry=registry,
        )

    def settled(self, settled: Settled, now: float, kept: Sequence[tuple[float, str]] = ()) -> None:
        """Decisions have their answers.

        :param kept: when those were received whose spans are kept, and the spans' traceparents: examples of
            the time that decisions take
        """
        numbers: dict[tuple[str, str, str, str], int] = {}
        bound = self._bound
        for one in settled.outcomes:
            profile = one.decision.profile
            key = one.answer.result, one.answer.cause, profile, one.session
            numbers[key] = numbers.get(key, 0) + 1
            if one.bound is not None:
                bound[profile] = bound.get(profile, 0) + 1
        for (result, cause, profile, session), number in numbers.items():
            self.decisions.labels(result, cause, profile, self._schedulers.name_of(session)).inc(number)
        self.bind_seconds.observe_all([max(0.0, now - one.received_at) for one in settled.outcomes])
        for received_at, trace in kept:
            self.bind_seconds.show(max(0.0, now - received_at), trace, now)

    def committed(self, committed: Committed) -> None:
        """A batch is durable."""
        self.commits.inc()
        self._committed_s = max(0.0, committed.settled_at - committed.sent_at)
        self.batch_bindings.observe(len(committed.bound))
        self.batch_bytes.inc(committed.wire_bytes)
        self.skipped.inc(committed.skipped)
        self.commit_seconds.observe(self._committed_s)
        forced = sum(1 for bound in committed.bound if bound.forced)
        if forced:
            self.forced.inc(forced)
        for release in committed.releases:
            self.releases.labels(release.reason).inc()

    def took(self, times: Sequence[PointTime]) -> None:
        """What extension points took since the last commit, whose decisions have been told of."""
        for profile, decisions in self._bound.items():
            self._points.labels("Bind", SUCCESS, profile).observe(self._committed_s, decisions)
        self._bound.clear()
        for one in times:
            self._points.labels(one.point, one.status, one.profile).observe(one.seconds, one.decisions)

    def fence_moving(self, moving: FenceMoving) -> None:
        """The fence is moved."""
        del moving
        self.fence_moves.inc()

    def drifted(self, drift: UsageDrift) -> None:
        """The table was wrong."""
        del drift
        self.drifts.inc()
