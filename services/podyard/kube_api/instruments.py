"""What is counted of requests."""

from collections.abc import Callable
from typing import Final

import prometheus_client

REQUEST_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OTHER: Final = "other"
VERBS: Final = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})


class Instruments:
    """Metrics of one instance."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._requests = prometheus_client.Counter(
            "podyard_kube_api_requests",
            "Requests that were answered, by verb and code of HTTP",
            ["verb", "code"],
            registry=registry,
        )
        self._seconds = prometheus_client.Histogram(
            "podyard_kube_api_request_seconds",
            "From a request to its answer, watches apart",
            ["verb"],
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )
        self._let_go = prometheus_client.Counter(
            "podyard_kube_api_connections_let_go",
            "Connections that were not let in, or ended: silent, slow, crowded, malformed, wrong_certificate",
            ["reason"],
            registry=registry,
        )
        self._watches = prometheus_client.Gauge("podyard_kube_api_watches", "Watches that are open", registry=registry)
        self._position = prometheus_client.Gauge(
            "podyard_kube_api_view_position",
            "CLUSTER sequence up to which the store holds everything",
            registry=registry,
        )

    def answered(self, verb: str, code: int, seconds: float) -> None:
        """A request has its answer; of a watch, its head."""
        verb = verb if verb in VERBS else OTHER
        self._requests.labels(verb, str(code)).inc()
        if verb != "watch":
            self._seconds.labels(verb).observe(seconds)

    def let_go(self, reason: str) -> None:
        """A connection was not let in, or ended."""
        self._let_go.labels(reason).inc()

    def follow(self, watches: Callable[[], int], position: Callable[[], int]) -> None:
        """Ask these when metrics are shown."""
        self._watches.set_function(watches)
        self._position.set_function(position)
