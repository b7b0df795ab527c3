"""Workloads and nodes that fall silent: what it writes, what every reader sees of it, and whose pods end.
Time goes on as heartbeats arrive, so that who beats is never silent, however slow the machine is. The rules
are tested in the core's own time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import msgspec
import pytest

from podyard.bus import Bus
from podyard.cluster.view import ClusterView
from podyard.objects.times import rfc3339, seconds_of
from podyard.proto import codec, streams, subjects
from podyard.proto.facts import Condition, NodeLifeFact, NodeStatusFact, PodStatusFact
from podyard.proto.operations import DeadLetter, K8sEvent
from podyard.proto.signals import NodeHeartbeat
from podyard.runtime.service import Service
from podyard.shell.snapshot import snapshot
from podyard.workloads.service import SERVICE
from podyard.workloads.settings import WorkloadsSettings
from tests.support import stored
from tests.support.buses import ConnectBus
from tests.support.cluster import Cluster, bound
from tests.support.holding import Hold
from tests.support.services import make_service, running
from tests.support.steady import Steady
from tests.support.waiting import eventually

BEAT_S = 0.05
GRACE_S = 0.3
SHORT = WorkloadsSettings(
    node_monitor_period_s=BEAT_S, node_monitor_grace_period_s=GRACE_S, node_startup_grace_period_s=GRACE_S
)


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "generation": 1},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


def leads(service: Service) -> bool:
    return service.metrics.get_sample_value("podyard_workloads_leading") == 1


class Agents:
    """Two nodes; those in `alive` beat. n2 is always there, or all of the zone would be silent."""

    def __init__(self, bus: Bus) -> None:
        self.cluster = Cluster(bus)
        self.bus = bus
        self.alive = {"n1", "n2"}
        self.time = Steady()
        self._listeners: list[Bus] = []
        self._waits_for: list[Bus] = []
        """Those that have not heard the last round."""

    async def begin(self) -> None:
        for name in sorted(self.alive):
            await self.cluster.node(name)
            ready = Condition(type="Ready", status="True", last_transition_time=rfc3339(self.time()))
            fact = NodeStatusFact(node=name, node_uid=f"uid-{name}", conditions=(ready,))
            await self.cluster.write(stored.node_status(fact))

    async def listener(self, bus: Bus, settings: WorkloadsSettings = SHORT, instance: str = "") -> Service:
        """Workloads in the agents' time, which goes on when a round of beats has reached them all."""

        def hear(subject: str, payload: bytes, _trace: str) -> None:
            if codec.decode(NodeHeartbeat, payload).node == "n2" and bus in self._waits_for:
                self._waits_for.remove(bus)

        await bus.subscribe(subjects.heartbeat("n2"), hear)
        self._listeners.append(bus)
        return make_service(SERVICE, bus, settings, instance=instance, clock=self.time.clock())

    async def beat(self) -> None:
        while True:
            self._waits_for = list(self._listeners)
            for name in sorted(self.alive):  # n2 is the last
                self.bus.send(subjects.heartbeat(name), codec.encode(NodeHeartbeat(node=name)))
            await eventually("that the beats are heard", lambda: not self._waits_for)
            self.time.passes(BEAT_S)
            await anyio.sleep(BEAT_S)

    async def life(self, name: str = "n1") -> NodeLifeFact | None:
        found = await self.cluster.last(subjects.node_life(name))
        return None if found is None or found.deleted else codec.decode(NodeLifeFact, found.payload)

    async def is_well(self, name: str = "n1") -> bool:
        return await self.life(name) is None

    async def is_given_up(self, name: str = "n1") -> bool:
        life = await self.life(name)
        return life is not None and any(taint.effect == "NoExecute" for taint in life.taints)

    async def has_healthy(self, pods: int) -> bool:
        status = (await self.cluster.document("poddisruptionbudgets", "web")).get("status", {})
        return status.get("currentHealthy") == pods

    async def is_deleting(self, pod: str) -> bool:
        return "deletionTimestamp" in (await self.cluster.document("pods", pod))["metadata"]

    async def deleted_at(self, pod: str) -> float:
        metadata = (await self.cluster.document("pods", pod))["metadata"]
        return seconds_of(metadata["deletionTimestamp"]) - metadata["deletionGracePeriodSeconds"]


@pytest.fixture
async def agents(bus: Bus, hold: Hold[None]) -> Agents:
    found = Agents(bus)
    await found.begin()

    @asynccontextmanager
    async def beating() -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(found.beat)
            yield
            tasks.cancel_scope.cancel()

    await hold(beating())
    return found


