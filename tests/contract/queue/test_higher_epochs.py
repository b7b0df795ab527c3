"""The highest epoch counts: a leader that learns of a higher one than its own steps down, and whoever leads
next is above it."""

import pytest

from podyard.bus import Bus, TemporaryError
from podyard.proto.message import PodRef
from podyard.proto.queue_api import DoneRequest, PopRequest, PreemptingRequest, SessionHeartbeat
from tests.contract.queue.conftest import StartQueue
from tests.contract.queue.stack import DIGESTS, Cluster, Scheduler
from tests.support.waiting import eventually

KNOWN = 50


@pytest.mark.parametrize(
    ("verb", "request_"),
    [
        pytest.param("pop", PopRequest(session="s1", pop_id="p", digests=DIGESTS, epoch=KNOWN), id="pop"),
        pytest.param("done", DoneRequest(session="s1", results=(), epoch=KNOWN), id="done"),
        pytest.param("heartbeat", SessionHeartbeat(session="s1", epoch=KNOWN), id="heartbeat"),
        pytest.param(
            "preempting",
            PreemptingRequest(
                session="s1", pod=PodRef(namespace="default", name="a", uid="uid-a"), running=True, epoch=KNOWN
            ),
            id="preempting",
        ),
    ],
)
async def test_a_leader_that_is_outranked_answers_nothing_more_and_the_next_term_is_above(
    cluster: Cluster, scheduler: Scheduler, verb: str, request_: PopRequest
) -> None:
    await cluster.pod("a")
    taken = await scheduler.take()
    with pytest.raises(TemporaryError):
        await scheduler.ask(verb, request_)

    async def led_above() -> bool:
        return (await scheduler.led()).epoch > KNOWN

    await eventually("a term above what the scheduler knows", led_above)
    again = await scheduler.take()
    assert again.uid == taken.uid
    assert again.attempt == f"{KNOWN + 1}-1"


async def test_an_epoch_that_is_not_higher_changes_nothing(cluster: Cluster, scheduler: Scheduler) -> None:
    await cluster.pod("a")
    reply = await scheduler.pop()
    answer = await scheduler.ask("heartbeat", SessionHeartbeat(session="s1", epoch=reply.epoch))
    assert (answer.epoch, answer.refused) == (reply.epoch, "")
    assert (await scheduler.list()).epoch == reply.epoch


async def test_a_standby_that_follows_learns_it_too(bus: Bus, start_queue: StartQueue) -> None:
    await start_queue("q1")
    player = Scheduler(bus)
    await player.led()
    await start_queue("q2")
    beat = SessionHeartbeat(session="s1", epoch=KNOWN)

    async def accepted() -> bool:
        try:
            return (await player.ask("heartbeat", beat)).epoch > KNOWN
        except TemporaryError:
            return False

    await eventually("a leader, whichever it is, above what the scheduler knows", accepted)
