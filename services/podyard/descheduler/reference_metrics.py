"""The descheduler's metrics, under the names, labels and buckets of the reference: the deprecated names
beside the newer ones, since dashboards ask for both.

Source: descheduler v0.36.0, metrics/metrics.go; what is counted when: pkg/descheduler/evictions/evictions.go,
EvictPod; pkg/descheduler/descheduler.go, runDeschedulerLoop; pkg/framework/profile/profile.go.
"""

import importlib.metadata
import platform
from typing import Final

import prometheus_client

from podyard.descheduler.core.framework import Answer
from podyard.descheduler.core.limits import SENTENCES
from podyard.telemetry.reference_metrics import OTHERS, CounterFamily, HistogramFamily

MOST_PLACES: Final = 1024
"""Counters of evicted pods with a namespace and a node of their own: both may be many, and a counter stays
for ever. Later ones count under the namespace and node `others`."""

RESULTS: Final[dict[Answer, str]] = {Answer.EVICTED: "success", Answer.FAILED: "error", **SENTENCES}
"""What became of a pod that a plugin wanted to go. The reference knows no plan, so pods that stay by it are
counted under Podyard's name only."""

LOOP_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500)
STRATEGY_BUCKETS: Final = LOOP_BUCKETS[:-2]


class ReferenceMetrics:
    """Of one process, over all its terms."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._evicted = CounterFamily(
            registry,
            "descheduler_pods_evicted_total",
            "Number of total evicted pods, by the result, by the strategy, by the namespace, by the node name. "
            "'error' result means a pod could not be evicted",
            ["result", "strategy", "profile", "namespace", "node"],
            older="descheduler_pods_evicted",
        )
        self._places: set[tuple[str, ...]] = set()
        _show_build(registry)
        self._loops = HistogramFamily(
            registry,
            "descheduler_loop_duration_seconds",
            "Time taken to complete a full descheduling cycle",
            buckets=LOOP_BUCKETS,
            older="descheduler_descheduler_loop_duration_seconds",
        )
        self._strategies = HistogramFamily(
            registry,
            "descheduler_strategy_duration_seconds",
            "Time taken to complete Each strategy of the descheduling operation",
            ["strategy", "profile"],
            buckets=STRATEGY_BUCKETS,
            older="descheduler_descheduler_strategy_duration_seconds",
        )

    def wanted(self, answer: Answer, strategy: str, profile: str, namespace: str, node: str) -> None:
        """What became of a pod that a strategy wanted to go."""
        if answer not in RESULTS:
            return
        values = (RESULTS[answer], strategy, profile, namespace, node)
        if values not in self._places:
            if len(self._places) >= MOST_PLACES:
                values = (RESULTS[answer], strategy, profile, OTHERS, OTHERS)
            else:
                self._places.add(values)
        self._evicted.labels(*values).inc()

    def cycle(self, took_s: float) -> None:
        """A cycle is over, however it ended."""
        self._loops.labels().observe(took_s)

    def ran(self, strategy: str, profile: str, took_s: float) -> None:
        """A strategy has run."""
        self._strategies.labels(strategy, profile).observe(took_s)


def _show_build(registry: prometheus_client.CollectorRegistry) -> None:
    """What of a build there is to tell here: branch and commit are empty, as in a build of the reference that
    was given none."""
    version = importlib.metadata.version("podyard")
    told = {
        "GoVersion": f"{platform.python_implementation()} {platform.python_version()}",
        "AppVersion": ".".join(version.split(".")[:2]),
        "DeschedulerVersion": version,
        "GitBranch": "",
        "GitSha1": "",
    }
    prometheus_client.Gauge(
        "descheduler_build_info",
        "Build info about descheduler, including Go version, Descheduler version, Git SHA, Git branch",
        list(told),
        registry=registry,
    ).labels(**told).set(1)
