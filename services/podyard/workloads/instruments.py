"""The metrics of workloads."""

import prometheus_client

from podyard.proto import subjects
from podyard.workloads.core.actions import Alter, Count, Create, Delete, Remove, Work


class Instruments:
    """Counters of one process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._writes = prometheus_client.Counter(
            "podyard_workloads_writes",
            "Objects written, by what was done and resource",
            ["verb", "resource"],
            registry=registry,
        )
        self._failures = prometheus_client.Counter(
            "podyard_workloads_failures",
            "Writes that failed and looks that could not be finished",
            ["resource"],
            registry=registry,
        )

        self._came_back = prometheus_client.Counter(
            "podyard_workloads_came_back",
            "Messages that had been deleted and that listings found again, since a server was killed",
            registry=registry,
        )
        self._census_bytes = prometheus_client.Gauge(
            "podyard_workloads_census_bytes", "Size of the last census of CLUSTER that was stored", registry=registry
        )

    def came_back(self) -> None:
        """A listing passed over a message."""
        self._came_back.inc()

    def census(self, size: int) -> None:
        """A census was stored."""
        self._census_bytes.set(size)

    def work(self, work: Work) -> None:
        """Writes are under way."""
        names = {Create: "create", Alter: "update", Delete: "delete", Remove: "remove"}
        for write in work.writes:
            self._writes.labels(names[type(write)], write.key.resource).inc()

    def counted(self, count: Count) -> None:
        """What is used of a quota is stored, or removed with it."""
        for usage in count.usages:
            self._writes.labels("remove" if usage.fact is None else "update", subjects.QUOTA_USAGE).inc()

    def failed(self, resource: str, count: int = 1) -> None:
        """Something could not be done."""
        self._failures.labels(resource).inc(count)
