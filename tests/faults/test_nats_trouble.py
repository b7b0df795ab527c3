"""The disk below NATS is full, or does not write, under a whole stack at work: services say so, stay up, and
go on afterwards."""

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

import pytest

from podyard.cli.lab.child import parse_ready
from tests.faults import disks, servers
from tests.faults.process import http
from tests.faults.stage import Stage, staged
from tests.support.waiting import eventually

whole = pytest.mark.whole_faults
SERVICES: Final = "api,queue,scheduler,binder,node_agent,workloads"
WRITERS: Final = ("binder", "node_agent", "workloads", "queue")
"""Those that have something to write whenever NATS takes nothing: at least their leases."""

WITHIN_S: Final = 60.0
MORE: Final = 4
DISK_MEBIBYTES: Final = 16


@whole
@pytest.mark.timeout(300)
@pytest.mark.parametrize("trouble", ["the disk is full", "fsync fails"])
async def test_services_say_that_nothing_can_be_written_and_go_on_afterwards(tmp_path: Path, trouble: str) -> None:
    async with AsyncExitStack() as stack:
        store = stack.enter_context(disks.small_disk(tmp_path / "disk", mebibytes=DISK_MEBIBYTES))
        log = {"log_file": str(tmp_path / "nats-server.log")}
        nats = await stack.enter_async_context(
            servers.one_server(store, settings=log, jetstream={"sync_interval": "always"})
        )
        [server] = nats.by_name.values()
        stage = await stack.enter_async_context(staged(tmp_path, SERVICES, servers=[server.port]))
        starts = {name: process.starts for name, process in stage.processes.items()}
        async with stage.trial("no-writing", deaf=True) as load, asyncio.TaskGroup() as tasks:
            tasks.create_task(load.run(pods=60, over_s=6))
            await stage.bound(MORE, WITHIN_S)
            stage.tell(trouble)
            if trouble == "the disk is full":
                taken = disks.fill(store)
                await said_so(stage, "binder")
                taken.unlink()
            else:
                async with disks.failing_fsync(server):
                    await said_so(stage, "binder")
            assert all(process.alive for process in stage.processes.values())
            stage.tell("the server is started again")
            await server.kill()
            await server.start()
            await stage.bound(MORE, WITHIN_S)
        assert {name: process.starts for name, process in stage.processes.items()} == starts


async def said_so(stage: Stage, instance: str) -> str:
    """Wait until a service says on /readyz that it is not; its reason."""
    [process] = [one for one in stage.processes.values() if one.service == instance]

    async def told() -> str | None:
        with suppress(OSError, TimeoutError):
            state, reason = parse_ready(await http(process.port, "/readyz"))
            return reason if state == "not ready" else None
        return None

    reason = await eventually(f"{instance} says that it is not ready", told, WITHIN_S)
    stage.tell(f"{instance}: {reason}")
    print(f"{instance}: {reason}")
    return reason
