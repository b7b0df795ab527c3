"""What people are told of what workloads does: the events of Kubernetes' controllers, in their words."""

from collections.abc import AsyncIterator

import pytest

from podyard.bus import Bus
from podyard.proto import codec, streams, subjects
from podyard.proto.operations import K8sEvent
from podyard.shell import stream_reading
from podyard.workloads.service import SERVICE
from tests.contract.workloads.test_workloads import Cluster, has_replicas
from tests.support import stored
from tests.support.cluster import bound
from tests.support.objects import Document
from tests.support.services import make_service, running
from tests.support.waiting import eventually
from tests.unit.workloads.stage import deployment, replica_set, template


class Told(list[K8sEvent]):
    """All that was sent."""

    def of(self, reason: str) -> list[K8sEvent]:
        return [event for event in self if event.reason == reason]


@pytest.fixture
async def told(bus: Bus) -> AsyncIterator[Told]:
    found = Told()
    heard = await bus.subscribe(
        subjects.ALL_K8SEVENTS, lambda subject, payload, trace: found.append(codec.decode(K8sEvent, payload))
    )
    yield found
    await heard.close()


async def test_pods_that_it_makes_cost_no_message_and_those_that_it_deletes_are_told(
    bus: Bus, told: Told, connect_bus
) -> None:
    cluster = Cluster(bus)
    await cluster.apply(replica_set(3))
    async with running(make_service(SERVICE, await connect_bus("workloads"))):
        await eventually("its pods", lambda: has_replicas(cluster, 3))
        document = await cluster.document("replicasets", "web")
        assert told == []
        await cluster.put("replicasets", {**document, "spec": {**document["spec"], "replicas": 1}})
        await eventually("that two are deleted", lambda: len(told) == 2)
    assert {(event.type, event.reason, event.controller) for event in told} == {
        ("Normal", "SuccessfulDelete", "replicaset-controller")
    }
    assert all(event.message.startswith("Deleted pod: web-") for event in told)
    assert {(event.regarding.resource, event.regarding.name, event.regarding.uid) for event in told} == {
        ("replicasets", "web", document["metadata"]["uid"])
    }


async def test_a_pod_that_is_bound_is_deleted_as_well(bus: Bus, told: Told, connect_bus) -> None:
    cluster = Cluster(bus)
    await cluster.apply(replica_set(1))
    async with running(make_service(SERVICE, await connect_bus("workloads"))):
        await eventually("its pod", lambda: has_replicas(cluster, 1))
        (pod,) = await documents(bus, "pods")
        await cluster.commit([bound(pod["metadata"]["name"], uid=pod["metadata"]["uid"])])
        document = await cluster.document("replicasets", "web")
        await cluster.put("replicasets", {**document, "spec": {**document["spec"], "replicas": 0}})
        (event,) = await eventually("that it is deleted", lambda: list(told))
    assert (event.reason, event.message) == ("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


async def test_a_deployment_tells_how_it_scales(bus: Bus, told: Told, connect_bus) -> None:
    cluster = Cluster(bus)
    await cluster.apply(deployment(2))
    async with running(make_service(SERVICE, await connect_bus("workloads"))):
        (event,) = await eventually("a word", lambda: told.of("ScalingReplicaSet"))
        await eventually("its pods", lambda: _made(bus, 2))
        document = await cluster.document("deployments", "web")
        await cluster.put("deployments", {**document, "spec": {**document["spec"], "replicas": 1}})
        _, down = await eventually("another", lambda: _two(told))
    (made,) = await documents(bus, "replicasets")
    name = made["metadata"]["name"]
    assert (event.type, event.message) == ("Normal", f"Scaled up replica set {name} from 0 to 2")
    assert (event.controller, event.regarding.resource) == ("deployment-controller", "deployments")
    assert down.message == f"Scaled down replica set {name} from 2 to 1"


async def test_a_template_that_makes_no_pod_is_told_on_its_controller(bus: Bus, told: Told, connect_bus) -> None:
    cluster = Cluster(bus)
    wrong = replica_set(1)
    await cluster.apply(wrong)
    document = await cluster.document("replicasets", "web")
    bad = template()
    bad["spec"]["priorityClassName"] = "no-such"
    await cluster.put("replicasets", {**document, "spec": {**document["spec"], "template": bad}})
    async with running(make_service(SERVICE, await connect_bus("workloads"))):
        (event,) = await eventually("a word", lambda: told.of("FailedCreate"))
    assert (event.type, event.controller) == ("Warning", "replicaset-controller")
    assert event.message.startswith("Error creating: ")
    assert "no-such" in event.message
    assert event.regarding.uid == document["metadata"]["uid"]


async def _made(bus: Bus, count: int) -> bool:
    return len(await documents(bus, "pods")) == count


async def documents(bus: Bus, resource: str) -> list[Document]:
    """Those of a kind that live."""
    found = await stream_reading.listing(bus, streams.CLUSTER.name, (subjects.objects(resource),))
    return [stored.document(one) for one in found if not one.deleted]


def _two(told: Told) -> list[K8sEvent]:
    found = told.of("ScalingReplicaSet")
    return found if len(found) == 2 else []
