"""Families under the reference's names: both text formats, bounds, and values while another thread looks."""

from random import Random

import prometheus_client
import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from podyard.telemetry.reference_metrics import (
    MOST_SERIES,
    CounterFamily,
    GaugeFamily,
    HistogramFamily,
    exponential,
)
from tests.support.reference_metrics import programs

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry(auto_describe=True)


def test_a_counter_shows_exactly_its_name_in_both_formats(registry: prometheus_client.CollectorRegistry) -> None:
    CounterFamily(registry, "kubelet_evictions", "Evictions", ["eviction_signal"]).labels("memory.available").inc(3)
    CounterFamily(registry, "scheduler_schedule_attempts_total", "Attempts", ["result"]).labels("error").inc()
    text, openmetrics = generate_latest(registry).decode(), generate_openmetrics(registry).decode()
    for shown in text, openmetrics:
        assert 'kubelet_evictions{eviction_signal="memory.available"} 3.0' in shown
        assert 'scheduler_schedule_attempts_total{result="error"} 1.0' in shown
        assert "kubelet_evictions_total" not in shown
    assert "# TYPE kubelet_evictions untyped" in text
    assert "# TYPE scheduler_schedule_attempts_total counter" in text
    assert [(family.name, family.type) for family in read_openmetrics(openmetrics)] == [
        ("kubelet_evictions", "unknown"),
        ("scheduler_schedule_attempts", "counter"),
    ]


def test_a_histogram_is_read_as_prometheus_clients_own(registry: prometheus_client.CollectorRegistry) -> None:
    bounds = exponential(0.001, 2, 5)
    mine = HistogramFamily(registry, "mine_seconds", "Mine", ["result"], buckets=bounds)
    theirs = prometheus_client.Histogram("theirs_seconds", "Theirs", ["result"], buckets=bounds, registry=registry)
    for value in (0.0, 0.001, 0.0011, 0.002, 0.0159, 0.016, 0.0161, 7.0):
        mine.labels("scheduled").observe(value)
        theirs.labels("scheduled").observe(value)
    mine.labels("scheduled").observe(0.003, 4)
    for _ in range(4):
        theirs.labels("scheduled").observe(0.003)
    shown = {family.name: family for family in read_text(generate_latest(registry).decode())}
    found = [
        {(one.name.removeprefix(name), tuple(sorted(one.labels.items()))): one.value for one in shown[name].samples}
        for name in ("mine_seconds", "theirs_seconds")
    ]
    assert found[0] == pytest.approx(found[1])
    assert len(found[0]) == len(bounds) + 3  # +Inf, count, sum; no second family for when it began


def test_what_has_an_older_name_is_counted_once_and_shown_twice(registry: prometheus_client.CollectorRegistry) -> None:
    """Also where the names differ in `_total` only: a strict reader takes a counter of one for the other."""
    pods = CounterFamily(registry, "mine_pods_total", "Pods", ["result"], older="mine_pods")
    pods.labels("success").inc(2)
    cycles = HistogramFamily(registry, "mine_seconds", "Cycles", buckets=(1, 2), older="mine_mine_seconds")
    cycles.labels().observe(1.5)
    for name in ("mine_pods_total", "mine_pods"):
        assert registry.get_sample_value(name, {"result": "success"}) == 2
    for name in ("mine_seconds", "mine_mine_seconds"):
        assert registry.get_sample_value(f"{name}_bucket", {"le": "2.0"}) == 1
        assert registry.get_sample_value(f"{name}_sum") == 1.5
    text, openmetrics = generate_latest(registry).decode(), generate_openmetrics(registry).decode()
    for shown in text, openmetrics:
        assert 'mine_pods_total{result="success"} 2.0' in shown
        assert 'mine_pods{result="success"} 2.0' in shown
    kinds = [(family.name, family.type) for family in read_openmetrics(openmetrics)]
    pods_are = [("mine_pods_total", "unknown"), ("mine_pods", "unknown")]
    assert kinds == [*pods_are, ("mine_seconds", "histogram"), ("mine_mine_seconds", "histogram")]


