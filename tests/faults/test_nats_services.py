"""NATS fails under a whole stack at work: services wait, go on, and nothing is bound twice, overcommitted or lost (the checker)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from podyard.proto import streams
from tests.faults import servers
from tests.faults.load import Load
from tests.faults.servers import Servers
from tests.faults.stage import Stage, staged

whole = pytest.mark.whole_faults
ONE_OF_EACH: Final = "api,queue,scheduler,binder,node_agent,workloads"
STREAM: Final = streams.CLUSTER.name
FAILOVER_TTL_S: Final = streams.LEASE_TTL_S
"""Leases must outlive an election of NATS."""

MORE: Final = 15
"""Pods bound between two faults."""


@asynccontextmanager
async def stack(nats: Servers, directory: Path, services: str = ONE_OF_EACH) -> AsyncGenerator[Stage]:
    """Services on these servers."""
    number = len(nats.by_name)
    ports = [server.port for server in nats.by_name.values()]
    ttl_s = FAILOVER_TTL_S if number > 1 else 3
    async with staged(directory, services, servers=ports, replicas=number, lease_ttl_s=ttl_s) as stage:
        yield stage


async def under_load(stage: Stage, load: Load, faults: list[Callable[[], Awaitable[None]]]) -> None:
    """Pods come and go while one fault follows the other, each amid bindings."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(load.run(pods=40 * len(faults), over_s=4.0 * len(faults)))
        for fault in faults:
            await stage.bound(MORE, 60)
            await fault()


async def test_the_only_server_is_killed_amid_commits(tmp_path: Path) -> None:
    async with servers.one_server(tmp_path / "nats") as nats, stack(nats, tmp_path) as stage:
        [server] = nats.by_name.values()
        starts = [process.starts for process in stage.processes.values()]

        async def kill() -> None:
            stage.tell("the server is killed")
            await server.kill()
            await server.start()
            stage.tell("the server runs again")

        async with stage.trial("server-killed") as load:
            await under_load(stage, load, [kill, kill])
        assert [process.starts for process in stage.processes.values()] == starts
