"""Somebody sets the wall clock by an hour: decisions are answered as before, and what comes back in time
comes back in time."""

import anyio
import pytest

from podyard.binder.core import binder
from podyard.binder.service import SERVICE
from podyard.bus import Bus
from podyard.shell import leading
from tests.contract.binder.stage import Cluster
from tests.support.buses import ConnectBus
from tests.support.services import make_service, running
from tests.support.waiting import eventually
from tests.support.wall import Wall

ANSWERED_S = 5.0
"""Far more than the time for which decisions gather, on a busy machine, and far less than an hour."""


@pytest.mark.parametrize("set_by_s", [-3600.0, 3600.0])
async def test_decisions_are_answered_whoever_sets_the_wall_clock(
    bus: Bus, connect_bus: ConnectBus, monkeypatch: pytest.MonkeyPatch, set_by_s: float
) -> None:
    monkeypatch.setattr(binder, "GATHER_S", 0.3)
    cluster, wall = Cluster(bus), Wall()
    await cluster.node()
    await cluster.pods("a", "b")
    service = make_service(SERVICE, await connect_bus("binder"), clock=wall.clock())
    async with running(service):
        await eventually(
            "it leads",
            lambda: service.health.ready and service.health.checks[leading.CHECK].reason != leading.STANDS_BY,
        )
        assert await cluster.bind(cluster.decide("a")) == ["bound"]
        with anyio.fail_after(ANSWERED_S):
            async with anyio.create_task_group() as tasks:

                async def set_while_it_gathers() -> None:
                    await anyio.sleep(0.1)
                    wall.ahead_s = set_by_s

                tasks.start_soon(set_while_it_gathers)
                assert await cluster.bind(cluster.decide("b")) == ["bound"]
