"""A core that raises on one message: the message is set aside, others' pods are bound meanwhile."""

import anyio
import pytest

from podyard.binder.core import node_takes_pod
from podyard.binder.core.world import World
from podyard.binder.service import SERVICE
from podyard.bus import Bus, BusError
from podyard.cluster.changes import Change
from podyard.proto import codec, subjects
from podyard.proto.binder_api import BindAnswer, BindRequest, Decision
from tests.contract.binder.stage import Cluster
from tests.support.buses import ConnectBus
from tests.support.raising import dead_letter, raise_on
from tests.support.services import make_service, running

ANSWERED_S = 1.0
"""A term that ended judges nothing more: decisions are sent again, as schedulers do."""


@pytest.fixture
async def cluster(bus: Bus) -> Cluster:
    cluster = Cluster(bus)
    await cluster.node()
    await cluster.pods("a", "b", "poison")
    return cluster


async def answers(cluster: Cluster, *decisions: Decision) -> list[BindAnswer]:
    """Ask until there is an answer."""
    while True:
        try:
            reply = await cluster.ask(*decisions, timeout_s=ANSWERED_S)
        except BusError:
            continue
        if not reply.refused:
            return list(reply.answers)
        await anyio.sleep(0.05)


def is_poison(world: World, change: Change) -> bool:
    """A pod of that name."""
    return change.key.name == "bad" and change.new is not None


@pytest.mark.parametrize("when", ["while it leads", "before it leads"])
async def test_a_stored_message_that_the_core_raises_on_is_set_aside(
    cluster: Cluster, connect_bus: ConnectBus, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    met = raise_on(monkeypatch, World, "_follow_pod", is_poison)
    if when == "before it leads":
        await cluster.pods("bad")
    service = make_service(SERVICE, await connect_bus("binder"))
    async with running(service):
        assert [one.result for one in await answers(cluster, cluster.decide("a"))] == ["bound"]
        if when == "while it leads":
            await cluster.pods("bad")
        letter = await dead_letter(cluster.bus, "binder")
        assert letter.subject == "cluster.pods.default.bad"
        assert letter.sequence > 0
        assert [one.result for one in await answers(cluster, cluster.decide("b"))] == ["bound"]
        assert [one.result for one in await answers(cluster, cluster.decide("bad"))] == ["gone"]
        assert len(met) == 1, "the next term is not told of it again"
        assert service.health.ready


async def test_a_decision_that_the_core_raises_on_is_refused_and_its_mates_are_bound(
    cluster: Cluster, connect_bus: ConnectBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = raise_on(monkeypatch, node_takes_pod, "judge", lambda decision, *_: decision.name == "poison")
    service = make_service(SERVICE, await connect_bus("binder"))
    async with running(service):
        found = await answers(cluster, cluster.decide("a"), cluster.decide("poison"), cluster.decide("b"))
        assert [(one.result, one.cause) for one in found] == [("bound", ""), ("error", "setAside"), ("bound", "")]
        assert "Bug: nobody thought of this" in found[1].reasons[0]
        letter = await dead_letter(cluster.bus, "binder")
        assert letter.subject == subjects.BINDER_BIND
        assert len(codec.decode(BindRequest, letter.payload).decisions) == 3
        again = await answers(cluster, cluster.decide("poison", attempt="2-poison"))
        assert [one.cause for one in again] == ["setAside"]
        assert len(met) == 1
        assert service.health.ready
