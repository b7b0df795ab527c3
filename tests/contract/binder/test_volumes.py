"""Volumes: one for two pods, one that somebody else takes, and waits that a successor goes on with."""

import anyio
import msgspec
import pytest

from podyard.proto import subjects
from podyard.proto.placement import VolumeChoice
from tests.contract.binder.stage import Cluster, FaultyBus, leading_term
from tests.e2e.provisioner import SELECTED, Provisioner
from tests.support import objects
from tests.support.waiting import eventually
from tests.unit.plugins.volume_binding.test_promises import MADE, STATIC, claim, volume


@pytest.fixture
async def cluster(bus):
    """A node, a local volume, and pods p, q and made, each with a claim of its name."""
    cluster = Cluster(bus)
    await cluster.node()
    for manifest in (STATIC, MADE):
        await cluster.put("storageclasses", manifest)
    await cluster.put("persistentvolumes", volume("disk"))
    for name, of in (("p", "static"), ("q", "static"), ("made", "made")):
        await cluster.put("persistentvolumeclaims", claim(name, of))
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        await cluster.put("pods", objects.pod(name, volumes=volumes))
    return cluster


def wants(cluster, name):
    return msgspec.structs.replace(cluster.decide(name), volumes=(VolumeChoice(claim=name, volume="disk"),))


async def test_of_two_pods_that_race_for_one_volume_one_wins(cluster, connect_bus):
    answers = {}

    async def ask(name, session):
        (answers[name],) = (await cluster.ask(wants(cluster, name), session=session)).answers

    async with leading_term(await connect_bus("binder"), "binder-a"), anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "p", "s1")
        tasks.start_soon(ask, "q", "s2")
    results = {name: (answer.result, answer.cause) for name, answer in answers.items()}
    winner = next(name for name, result in results.items() if result == ("bound", ""))
    assert sorted(results.values()) == [("bound", ""), ("conflict", "VolumeBinding")]
    taken = await cluster.document("persistentvolumes", "disk", "")
    assert taken["spec"]["claimRef"]["name"] == winner
    bound = [name for name in ("p", "q") if await cluster.placement(name) is not None]
    assert bound == [winner]


async def test_a_volume_that_somebody_takes_at_the_same_moment_leaves_the_pod_unbound(cluster, connect_bus):
    bus = FaultyBus(await connect_bus("binder"))
    async with leading_term(bus, "binder-a"), anyio.create_task_group() as tasks:
        bus.faults.append("hold")
        answers = []

        async def ask():
            answers.extend((await cluster.ask(wants(cluster, "p"))).answers)

        tasks.start_soon(ask)
        await bus.held.wait()
        reference = {"namespace": "default", "name": "other", "uid": "uid-other"}
        await cluster.put("persistentvolumes", volume("disk", claim=reference))
        bus.resume()
    assert [answer.result for answer in answers] == ["conflict"]
    assert await cluster.placement("p") is None
    assert "volumeName" not in (await cluster.document("persistentvolumeclaims", "p"))["spec"]


async def test_a_successor_goes_on_with_a_wait_and_the_first_one_writes_nothing_more(cluster, connect_bus):
    decision = cluster.decide("made")
    slow = FaultyBus(await connect_bus("first"))
    slow.late_s = 0.05  # both are asked, the deposed one too as long as it has nothing to write
    async with leading_term(slow, "binder-a") as first:
        assert await cluster.bind(decision) == ["waiting"]
        metrics = first._service.metrics  # as /metrics tells them

        def counted():
            return metrics.get_sample_value("podyard_binder_waiting_decisions")

        await eventually("the wait is counted", lambda: counted() == 1)
        marked = await cluster.document("persistentvolumeclaims", "made")
        assert marked["metadata"]["annotations"] == {SELECTED: "n1"}
        before = await cluster.last(subjects.object_("persistentvolumeclaims", "default", "made"))
        async with leading_term(await connect_bus("second"), "binder-b", lease_epoch=2):

            async def waits_there():
                reply = await cluster.ask(decision)
                fence = await cluster.fence()
                return (
                    reply.epoch == fence.epoch and reply.answers[0].result == "waiting" and fence.holder == "binder-b"
                )

            assert await eventually("the successor holds it", waits_there)
            after = await cluster.last(subjects.object_("persistentvolumeclaims", "default", "made"))
            assert after.sequence == before.sequence
            await Provisioner(cluster.bus).make("made")
            await eventually("its binding", lambda: cluster.placement("made"))
            assert counted() == 0, "it was deposed"
            (record,) = await cluster.commits()
            assert record.epoch == (await cluster.fence()).epoch
