"""What synthetic signals say of a moment, and what of them is of no use."""

import msgspec
import pytest

from podyard.cli.scenario import shapes
from podyard.node_agent.core import effects
from podyard.objects.pod import Pod
from podyard.proto.facts import NodeStatusFact
from podyard.proto.signals import (
    ContainerUsage,
    Course,
    NodeSignals,
    PodUsage,
    Point,
    SignalValue,
    Unused,
    VolumeUsage,
)
from tests.unit.node_agent.make import GIBIBYTE, Playing, agent, node, pod, signals, view

CAPACITY = {"cpu": "8", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"}
LOW, PLENTY = 50 * 2**20, 4 * GIBIBYTE


def two_containers() -> Pod:
    containers = [{"name": name, "image": "i"} for name in ("main", "side")]
    return pod("a", spec={"containers": containers, "volumes": [{"name": "cache", "emptyDir": {}}]})


def played(*pods: Pod, hard: dict[str, str] | None = None) -> Playing:
    playing = agent(hard=hard or {"memory.available": "100Mi"}, monitoring_s=10.0)
    playing.node_seen(node(amounts=CAPACITY), (), 0.0)
    for one in pods or (pod("a"), pod("b")):
        playing.pod_seen(view(one), 0.0, 0.0)
    playing.tick(1.0)
    return playing


def moment(playing: Playing) -> NodeSignals:
    found = playing.nodes.get("n1").reading  # type: ignore[union-attr]
    assert found is not None
    return found


def fact(playing: Playing) -> NodeStatusFact:
    found = playing.nodes.get("n1").fact  # type: ignore[union-attr]
    assert found is not None
    return found


def conditions(playing: Playing) -> set[str]:
    return {one.type for one in fact(playing).conditions if one.status == "True"} - {"Ready"}


def of(kind: type, found: list) -> list:
    return [one for one in found if isinstance(one, kind)]


def memory_of(playing: Playing, at: float) -> int:
    playing.tick(at)
    (one,) = moment(playing).pods
    return one.memory_bytes


def course(*points: Point, **whose: str) -> NodeSignals:
    return NodeSignals(node="n1", courses=(Course(**{"namespace": "default", "pod": "a", **whose}, points=points),))


@pytest.mark.parametrize(
    ("points", "seen"),
    [
        (shapes.constant(700), [700, 700, 700]),
        (shapes.ramp(700, 30), [300, 500, 700]),
        (shapes.leak(0, 20, 500), [200, 400, 500]),
        (shapes.spike(700, 25), [700, 700, 100]),
        (shapes.replayed([(0, 10), (10, 30), (30, 70)]), [30, 50, 70]),
    ],
    ids=["constant", "ramp", "leak", "spike", "replayed"],
)
def test_an_amount_goes_on_by_itself_from_where_it_stood(points, seen):
    playing = played()
    stood = PodUsage(namespace="default", name="a", memory_bytes=100)
    playing.observe(NodeSignals(node="n1", pods=(stood,), standing=True), 5.0)
    playing.observe(course(*points), 10.0)
    assert [memory_of(playing, at) for at in (20.0, 30.0, 40.0)] == seen


def test_a_signal_that_nobody_gave_begins_idle():
    playing = played()
    ramp = Course(signal="memory.available", points=shapes.ramp(0, 40))
    playing.observe(NodeSignals(node="n1", courses=(ramp,)), 10.0)
    playing.tick(20.0)
    assert moment(playing).signals == {"memory.available": SignalValue(available=6 * GIBIBYTE, capacity=8 * GIBIBYTE)}


def test_a_leak_in_a_pod_takes_the_node_s_memory_until_the_pod_is_gone():
    playing = played()
    playing.observe(course(*shapes.leak(0, GIBIBYTE // 10, 8 * GIBIBYTE)), 10.0)
    found = [one for second in range(20, 90) for one in playing.tick(float(second))]
    assert of(effects.PodEvicted, found) == []
    assert moment(playing).signals["memory.available"].available < 2 * GIBIBYTE
    (evicted,) = of(effects.PodEvicted, [one for second in range(90, 121) for one in playing.tick(float(second))])
    assert evicted.name == "a"
    assert conditions(playing) == {"MemoryPressure"}
    assert moment(playing).signals["memory.available"].available == 8 * GIBIBYTE
    for second in range(121, 430):
        playing.tick(float(second))
    assert conditions(playing) == set()


def test_containers_and_volumes_are_part_of_their_pod():
    playing = played(two_containers(), hard={"nodefs.available": "1Gi"})
    used = PodUsage(
        namespace="default",
        name="a",
        memory_bytes=1000,
        containers=(ContainerUsage(name="side", memory_bytes=700, disk_bytes=5, cpu_nanocores=3),),
        volumes=(VolumeUsage(name="cache", disk_bytes=GIBIBYTE),),
    )
    found = playing.observe(NodeSignals(node="n1", pods=(used,), standing=True), 10.0)
    (usage,) = [one.usage for one in of(effects.PublishUsage, found)]
    assert (usage.memory_bytes, usage.cpu_nanocores) == (1000, 3)
    assert moment(playing).signals["nodefs.available"].available == 99 * GIBIBYTE - 5
    named = msgspec.structs.replace(
        course(Point(after_s=0, amount=99 * GIBIBYTE), volume="cache", resource="disk"), pods=(used,)
    )
    (evicted,) = of(effects.PodEvicted, playing.observe(named, 20.0))
    assert evicted.signal == "nodefs.available"


def test_collection_alone_ends_disk_pressure():
    playing = played(hard={"nodefs.available": "10Gi"})
    full = {"nodefs.available": SignalValue(available=GIBIBYTE, capacity=100 * GIBIBYTE)}
    unused = Unused(disk_bytes=20 * GIBIBYTE)
    said = NodeSignals(node="n1", signals=full, images=unused, standing=True)
    found = playing.observe(said, 10.0)
    assert of(effects.PodEvicted, found) == []
    assert [one.reason for one in of(effects.Announce, found)] == ["NodeHasDiskPressure", "EvictionThresholdMet"]
    assert conditions(playing) == {"DiskPressure"}
    later = [one for second in range(11, 330) for one in playing.tick(float(second))]
    assert of(effects.PodEvicted, later) == []
    assert [one.reason for one in of(effects.Announce, later)] == ["NodeHasNoDiskPressure"]
    assert conditions(playing) == set()
    too_little = msgspec.structs.replace(said, images=Unused(disk_bytes=GIBIBYTE))
    assert len(of(effects.PodEvicted, playing.observe(too_little, 400.0))) == 1


def test_what_is_not_there_is_told_once_and_not_kept():
    playing = played(two_containers())
    said = NodeSignals(
        node="n1",
        signals={"memory.free": SignalValue(available=1, capacity=2)},
        pods=(
            PodUsage(namespace="default", name="gone"),
            PodUsage(namespace="default", name="a", volumes=(VolumeUsage(name="no"),)),
        ),
        courses=(
            Course(namespace="default", pod="a", container="none", points=shapes.constant(1)),
            Course(signal="pid.available", points=shapes.constant(1)),
            Course(namespace="default", pod="a", points=(Point(after_s=2, amount=1), Point(after_s=1, amount=1))),
            Course(namespace="default", pod="a", volume="cache", resource="cpu", points=shapes.constant(1)),
        ),
    )
    told = of(effects.Announce, playing.observe(said, 10.0))
    assert {one.reason for one in told} == {"UnknownSignal"}
    assert [one.message for one in told] == [
        "there is no signal 'memory.free'",
        "no pod default/gone is on the node",
        "pod default/a has no volume 'no'",
        "pod default/a has no container 'none'",
        "nobody has said the capacity of pid.available",
        "the points of a course of default/a/memory are not in order of time",
        "cpu of default/a/cache/cpu is not measured",
    ]
    kept = playing.nodes.get("n1").synthetic.said  # type: ignore[union-attr]
    assert (kept.signals, kept.courses) == ({}, ())
    assert kept.pods == (PodUsage(namespace="default", name="a"),)
    assert of(effects.Announce, playing.observe(said, 11.0)) == []


IMPOSSIBLE = [
    ({"memory.available": SignalValue(available=-1, capacity=8)}, {}, "memory.available is impossible: -1 of 8"),
    ({"memory.available": SignalValue(available=9, capacity=8)}, {}, "memory.available is impossible: 9 left of 8"),
    ({}, {"memory_bytes": -1}, "memory_bytes of pod default/b is impossible: -1 of 8589934592"),
    ({}, {"memory_bytes": 9 * GIBIBYTE}, "memory_bytes of pod default/b is impossible: 9663676416 of 8589934592"),
    ({}, {"processes": -3}, "processes of pod default/b is impossible: -3"),
]


@pytest.mark.parametrize(("levels", "used", "why"), IMPOSSIBLE)
def test_on_what_cannot_be_nobody_is_evicted_and_that_is_told(levels, used, why):
    playing = played()
    playing.observe(signals(LOW, at=10.0), 10.0)
    said = NodeSignals(
        node="n1",
        signals={"nodefs.available": SignalValue(available=0, capacity=8), **levels},
        pods=(PodUsage(namespace="default", name="b", **used),),
        standing=True,
    )
    found = [*playing.tick(12.5), *playing.tick(15.0), *playing.observe(said, 20.0)]
    assert of(effects.PodEvicted, found) == []
    assert of(effects.PublishUsage, playing.observe(said, 21.0)) == []
    (told,) = of(effects.RoundFailed, found)
    assert told.unread
    assert told.fault.endswith(f"failed to get summary stats: {why}")
    assert conditions(playing) == {"MemoryPressure", "ReadingsStale"}
    playing.observe(signals(PLENTY, at=30.0), 30.0)
    assert conditions(playing) == {"MemoryPressure"}


def test_a_measurement_older_than_three_looks_changes_nothing_and_is_told():
    """docs/rules.md, a-reading-grows-old."""
    playing = played()
    playing.observe(signals(LOW, at=10.0), 10.0)
    for second in range(11, 41):
        playing.tick(float(second))
    assert conditions(playing) == {"MemoryPressure"}
    found = [one for second in range(41, 500) for one in playing.tick(float(second))]
    assert of(effects.PodEvicted, found) == []
    (told,) = of(effects.RoundFailed, found)
    assert "older than 30 s" in told.fault
    assert conditions(playing) == {"MemoryPressure", "ReadingsStale"}


def test_what_stands_does_not_grow_old():
    playing = played()
    playing.observe(msgspec.structs.replace(signals(PLENTY, at=10.0), standing=True), 10.0)
    found = [one for second in range(11, 500) for one in playing.tick(float(second))]
    assert (of(effects.RoundFailed, found), conditions(playing)) == ([], set())


def test_without_any_signals_a_node_is_idle():
    playing = played()
    playing.observe(signals(PLENTY, at=10.0), 10.0)
    playing.observe(NodeSignals(node="n1"), 20.0)
    found = [one for second in range(21, 500) for one in playing.tick(float(second))]
    assert (of(effects.RoundFailed, found), conditions(playing)) == ([], set())
