"""Nodes that run short of something, and nodes that are lost: what becomes of their pods, and that people are
told which it is."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import anyio
import msgspec
import pytest
import pytest_asyncio

from podyard.bus import Bus
from podyard.cli.demo.actions import GIBIBYTE
from podyard.cli.scenario import shapes
from podyard.cluster.pods import PodView
from podyard.objects.core import Node
from podyard.proto import codec, subjects
from podyard.proto.signals import Course, NodeHeartbeat, NodeSignals, PodUsage, SignalValue, Unused
from tests.e2e.labs import exporting
from tests.e2e.stage import WITHIN_S, Stand, node, pause, resume, stand
from tests.support.lasting import Lasting
from tests.support.objects import Document
from tests.support.otlp_sink import Ids, OtlpSink, SinkSpan

GRACE_S: Final = 6.0
"""How long a node may be silent: several times what an agent takes to start again."""
TRANSITION_S: Final = 1.0
"""How long a pressure condition stays after it was last observed."""
OUTAGE_S: Final = 7.5
"""Of all of NATS: longer than a node may be silent, and than it takes to see that it was."""
NODES: Final = 50
SOON: Final = {
    "PODYARD_NODE_AGENT_MONITORING_INTERVAL_S": "0.5",
    "PODYARD_NODE_AGENT_EVICTION_PRESSURE_TRANSITION_PERIOD_S": f"{TRANSITION_S:g}",
    "PODYARD_NODE_AGENT_HEARTBEAT_INTERVAL_S": "0.5",
    "PODYARD_WORKLOADS_NODE_MONITOR_GRACE_PERIOD_S": f"{GRACE_S:g}",
    "PODYARD_WORKLOADS_NODE_MONITOR_PERIOD_S": "0.5",
}
LOST: Final = "node.kubernetes.io/unreachable"
PRESSED: Final = "node.kubernetes.io/memory-pressure"
LEAVES_AT_ONCE: Final = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def labs(sink: OtlpSink, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lasting[Stand]]:
    """A lab in which nodes are looked at often, and missed soon."""

    def begun() -> AbstractAsyncContextManager[Stand]:
        services = "api,queue,scheduler,binder,node_agent,workloads"
        return stand(tmp_path_factory.mktemp("lab"), services=services, environment={**SOON, **exporting(sink)})

    found = Lasting(begun)
    yield found
    await found.end()


async def test_a_leak_on_one_of_fifty_nodes_is_one_story_from_the_preview_to_the_end_of_pressure(
    here: Stand, sink: OtlpSink
) -> None:
    await here.join(*(node(f"node-{number}") for number in range(NODES)))
    await here.do.apply([replica_set(here, "leaky", requests={"memory": "1Gi"})], "a test")
    [old] = await here.seen.until("its pod running", lambda: here.seen.running("leaky"), WITHIN_S)
    where = {"nodeSelector": {"kubernetes.io/hostname": old.node_name}}
    await here.do.apply([here.pod("calm", **where), here.pod("within", memory="4Gi", **where)], "its neighbours")
    await here.running("calm", "within")
    neighbours = (use(here, "calm", 1), use(here, "within", 3))
    say(here, NodeSignals(node=old.node_name, pods=(use(here, old.name, 8), *neighbours), standing=True))
    named = await preview(here, old.node_name, "memory.available=50Mi")
    assert named == [old.name, "calm", "within"]

    leak = Course(namespace=here.namespace, pod=old.name, points=shapes.ramp(12 * GIBIBYTE - 50 * 2**20, 1.0))
    say(here, NodeSignals(node=old.node_name, pods=neighbours, courses=(leak,), standing=True))

    def pressed() -> Node | None:
        found = joined(here, old.node_name)
        return found if status(found, "MemoryPressure") == "True" else None

    found = await here.seen.until("MemoryPressure", pressed, WITHIN_S)
    assert (PRESSED, "NoSchedule") in {(one.key, one.effect) for one in found.spec.taints}
    gone = await here.seen.until("an evicted pod", lambda: evicted(here), WITHIN_S)
    assert gone == [named[0]], "whom the preview named, and nobody else"
    new = await replaced(here, "leaky", old)
    assert new.node_name != old.node_name
    await here.seen.until("the end of pressure", lambda: pressed() is None, WITHIN_S)
    assert joined(here, old.node_name).spec.taints == ()
    assert evicted(here) == gone
    assert {"calm", "within"} <= {one.name for one in here.seen.view.pods_on(old.node_name).values() if not one.ended}
    check_trace(here, sink, old, new)


async def test_a_full_image_file_system_is_relieved_by_collection_alone(here: Stand) -> None:
    await here.join(node("node-1", amounts={"ephemeral-storage": "100Gi"}))
    await here.do.apply([here.pod("web")], "a test")
    await here.running("web")
    full = SignalValue(available=5 * GIBIBYTE, capacity=100 * GIBIBYTE)
    unused = Unused(disk_bytes=40 * GIBIBYTE)
    say(here, NodeSignals(node="node-1", signals={"imagefs.available": full}, images=unused, standing=True))
    for wanted in ("True", "False"):
        what = f"DiskPressure {wanted}"
        await here.seen.until(what, lambda wanted=wanted: on_node(here, "DiskPressure") == wanted, WITHIN_S)
    assert here.runs("web")
    assert evicted(here) == []
    assert "EvictionThresholdMet" in reasons(here)


async def test_an_agent_that_is_killed_amid_an_eviction_is_told_from_a_lost_node(here: Stand) -> None:
    await here.join(node("node-1"), node("node-2"))
    await here.do.apply([replica_set(here, "web")], "a test")
    [old] = await here.seen.until("its pod running", lambda: here.seen.running("web"), WITHIN_S)
    full = NodeSignals(node=old.node_name, pods=(use(here, old.name, 16),), standing=True)
    agent = here.lab.child("node_agent")
    starts = agent.starts
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(here.do.repeat, lambda: say(here, full), 0.2)
        await here.seen.until("an eviction that is announced", lambda: "Evicted" in reasons(here), WITHIN_S)
        agent.kill()
        new = await replaced(here, "web", old)
        tasks.cancel_scope.cancel()
    assert agent.starts > starts
    assert new.node_name != old.node_name
    assert evicted(here) == [old.name]
    assert "NodeNotReady" not in reasons(here)
    await here.seen.until("a calm node", lambda: not joined(here, old.node_name).spec.taints, WITHIN_S)


async def test_a_node_that_falls_silent_is_lost_and_its_pods_are_made_again_elsewhere(here: Stand) -> None:
    await here.join(node("node-1"))
    await here.do.apply([replica_set(here, "web", tolerations=LEAVES_AT_ONCE)], "a test")
    [old] = await here.seen.until("its pod running", lambda: here.seen.running("web"), WITHIN_S)
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    elsewhere = node("node-2", metadata={"annotations": {"podyard.io/agent": "external"}}, status=ready)
    await here.do.apply([elsewhere], "a node whose agent is the test")

    def moved() -> list[PodView]:
        return [one for one in here.seen.pods("web") if one.uid != old.uid and here.bound_to(one.name) == "node-2"]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(here.do.repeat, lambda: beat(here.bus, "node-2"), 0.5)
        pause(here.lab, "node_agent")
        try:
            await here.seen.until("its pod elsewhere", moved, WITHIN_S)
            lost = joined(here, "node-1")
            assert status(lost, "Ready") == "Unknown"
            assert {one.key for one in lost.spec.taints} == {LOST}
            assert "NodeNotReady" in reasons(here)
            assert evicted(here) == []
        finally:
            resume(here.lab, "node_agent")
        await here.seen.until("the node back", lambda: on_node(here, "Ready") == "True", WITHIN_S)
        await here.seen.until("its pod ended", lambda: not here.seen.view.pods_on("node-1"), WITHIN_S)
        tasks.cancel_scope.cancel()


async def test_an_outage_of_all_of_nats_loses_no_node(here: Stand) -> None:
    await outlive(here, OUTAGE_S)


async def outlive(here: Stand, outage_s: float) -> None:
    """Have two nodes and a pod outlive an outage of NATS that is longer than a node may be silent."""
    await here.join(node("node-1"), node("node-2"))
    web = replica_set(here, "web", tolerations=LEAVES_AT_ONCE)
    await here.do.apply([web], "a test")
    [old] = await here.seen.until("its pod running", lambda: here.seen.running("web"), WITHIN_S)
    await here.lab.server.kill()
    await anyio.sleep(outage_s)
    await here.lab.server.start()
    web["spec"]["replicas"] = 2
    await here.do.apply([web], "workloads and agent have work again")
    found = await here.seen.until("two pods", lambda: len(now := here.seen.running("web")) == 2 and now, WITHIN_S)
    assert old.uid in {one.uid for one in found}
    assert "NodeNotReady" not in reasons(here)
    for name in ("node-1", "node-2"):
        assert (status(joined(here, name), "Ready"), joined(here, name).spec.taints) == ("True", ())


def replica_set(here: Stand, name: str, *, requests: dict[str, str] | None = None, **spec: Any) -> Document:
    """Of one pod, with its name as the label `app`; further keywords are of the pod's spec."""
    template = here.pod(name, requests=requests or {}, **spec)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": here.namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]},
        },
    }


