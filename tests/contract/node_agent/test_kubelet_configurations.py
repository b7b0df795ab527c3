"""The agent with KubeletConfigurations by node label: whom nodes evict, how many pods they take, and the
images that they collect."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from podyard.bus import Bus
from podyard.node_agent.settings import LabelledFile
from podyard.proto import codec, subjects
from podyard.proto.signals import NodeSignals, SignalValue, Unused
from tests.contract.node_agent.stage import Stage, agent, staged
from tests.support.buses import ConnectBus
from tests.support.waiting import eventually

GIBIBYTE = 1024**3
SMALL = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 1
evictionHard: {memory.available: 2Gi}
imageGCHighThresholdPercent: 50
imageGCLowThresholdPercent: 40
"""


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> AsyncIterator[Stage]:
    async with staged(await connect_bus("stage")) as found:
        yield found


@pytest.fixture
def small(tmp_path: Path) -> tuple[LabelledFile, ...]:
    """For nodes with the label `pool: small`."""
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return (LabelledFile(selector={"pool": "small"}, file=str(file)),)


def say(stage: Stage, signals: NodeSignals) -> None:
    stage.bus.send(subjects.signals(signals.node), codec.encode(signals))


def conditions(stage: Stage, node: str) -> set[str]:
    fact = stage.node_fact(node)
    return set() if fact is None else {one.type for one in fact.conditions if one.status == "True"}


async def test_a_node_goes_by_the_file_of_its_label_from_when_it_has_it(
    bus: Bus, stage: Stage, small: tuple[LabelledFile, ...]
):
    node = await stage.node("n1")
    async with agent(bus, stage, kubelet_configs=small):
        await eventually("a node that is ready", lambda: "Ready" in conditions(stage, "n1"))
        memory = SignalValue(available=GIBIBYTE, capacity=8 * GIBIBYTE)
        usages = await stage.collect(subjects.usage("n1"), msgspec.Raw)
        say(stage, NodeSignals(node="n1", signals={"memory.available": memory}, standing=True))
        await eventually("a look", lambda: usages)
        assert "MemoryPressure" not in conditions(stage, "n1")
        labelled = {**node, "metadata": {**node["metadata"], "labels": {"pool": "small"}}}
        await stage.write(subjects.NODES, labelled)
        await eventually("pressure by the file", lambda: "MemoryPressure" in conditions(stage, "n1"))


async def test_a_node_takes_as_many_pods_as_its_file_says(bus: Bus, stage: Stage, small: tuple[LabelledFile, ...]):
    await stage.node("n1", labels={"pool": "small"})
    async with agent(bus, stage, kubelet_configs=small):
        await stage.phase(await stage.pod("first", "n1"), "Running")
        fact = await stage.phase(await stage.pod("second", "n1"), "Failed")
    assert fact.reason == "OutOfpods"
    assert fact.message.endswith("resource: pods, requested: 1, used: 1, capacity: 1")


async def test_images_are_collected_by_the_percentages_of_the_file_and_counted(
    bus: Bus, stage: Stage, small: tuple[LabelledFile, ...]
):
    await stage.node("n1", labels={"pool": "small"})
    async with agent(bus, stage, kubelet_configs=small, image_gc_period_s=0.1, monitoring_interval_s=0.1) as service:
        await eventually("a node that is ready", lambda: "Ready" in conditions(stage, "n1"))
        disk = SignalValue(available=40 * GIBIBYTE, capacity=100 * GIBIBYTE)
        images = Unused(disk_bytes=50 * GIBIBYTE)
        say(stage, NodeSignals(node="n1", signals={"imagefs.available": disk}, images=images, standing=True))

        def collected() -> float:
            name, labels = "podyard_node_agent_collected_image_bytes_total", {"reason": "space"}
            return service.metrics.get_sample_value(name, labels) or 0.0

        await eventually("a collection", collected)
        assert collected() == 20 * GIBIBYTE, "from 60 % to 40 %"
        labels = {"node": "n1", "signal": "imagefs.available"}

        def left() -> float | None:
            return service.metrics.get_sample_value("podyard_node_agent_signal_available", labels)

        await eventually("a look at what is left", lambda: left() == 60 * GIBIBYTE)