async def test_a_node_falls_silent_its_pods_end_and_it_comes_back(agents: Agents, connect_bus: ConnectBus) -> None:
    forever = {"operator": "Exists", "effect": "NoExecute"}
    await agents.cluster.pod("goes", tolerations=[{**forever, "tolerationSeconds": 1}])
    await agents.cluster.pod("stays", tolerations=[forever], labels={"app": "web"})
    await agents.cluster.commit([bound("goes"), bound("stays")])
    ready = Condition(type="Ready", status="True")
    await agents.cluster.status(
        PodStatusFact(
            namespace="default", name="stays", uid="uid-stays", node="n1", phase="Running", conditions=(ready,)
        )
    )
    await agents.cluster.create("poddisruptionbudgets", [BUDGET])
    told = list[K8sEvent]()
    await agents.bus.subscribe("k8sevents.>", lambda _, payload, __: told.append(codec.decode(K8sEvent, payload)))
    async with running(await agents.listener(await connect_bus("workloads"))):
        await agents.time.has_passed(2 * GRACE_S)
        assert await agents.is_well("n1"), "it beats"
        await eventually("that the budget counts the pod", lambda: agents.has_healthy(1))
        agents.alive.remove("n1")
        await eventually("that it is given up", agents.is_given_up)
        view: ClusterView = await snapshot(agents.bus)
        node = view.nodes["n1"].node
        assert {(one.key, one.effect) for one in node.spec.taints} == {
            ("node.kubernetes.io/unreachable", "NoSchedule"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
        }
        assert {one.type: one.status for one in node.status.conditions}["Ready"] == "Unknown"
        assert not view.nodes["n2"].life
        await eventually("that it counts the pod no more", lambda: agents.has_healthy(0))
        await eventually("the end of the pod", lambda: agents.is_deleting("goes"))
        (given_up_at,) = (one.time_added for one in node.spec.taints if one.effect == "NoExecute")
        assert await agents.deleted_at("goes") >= seconds_of(given_up_at) + 1, "its toleration lasts so long"
        (condition,) = (await agents.cluster.document("pods", "goes"))["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "DeletionByTaintManager")
        assert not await agents.is_deleting("stays")
        agents.alive.add("n1")
        await eventually("that all is well", agents.is_well)
        await eventually("that it counts the pod again", lambda: agents.has_healthy(1))
    assert [(one.type, one.reason, one.message, one.controller) for one in told] == [
        ("Normal", "NodeNotReady", "Node n1 status is now: NodeNotReady", "node-controller"),
        ("Normal", "TaintManagerEviction", "Marking for deletion Pod default/goes", "taint-eviction-controller"),
    ]


async def test_after_a_take_over_a_node_has_its_time_again(agents: Agents, connect_bus: ConnectBus) -> None:
    """The one that takes over has heard nothing of the node: it says nothing before it has listened as
    long. The one before it never says anything: what is seen is the word of the second."""
    patient = msgspec.structs.replace(SHORT, node_monitor_grace_period_s=3600.0, node_startup_grace_period_s=3600.0)
    first = await agents.listener(await connect_bus("a"), patient, instance="workloads-a")
    second = await agents.listener(await connect_bus("b"), instance="workloads-b")
    agents.alive.remove("n1")
    async with running(first) as leader:
        await eventually("that the first leads", lambda: leads(first))
        async with running(second):
            await agents.time.has_passed(2 * GRACE_S)
            assert await agents.is_well("n1")
            began = agents.time()
            leader.cancel()
            await eventually("that it is given up", agents.is_given_up)
            assert agents.time() - began >= GRACE_S
            assert leads(second)


async def test_a_node_is_lost_again_after_the_marker_of_the_last_time_has_expired(
    agents: Agents, connect_bus: ConnectBus
) -> None:
    bus = await connect_bus("workloads", marker_ttl_s=1)

    async def is_gone() -> bool:
        return await agents.cluster.last(subjects.node_life("n1")) is None

    async with running(await agents.listener(bus)):
        agents.alive.remove("n1")
        await eventually("that it is given up", agents.is_given_up)
        agents.alive.add("n1")
        await eventually("that all is well", agents.is_well)
        await eventually("the end of the marker", is_gone)
        agents.alive.remove("n1")
        await eventually("that it is lost again", agents.life)


async def test_who_is_cut_off_declares_nobody_lost(
    agents: Agents, connect_bus: ConnectBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = await connect_bus("workloads")
    states: list = []
    on_state = bus.on_state
    monkeypatch.setattr(bus, "on_state", lambda listener: (states.append(listener), on_state(listener))[1])
    async with running(await agents.listener(bus)):
        (listener,) = await eventually("that it listens", lambda: states)
        await agents.time.has_passed(2 * SHORT.node_monitor_period_s)
        listener(bus.state.__class__(connected=False))
        agents.alive.remove("n1")
        await agents.time.has_passed(2 * GRACE_S)
        assert await agents.is_well("n1")
        began = agents.time()
        listener(bus.state)
        await eventually("that it is given up", agents.is_given_up)
        assert agents.time() - began >= GRACE_S


async def test_a_heartbeat_that_names_another_node_is_no_sign_of_life(agents: Agents, connect_bus: ConnectBus) -> None:
    """An agent may publish on the subjects of its own nodes alone."""
    agents.alive.remove("n1")
    async with running(await agents.listener(await connect_bus("workloads"))):
        async with anyio.create_task_group() as tasks:

            async def lie() -> None:
                while True:
                    agents.bus.send(subjects.heartbeat("n2"), codec.encode(NodeHeartbeat(node="n1")))
                    await anyio.sleep(BEAT_S)

            tasks.start_soon(lie)
            await eventually("that it is given up", agents.is_given_up)
            tasks.cancel_scope.cancel()
        letter = await eventually(
            "a dead letter", lambda: agents.bus.get(streams.DEAD.name, subjects.dead("workloads"))
        )
    assert "names another node than its subject, n2" in codec.decode(DeadLetter, letter.payload).reason
