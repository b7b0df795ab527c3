"""A core that raises on one message: the message is set aside, everybody else is served."""

from typing import Any

import pytest

from podyard.bus import Bus
from podyard.shell import boundary
from podyard.workloads.core.controller import Workloads
from podyard.workloads.service import SERVICE
from tests.contract.workloads.test_workloads import Cluster
from tests.support.buses import ConnectBus
from tests.support.objects import Document
from tests.support.raising import dead_letter, raise_on
from tests.support.services import make_service, running
from tests.support.waiting import eventually
from tests.unit.workloads.stage import replica_set

POISON = 13


def is_poison(core: Workloads, change: Any) -> bool:
    """A ReplicaSet with that many replicas."""
    return change.resource == "replicasets" and change.new is not None and change.new.spec.replicas == POISON


def named(name: str, replicas: int) -> Document:
    """A ReplicaSet whose pods are its own."""
    found = replica_set(replicas, name)
    found["spec"]["selector"]["matchLabels"] = found["spec"]["template"]["metadata"]["labels"] = {"app": name}
    return found


@pytest.fixture
def cluster(bus: Bus) -> Cluster:
    return Cluster(bus)


async def has_status(cluster: Cluster, name: str, replicas: int) -> bool:
    return (await cluster.document("replicasets", name)).get("status", {}).get("replicas") == replicas


@pytest.mark.parametrize("when", ["while it leads", "before it leads"])
async def test_a_message_that_the_core_raises_on_is_set_aside_and_others_are_served(
    cluster: Cluster, connect_bus: ConnectBus, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    met = raise_on(monkeypatch, Workloads, "_note", is_poison)
    await cluster.apply(named("first", 2))
    service = make_service(SERVICE, await connect_bus("workloads"))
    if when == "before it leads":
        await cluster.apply(named("poison", POISON))
    async with running(service):
        await eventually("its first status", lambda: has_status(cluster, "first", 2))
        if when == "while it leads":
            await cluster.apply(named("poison", POISON))
        letter = await dead_letter(cluster.bus, "workloads")
        assert (letter.subject, letter.sequence > 0) == ("cluster.replicasets.default.poison", True)
        assert "Bug: nobody thought of this" in letter.reason
        await cluster.apply(named("second", 3))
        await eventually("the pods of others", lambda: has_status(cluster, "second", 3))
        assert len(met) == 1, "the next term is not told of it again"
        assert service.health.ready
        document = await cluster.document("replicasets", "poison")
        document["spec"]["replicas"] = 4
        await cluster.put("replicasets", document)
        await eventually("the pods of who was mended", lambda: has_status(cluster, "poison", 4))


async def test_who_raises_again_and_again_is_not_ready_says_why_and_goes_on(
    cluster: Cluster, connect_bus: ConnectBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boundary, "PAUSES_S", (0.01,))
    monkeypatch.setattr(boundary, "WITHIN_S", 3.0)
    met = raise_on(monkeypatch, Workloads, "_note", is_poison)
    for number in range(boundary.MANY):
        await cluster.apply(named(f"poison-{number}", POISON))
    service = make_service(SERVICE, await connect_bus("workloads"))
    async with running(service):
        await eventually("the end of as many terms", lambda: len(met) == boundary.MANY)
        check = service.health.checks[boundary.CHECK]
        assert not check.ok
        assert f"cluster.replicasets.default.poison-{boundary.MANY - 1}@" in check.reason
        await cluster.apply(named("other", 2))
        await eventually("the pods of others", lambda: has_status(cluster, "other", 2))
        await eventually("that it calms down", lambda: boundary.CHECK not in service.health.checks)
        assert service.health.ready
