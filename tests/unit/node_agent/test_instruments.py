"""What the agent counts under the kubelet's names."""

import prometheus_client
import pytest

from podyard.node_agent.core.eviction import signals
from podyard.node_agent.core.eviction.local_storage import LIMITS
from podyard.node_agent.instruments import Instruments


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry(auto_describe=True)


def test_evictions_are_counted_under_the_kubelets_name_beside_our_own(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    told = Instruments(registry)
    told.evicted("memory.available")
    told.evicted("memory.available")
    told.evicted("emptydirfs.limit")
    for name, label in (("kubelet_evictions", "eviction_signal"), ("podyard_node_agent_evictions_total", "signal")):
        assert registry.get_sample_value(name, {label: "memory.available"}) == 2
        assert registry.get_sample_value(name, {label: "emptydirfs.limit"}) == 1


def test_each_signal_is_there_before_its_first_eviction(registry: prometheus_client.CollectorRegistry) -> None:
    """A rate knows nothing of a series that begins with 1."""
    Instruments(registry)
    (family,) = [family for family in registry.collect() if family.name == "kubelet_evictions"]
    assert {sample.labels["eviction_signal"]: sample.value for sample in family.samples} == dict.fromkeys(
        [*signals.ALL, *LIMITS], 0
    )


def test_the_age_of_statistics_falls_into_the_kubelets_buckets(registry: prometheus_client.CollectorRegistry) -> None:
    Instruments(registry).reference.must_evict([("memory.available", 0.3), ("pid.available", 11.0)])

    def below(bound: str, signal: str) -> float | None:
        labels = {"eviction_signal": signal, "le": bound}
        return registry.get_sample_value("kubelet_eviction_stats_age_seconds_bucket", labels)

    assert [below(bound, "memory.available") for bound in ("0.25", "0.5", "+Inf")] == [0, 1, 1]
    assert [below(bound, "pid.available") for bound in ("10.0", "+Inf")] == [0, 1]


def test_pods_that_go_for_critical_ones_are_counted_by_what_was_short(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    Instruments(registry).reference.preempted("cpu")
    assert registry.get_sample_value("kubelet_preemptions", {"preemption_signal": "cpu"}) == 1
