"""Volumes on a real server: one for two pods, one that somebody else takes at the same moment, and waits that a successor goes on with."""

import anyio
import msgspec
import pytest

from podyard.bus import Outgoing
from podyard.proto import codec, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.placement import VolumeChoice
from tests.contract.binder.stage import Cluster, FaultyBus, eventually, reigning
from tests.e2e.provisioner import SELECTED, Provisioner
from tests.unit.plugins.volume_binding.test_promises import MADE, STATIC, claim, volume


@pytest.fixture
async def cluster(bus):
    """A node, a local volume, and pods p, q and made, each with a claim of its name."""
    cluster = Cluster(bus)
    await cluster.node()
    for manifest in (STATIC, MADE):
        await put(cluster, "storageclasses", "", manifest)
    await put(cluster, "persistentvolumes", "", volume("disk"))
    for name, of in (("p", "static"), ("q", "static"), ("made", "made")):
        await put(cluster, "persistentvolumeclaims", "default", claim(name, of))
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        await put(cluster, "pods", "default", {"metadata": metadata, "spec": {"containers": [], "volumes": volumes}})
    return cluster


async def put(cluster, resource, namespace, document, expect=0):
    metadata = document["metadata"]
    event = ClusterEvent(
        resource=resource,
        namespace=namespace,
        name=metadata["name"],
        uid=metadata.get("uid", metadata["name"]),
        who="test",
        object=msgspec.Raw(msgspec.json.encode(document)),
    )
    subject = subjects.object_(resource, namespace, metadata["name"])
    cluster.position = (await cluster.bus.publish(Outgoing(subject, codec.encode(event), expect=expect))).sequence


async def stored(cluster, resource, namespace, name):
    found = await cluster.bus.get("CLUSTER", subjects.object_(resource, namespace, name))
    return msgspec.json.decode(codec.decode(ClusterEvent, found.payload).object)


def wants(cluster, name):
    return msgspec.structs.replace(cluster.decide(name), volumes=(VolumeChoice(claim=name, volume="disk"),))


async def test_of_two_pods_that_race_for_one_volume_one_wins(cluster, connect_bus):
    answers = {}

    async def ask(name, session):
        (answers[name],) = (await cluster.ask(wants(cluster, name), session=session)).answers

    async with reigning(await connect_bus("binder"), "binder-a"), anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "p", "s1")
        tasks.start_soon(ask, "q", "s2")
    results = {name: (answer.result, answer.cause) for name, answer in answers.items()}
    winner = next(name for name, result in results.items() if result == ("bound", ""))
    assert sorted(results.values()) == [("bound", ""), ("conflict", "VolumeBinding")]
    taken = await stored(cluster, "persistentvolumes", "", "disk")
    assert taken["spec"]["claimRef"]["name"] == winner
    bound = [name for name in ("p", "q") if await cluster.placement(name) is not None]
    assert bound == [winner]


async def test_a_volume_that_somebody_takes_at_the_same_moment_leaves_the_pod_unbound(cluster, connect_bus):
    bus = FaultyBus(await connect_bus("binder"))
    async with reigning(bus, "binder-a"), anyio.create_task_group() as tasks:
        bus.faults.append("hold")
        answers = []

        async def ask():
            answers.extend((await cluster.ask(wants(cluster, "p"))).answers)

        tasks.start_soon(ask)
        await bus.held.wait()
        found = await cluster.bus.get("CLUSTER", subjects.object_("persistentvolumes", "", "disk"))
        reference = {"namespace": "default", "name": "other", "uid": "uid-other"}
        await put(cluster, "persistentvolumes", "", volume("disk", claim=reference), found.sequence)
        bus.resume()
    assert [answer.result for answer in answers] == ["conflict"]
    assert await cluster.placement("p") is None
    assert "volumeName" not in (await stored(cluster, "persistentvolumeclaims", "default", "p"))["spec"]


async def test_a_successor_goes_on_with_a_wait_and_the_first_one_writes_nothing_more(cluster, connect_bus):
    decision = cluster.decide("made")
    async with reigning(await connect_bus("first"), "binder-a") as first:
        assert await cluster.bind(decision) == ["waiting"]
        metrics = first._service.metrics  # as /metrics tells them

        async def counted():
            return metrics.get_sample_value("podyard_binder_held_decisions") == 1

        await eventually("the wait is counted", counted)
        marked = await stored(cluster, "persistentvolumeclaims", "default", "made")
        assert marked["metadata"]["annotations"] == {SELECTED: "n1"}
        before = await cluster.bus.get("CLUSTER", subjects.object_("persistentvolumeclaims", "default", "made"))
        async with reigning(await connect_bus("second"), "binder-b", lease_epoch=2):

            async def waits_there():
                reply = await cluster.ask(decision)
                fence = await cluster.fence()
                return (
                    reply.epoch == fence.epoch and reply.answers[0].result == "waiting" and fence.holder == "binder-b"
                )

            assert await eventually("the successor holds it", waits_there)
            after = await cluster.bus.get("CLUSTER", subjects.object_("persistentvolumeclaims", "default", "made"))
            assert after.sequence == before.sequence
            await Provisioner(cluster.bus).make("made")

            async def bound():
                return await cluster.placement("made")

            await eventually("its binding", bound)
            assert metrics.get_sample_value("podyard_binder_held_decisions") == 0, "it was deposed"
            (record,) = await cluster.commits()
            assert record.epoch == (await cluster.fence()).epoch
