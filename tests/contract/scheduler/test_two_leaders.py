"""While the queue changes its leader two may answer: the highest epoch counts, and only what its leader was
told is settled."""

import pytest_asyncio

from podyard.bus import Bus
from tests.contract.scheduler.stage import Stage, pod
from tests.support.buses import ConnectBus
from tests.support.waiting import eventually


@pytest_asyncio.fixture
async def stage(bus: Bus, connect_bus: ConnectBus) -> Stage:
    return Stage(await connect_bus("scheduler", request_timeout_s=0.5), bus)


async def test_an_answer_of_a_lower_epoch_than_is_known_counts_as_none(stage: Stage) -> None:
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("p"))
    async with stage.running():
        stage.queue.epoch = 5
        await eventually("the highest epoch is named", lambda: any(request.epoch == 5 for request in stage.queue.pops))
        stage.queue.epoch = 4
        await stage.queue.offer("p")
        await eventually(
            "asked again", lambda: [one.pop_id for one in stage.queue.pops].count(stage.queue.pops[-1].pop_id) > 2
        )
        assert not stage.binder.requests, "a leader that is none any more has handed the pod out"
        stage.queue.epoch = 6
        await stage.queue.offer("p")
        await eventually("bound", lambda: stage.cluster.bound)
    assert {decision.attempt for decision in stage.binder.decisions()} == {"6-2"}


async def test_results_are_told_again_until_a_leader_of_the_highest_epoch_takes_them(stage: Stage) -> None:
    await stage.cluster.nodes(1)
    await stage.cluster.pods(pod("p"))
    stage.queue.epoch, stage.queue.done_epoch = 5, 4
    async with stage.running():
        await stage.queue.offer("p")
        await eventually("told again", lambda: len(stage.queue.of("p")) >= 3)
        stage.queue.done_epoch = None
        count = stage.queue.done_requests
        await eventually("told", lambda: stage.queue.done_requests > count)
        told, pops = stage.queue.done_requests, len(stage.queue.pops)
        await eventually("more pops", lambda: len(stage.queue.pops) > pops + 3)
    assert stage.queue.done_requests == told
    assert len({result.attempt for result in stage.queue.results}) == 1


async def test_heartbeats_name_the_last_pop_that_was_answered_also_one_without_pods(stage: Stage) -> None:
    """Another leader may have given pods in an answer to it that came too late: they go back when a later
    heartbeat names it."""
    async with stage.running():
        await eventually("a heartbeat", lambda: stage.queue.beats and stage.queue.beats[-1].last_pop)
        assert stage.queue.beats[-1].last_pop in {request.pop_id for request in stage.queue.pops}
