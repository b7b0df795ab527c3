"""A standby takes over when the leader is killed, paused or cut off; the deposed one writes and says nothing.

On a real server: the leader is in a thread of its own, as it were elsewhere.
"""

from collections.abc import Iterator
from contextlib import suppress

import anyio
import pytest

from podyard.binder.service import SERVICE
from podyard.binder.settings import BinderSettings
from podyard.bus import Busy, RequestTimeout
from podyard.proto.binder_api import Decision
from tests.contract.binder.elsewhere import Elsewhere
from tests.contract.binder.stage import Cluster
from tests.support.services import make_service
from tests.support.waiting import eventually

LEASE_S = 2
A_WHILE_S = 1.0
"""How long somebody who must not answer gets to do so."""


@pytest.fixture
async def cluster(nats_bus) -> Cluster:
    cluster = Cluster(nats_bus)
    await cluster.node()
    await cluster.pods("a", "b", "c")
    return cluster


@pytest.fixture
def leader(nats_server) -> Iterator[Elsewhere]:
    leader = Elsewhere(nats_server.url, "binder-a", lease_ttl_s=LEASE_S)
    yield leader
    leader.end()


@pytest.mark.parametrize("how", ["killed", "paused", "cut off"])
async def test_a_standby_takes_over_from_a_leader_that_is(how: str, cluster: Cluster, connect_nats, leader: Elsewhere):
    leader.start()
    assert await cluster.bind(cluster.decide("a")) == ["bound"]
    first = await cluster.fence()
    assert first.holder == "binder-a"
    async with anyio.create_task_group() as tasks:
        standby = make_service(
            SERVICE, await connect_nats("binder-b"), BinderSettings(lease_ttl_s=LEASE_S), instance="binder-b"
        )
        tasks.start_soon(SERVICE.main, standby)
        match how:
            case "killed":
                leader.kill()
            case "paused":
                leader.pause()
            case _:
                leader.cut()
        asked = cluster.decide("b")
        tasks.start_soon(_is_never_answered, cluster, asked)

        async def taken_over() -> bool:
            return (await cluster.fence()).holder == "binder-b"

        await eventually("the standby holds the fence", taken_over)
        await _bound(cluster, cluster.decide("c"))
        leader.resume()

        async def knows() -> bool:
            return not leader.leads and leader.stands_by

        if how != "killed":
            await eventually("the old leader knows, and says, that it leads no more", knows)
        assert await cluster.placement("b") is None, "it was asked, and wrote nothing"
        epoch = await _bound(cluster, asked)  # sent again with the same attempt id
        second = await cluster.fence()
        assert epoch == second.epoch > first.epoch
        epochs = [record.epoch for record in await cluster.commits()]
        assert epochs == [first.epoch, second.epoch, second.epoch]
        await anyio.sleep(A_WHILE_S)
        tasks.cancel_scope.cancel()


async def _bound(cluster: Cluster, decision: Decision) -> int:
    """Ask until somebody answers that it is bound, as schedulers do: a dead or paused one may be given the
    question.

    :return: the epoch of who answered
    """

    async def answered() -> int:
        try:
            reply = await cluster.ask(decision, timeout_s=0.5)
        except (Busy, RequestTimeout):
            return 0
        assert [answer.result for answer in reply.answers] == ["bound"]
        return reply.epoch

    return await eventually(f"{decision.name} is bound", answered)


async def _is_never_answered(cluster: Cluster, asked: Decision) -> None:
    """The leader was asked before it knew that it leads no more; then it has the next one asked."""
    with suppress(Busy):
        reply = await cluster.ask(asked)
        raise AssertionError(f"who leads no more has answered: {reply}")