def use(here: Stand, pod: str, gibibytes: int) -> PodUsage:
    """Memory of a pod."""
    return PodUsage(namespace=here.namespace, name=pod, memory_bytes=gibibytes * GIBIBYTE)


def say(here: Stand, signals: NodeSignals) -> None:
    """Publish signals."""
    here.bus.send(subjects.signals(signals.node), codec.encode(signals))


def beat(bus: Bus, name: str) -> None:
    """A sign of life of a node."""
    bus.send(subjects.heartbeat(name), codec.encode(NodeHeartbeat(node=name)))


async def preview(here: Stand, name: str, signal: str) -> list[str]:
    """The pods that would go, in order, as the command line says it."""
    done = await here.cli("eviction", "preview", name, "--signal", signal, "-o", "json")
    assert done.code == 0, done.err
    return [pod["name"] for pod in msgspec.json.decode(done.out)["pods"]]


async def replaced(here: Stand, app: str, old: PodView) -> PodView:
    """Another pod of a ReplicaSet, once it runs."""

    def another() -> list[PodView]:
        return [one for one in here.seen.running(app) if one.uid != old.uid]

    [new] = await here.seen.until("another pod running", another, WITHIN_S)
    return new


def joined(here: Stand, name: str) -> Node:
    """A node with all that is said of it."""
    return here.seen.view.nodes[name].node


