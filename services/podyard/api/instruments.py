"""What the api counts and times."""

from collections.abc import Callable

import prometheus_client

from podyard.proto.objects_api import ObjectsReply


class Instruments:
    """Metrics of the api, in the registry of its process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._objects = prometheus_client.Counter(
            "podyard_api_objects",
            "Objects of requests, by what became of them",
            ["verb", "outcome"],
            registry=registry,
        )
        self._seconds = prometheus_client.Histogram(
            "podyard_api_request_seconds",
            "From a request's arrival to its answer",
            ["verb"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
            registry=registry,
        )
        self._unreadable = prometheus_client.Counter(
            "podyard_api_unreadable_requests", "Requests that became dead letters", ["verb"], registry=registry
        )
        self._position = prometheus_client.Gauge(
            "podyard_api_position", "CLUSTER sequence up to which this instance has read", registry=registry
        )

    def follow(self, position: Callable[[], int]) -> None:
        """Show how far the instance has read."""
        self._position.set_function(position)

    def answered(self, verb: str, reply: ObjectsReply, seconds: float) -> None:
        """A request was carried out."""
        outcomes: dict[str, int] = {}
        for one in reply.results:
            outcomes[one.outcome] = outcomes.get(one.outcome, 0) + 1
        for outcome, count in outcomes.items():
            self._objects.labels(verb, outcome).inc(count)
        self._seconds.labels(verb).observe(seconds)

    def unreadable(self, verb: str) -> None:
        """A request could not be decoded."""
        self._unreadable.labels(verb).inc()
