"""What nodes measure, as metrics."""

import prometheus_client
import pytest

from podyard.node_agent import instruments
from podyard.node_agent.instruments import SignalMetrics
from podyard.proto.signals import NodeSignals, SignalValue
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, Playing, agent, node, signals


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


def shown(playing: Playing, registry: prometheus_client.CollectorRegistry, now: float) -> SignalMetrics:
    found = SignalMetrics()
    found.show(lambda: playing.nodes, lambda: now)
    registry.register(found)
    return found


def value(registry: prometheus_client.CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"podyard_node_agent_{name}", labels)


def test_signals_thresholds_and_the_age_of_readings_are_metrics(registry: prometheus_client.CollectorRegistry):
    playing = agent(hard={"memory.available": "100Mi", "nodefs.available": "10%", "pid.available": "5%"})
    playing.node_seen(node(), (), 0.0)
    disk = SignalValue(available=30 * GIBIBYTE, capacity=100 * GIBIBYTE)
    said = signals(4 * GIBIBYTE, at=10.0)
    playing.observe(NodeSignals(node="n1", signals={**said.signals, "nodefs.available": disk}, at=10.0), 10.0)
    shown(playing, registry, 17.0)
    memory, of_disk = ({"node": "n1", "signal": name} for name in ("memory.available", "nodefs.available"))
    assert value(registry, "signal_available", **memory) == 4 * GIBIBYTE
    assert value(registry, "signal_capacity", **of_disk) == 100 * GIBIBYTE
    assert value(registry, "threshold", **memory, kind="hard") == 100 * MEBIBYTE
    assert value(registry, "threshold", **of_disk, kind="hard") == pytest.approx(10 * GIBIBYTE)
    assert value(registry, "threshold", node="n1", signal="pid.available", kind="hard") is None, "it is not measured"
    assert value(registry, "reading_age_seconds", node="n1") == 7.0


def test_nodes_of_which_nothing_is_measured_have_no_series(registry: prometheus_client.CollectorRegistry):
    playing = agent()
    playing.node_seen(node(), (), 0.0)
    found = shown(playing, registry, 5.0)
    assert value(registry, "reading_age_seconds", node="n1") is None
    playing.observe(signals(GIBIBYTE, at=5.0), 5.0)
    assert value(registry, "reading_age_seconds", node="n1") == 0.0
    found.hide()
    assert value(registry, "reading_age_seconds", node="n1") is None


def test_of_very_many_nodes_the_first_are_shown_and_the_others_counted(
    registry: prometheus_client.CollectorRegistry, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(instruments, "MOST_NODES", 2)
    playing = agent()
    for name in ("c", "a", "b"):
        playing.node_seen(node(name), (), 0.0)
        playing.observe(signals(GIBIBYTE, node=name, at=1.0), 1.0)
    shown(playing, registry, 1.0)
    assert [value(registry, "reading_age_seconds", node=name) for name in ("a", "b", "c")] == [0.0, 0.0, None]
    assert value(registry, "nodes_without_signal_metrics") == 1
