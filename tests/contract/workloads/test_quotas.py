"""What workloads makes is held to quotas as what people apply."""

from typing import Any

import pytest

from podyard.bus import Bus
from podyard.objects.quotas import QUOTAS
from podyard.proto import codec, streams, subjects
from podyard.proto.facts import QuotaUsageFact
from podyard.workloads.service import SERVICE
from tests.contract.workloads.test_events import Told, documents, told  # noqa: F401 - a fixture
from tests.contract.workloads.test_workloads import Cluster, LossyBus, has_replicas
from tests.support.services import make_service, running
from tests.support.waiting import eventually
from tests.unit.workloads.stage import replica_set


def quota(pods: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": str(pods)}},
    }


async def used(cluster: Cluster) -> dict[str, str]:
    metadata = (await cluster.document(QUOTAS, "q"))["metadata"]
    found = await cluster.bus.get(streams.CLUSTER.name, subjects.quota_usage("default", "q", metadata["uid"]))
    return {} if found is None else codec.decode(QuotaUsageFact, found.payload).used


async def uses(cluster: Cluster, pods: int) -> None:
    async def same() -> bool:
        return await used(cluster) == {"pods": str(pods)}

    await eventually(f"{pods} pods are used", same)


async def test_a_replica_set_over_quota_is_told_once_a_try_and_goes_on_when_there_is_room(
    bus: Bus,
    told: Told,  # noqa: F811
    connect_bus,
) -> None:
    cluster = Cluster(bus)
    await cluster.apply(quota(3))
    async with running(make_service(SERVICE, await connect_bus("workloads"))):
        await uses(cluster, 0)
        await cluster.apply(replica_set(40))
        await eventually("three pods", lambda: has_replicas(cluster, 3))
        await uses(cluster, 3)
        failed = await eventually("that the others failed", lambda: told.of("FailedCreate"))
        made = {pod["metadata"]["name"] for pod in await documents(bus, "pods")}
        first = failed[0]
        assert (first.type, first.controller) == ("Warning", "replicaset-controller")
        said, _, why = first.message.partition(" is forbidden: ")
        assert said.startswith('Error creating: pods "web-')
        assert said.split('"')[1] not in made
        assert why == "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"
        tries = len(told.of("FailedCreate"))
        assert tries < 37, "each try is told once, not each pod"
        document = await cluster.document(QUOTAS, "q")
        await cluster.put(QUOTAS, {**document, "spec": {"hard": {"pods": "50"}}})
        await eventually("all pods", lambda: has_replicas(cluster, 40))
        await uses(cluster, 40)


@pytest.mark.parametrize("faults", [["lost ack"], ["lost"], ["lost ack", "lost", "lost ack"], ["lost"] * 4])
async def test_lost_acknowledgements_charge_nothing_twice(bus: Bus, connect_bus, faults: list[str]) -> None:
    cluster = Cluster(bus)
    await cluster.apply(quota(9))
    lossy = LossyBus(await connect_bus("workloads"))
    async with running(make_service(SERVICE, lossy)):
        await uses(cluster, 0)
        lossy.faults.extend(faults)
        await cluster.apply(replica_set(5))
        await eventually("its pods", lambda: has_replicas(cluster, 5))
        await uses(cluster, 5)
    assert not lossy.faults
    assert len(await documents(bus, "pods")) == 5