def status(found: Node, condition: str) -> str:
    """Of a condition; empty if the node has none of that type."""
    return next((one.status for one in found.status.conditions if one.type == condition), "")


def on_node(here: Stand, condition: str) -> str:
    """Of node-1."""
    return status(joined(here, "node-1"), condition)


def evicted(here: Stand) -> list[str]:
    """Names of the pods of which that was told, whether they are there still or not."""
    return sorted({one.regarding.name for one in here.seen.events if one.reason == "Evicted"})


def reasons(here: Stand) -> set[str]:
    """Of all events."""
    return {one.reason for one in here.seen.events}


def check_trace(here: Stand, sink: OtlpSink, old: PodView, new: PodView) -> None:
    """From the binding of the pod that went, by links, to the start of the one that came."""

    def whole(spans: list[SinkSpan]) -> bool:
        wanted = (("evict pod", old.name), ("attempt", new.name), ("start pod", new.name), ("bind", old.name))
        return all(here.spans_of(spans, name, pod) for name, pod in wanted)

    spans = sink.wait_for(whole)
    [went] = here.spans_of(spans, "evict pod", old.name)
    assert went.attributes["podyard.eviction.signal"] == "memory.available"
    assert {one.trace_id for one in here.spans_of(spans, "bind", old.name)} == traces(went.links)
    [attempt] = here.spans_of(spans, "attempt", new.name)
    assert Ids(went.trace_id, went.span_id) in attempt.links
    assert [one.trace_id for one in here.spans_of(spans, "start pod", new.name)] == [attempt.trace_id]


def traces(links: Iterable[Ids]) -> set[str]:
    """Which traces are linked."""
    return {one.trace_id for one in links}
