"""Fixtures: a running queue, a cluster to write into, a scheduler to play."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest_asyncio

from podyard.bus import Bus
from podyard.queue.service import SERVICE
from podyard.queue.settings import QueueSettings
from tests.contract.queue.stack import Cluster, Scheduler
from tests.support.services import make_service, running

StartQueue = Callable[..., Awaitable[None]]


@pytest_asyncio.fixture
async def start_queue(connect_bus: Any, bus: Bus, hold: Any) -> StartQueue:
    """`await start_queue("q1", settings, spans=...)`: one more queue process' worth; ends with the test."""

    async def start(instance: str = "q1", settings: QueueSettings | None = None, **more: Any) -> None:
        connection = await connect_bus(instance)
        await hold(running(make_service(SERVICE, connection, settings, instance=instance, **more)))

    return start


@pytest_asyncio.fixture
async def cluster(bus: Bus) -> Cluster:
    return Cluster(bus)


@pytest_asyncio.fixture
async def scheduler(bus: Bus, start_queue: StartQueue) -> Scheduler:
    """A scheduler's session with a queue that leads."""
    await start_queue()
    player = Scheduler(bus)
    await player.led()
    return player
