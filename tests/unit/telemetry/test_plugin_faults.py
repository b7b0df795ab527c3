"""Plugins' faults: each is counted, few are logged, and names that plugins make up do not make ever more
counters."""

import logging

import prometheus_client
import pytest

from podyard.telemetry.plugin_faults import AGAIN_S, MOST_LABELS, PluginFaults


def test_a_fault_that_comes_again_is_counted_each_time_and_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    registry = prometheus_client.CollectorRegistry()
    told = PluginFaults(registry, "queue", lambda: now)
    with caplog.at_level(logging.ERROR, "podyard.plugins"):
        for _ in range(5):
            told.told("Mine", "filter", "ValueError: x")
        told.told("Mine", "Score", "ValueError: y")
        now = AGAIN_S
        told.told("Mine", "filter", "ValueError: z")
    assert [record.getMessage() for record in caplog.records] == [
        "plugin Mine failed in filter: ValueError: x",
        "plugin Mine failed in Score: ValueError: y",
        "plugin Mine failed in filter (4 times more since this was last told): ValueError: z",
    ]
    labels = {"plugin": "Mine", "point": "filter"}
    assert registry.get_sample_value("podyard_queue_plugin_faults_total", labels) == 6


def test_there_are_only_so_many_counters() -> None:
    registry = prometheus_client.CollectorRegistry()
    told = PluginFaults(registry, "queue")
    for number in range(2 * MOST_LABELS):
        told.told(f"plugin-{number}", "filter", "x")
    (metric,) = registry.collect()
    assert len({tuple(sample.labels.items()) for sample in metric.samples}) == MOST_LABELS + 1
    others = {"plugin": "others", "point": "others"}
    assert registry.get_sample_value("podyard_queue_plugin_faults_total", others) == MOST_LABELS
