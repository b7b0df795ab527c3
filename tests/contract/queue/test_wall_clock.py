"""Somebody sets the wall clock by an hour: a pod that failed is back after its backoff, not after an hour,
nor at once."""

import anyio
import pytest

from podyard.bus import Bus
from tests.contract.queue.conftest import StartQueue
from tests.contract.queue.stack import Cluster, Scheduler
from tests.support.wall import Wall


@pytest.mark.parametrize("set_by_s", [-3600.0, 3600.0])
async def test_a_backoff_takes_its_time_whoever_sets_the_wall_clock(
    cluster: Cluster, bus: Bus, start_queue: StartQueue, set_by_s: float
) -> None:
    wall, scheduler = Wall(), Scheduler(bus)
    await start_queue(clock=wall.clock())
    await scheduler.led()
    await cluster.pod("a")
    await scheduler.done(await scheduler.take(), "error")
    began = anyio.current_time()
    wall.ahead_s = set_by_s
    assert (await scheduler.take(wait_s=10.0)).name == "a"
    assert 0.8 < anyio.current_time() - began < 9.0