def test_without_labels_it_is_shown_before_the_first_value(registry: prometheus_client.CollectorRegistry) -> None:
    CounterFamily(registry, "scheduler_preemption_attempts_total", "Attempts")
    HistogramFamily(registry, "scheduler_preemption_victims", "Victims", buckets=(1, 2))
    CounterFamily(registry, "scheduler_schedule_attempts_total", "Attempts", ["result"])
    assert registry.get_sample_value("scheduler_preemption_attempts_total") == 0
    assert registry.get_sample_value("scheduler_preemption_victims_count") == 0
    assert "schedule_attempts_total{" not in generate_latest(registry).decode()


def test_gauges_are_read_at_the_scrape_and_gone_when_nobody_shows_them(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    sizes = {("active",): 1}
    family = GaugeFamily(registry, "scheduler_pending_pods", "Pods", ["queue"])
    family.show(lambda: sizes)
    sizes["active",] = 5
    assert registry.get_sample_value("scheduler_pending_pods", {"queue": "active"}) == 5
    family.show(None)
    assert registry.get_sample_value("scheduler_pending_pods", {"queue": "active"}) is None


def test_the_last_traced_value_of_a_bucket_is_its_example(registry: prometheus_client.CollectorRegistry) -> None:
    series = HistogramFamily(registry, "mine_seconds", "Mine", ["result"], buckets=(1, 2)).labels("scheduled")
    series.observe(0.5)
    series.observe_traced(1.5, "00-" + "1" * 32 + "-" + "2" * 16 + "-01", 100.0)
    series.observe_traced(1.6, TRACE, 200.0)
    series.observe_traced(9.0, "no trace", 300.0)
    (family,) = read_openmetrics(generate_openmetrics(registry).decode())
    examples = {one.labels["le"]: one.exemplar for one in family.samples if one.exemplar is not None}
    assert list(examples) == ["2.0"]
    assert examples["2.0"].labels == {"trace_id": TRACE[3:35], "span_id": TRACE[36:52]}
    assert (examples["2.0"].value, float(examples["2.0"].timestamp or 0)) == (1.6, 200.0)
    assert registry.get_sample_value("mine_seconds_count", {"result": "scheduled"}) == 4
    assert "trace_id" not in generate_latest(registry).decode()


def test_many_values_at_once_are_counted_as_one_by_one(registry: prometheus_client.CollectorRegistry) -> None:
    family = HistogramFamily(registry, "took_seconds", "Took", ["how"], buckets=(0.5, 1, 2))
    chance = Random(3)
    values = [0.5, 1.0, 2.0, 0.0, 7.0, *(chance.uniform(0, 3) for _ in range(50))]
    together, alone = family.labels("together"), family.labels("alone")
    together.observe_all(values[:20])
    together.observe_all([])
    together.observe_all(values[20:])
    for value in values:
        alone.observe(value)
    assert together.counts == alone.counts
    assert together.sum == pytest.approx(alone.sum)


def test_labels_that_somebody_makes_up_do_not_make_ever_more_series(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    counters = CounterFamily(registry, "mine_total", "Mine", ["event"])
    histograms = HistogramFamily(registry, "mine_seconds", "Mine", ["event"], buckets=(1,))
    for number in range(2 * MOST_SERIES):
        counters.labels(f"event-{number}").inc()
        histograms.labels(f"event-{number}").observe(0.5)
    assert registry.get_sample_value("mine_total", {"event": "others"}) == MOST_SERIES
    assert registry.get_sample_value("mine_seconds_count", {"event": "others"}) == MOST_SERIES
    for family in registry.collect():
        assert len({one.labels["event"] for one in family.samples}) == MOST_SERIES + 1


def test_a_label_too_many_or_too_few_is_refused(registry: prometheus_client.CollectorRegistry) -> None:
    family = CounterFamily(registry, "mine_total", "Mine", ["event", "queue"])
    with pytest.raises(ValueError, match=r"1 values \('x',\) for the labels \('event', 'queue'\)"):
        family.labels("x")


def test_bounds_are_the_same_floats_as_the_reference_serves() -> None:
    families = {family.name: family for family in programs()["kube-scheduler"].families}
    assert families["scheduler_plugin_execution_duration_seconds"].buckets == exponential(0.00001, 1.5, 20)
    assert families["scheduler_event_handling_duration_seconds"].buckets == exponential(0.0001, 2, 12)
