"""NATS fails under a whole stack at work: services wait, go on, and nothing is bound twice, overcommitted or
lost (the checker)."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from podyard.proto import streams, subjects
from tests.faults import servers
from tests.faults.load import Load
from tests.faults.servers import Harm, Servers, killed, paused, stopped
from tests.faults.stage import Stage, staged
from tests.support.waiting import eventually

whole = pytest.mark.whole_faults
ONE_OF_EACH: Final = "api,queue,scheduler,binder,node_agent,workloads"
STREAM: Final = streams.CLUSTER.name
FAILOVER_TTL_S: Final = streams.LEASE_TTL_S
"""Leases must outlive an election of NATS."""

GOES_ON_S: Final = 15.0
BINDS_S: Final = 30.0
"""A service whose own server hangs sees that after 6 s, and settles what it sent: on top of the election."""

WITHIN_S: Final = 60.0
MARKERS_S: Final = 20
"""The least there may be."""
PODS: Final = 12
OVER_S: Final = 2.0
"""A wave of pods; the last but two is deleted, so that there is always room for the next."""

MORE: Final = 4
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

    async def coming_and_going() -> None:
        while True:
            await load.run(pods=len(load.made) + PODS, over_s=OVER_S)
            if len(load.made) > 2 * PODS:
                await stage.people.delete(subjects.PODS, load.made[-3 * PODS : -2 * PODS])

    async with asyncio.TaskGroup() as tasks:
        feeding = tasks.create_task(coming_and_going())
        for fault in faults:
            await stage.bound(MORE, WITHIN_S)
            await fault()
        feeding.cancel()


async def test_the_only_server_is_killed_amid_commits(stage: Stage) -> None:
    server = stage.server
    assert server is not None
    starts = [process.starts for process in stage.processes.values()]

    async def kill() -> None:
        stage.tell("the server is killed")
        await server.kill()
        await server.start()
        stage.tell("the server runs again")

    async with stage.trial("server-killed") as load:
        await under_load(stage, load, [kill, kill])
    assert [process.starts for process in stage.processes.values()] == starts


@whole
@pytest.mark.timeout(300)
async def test_the_only_server_is_killed_long_after_pods_were_deleted(tmp_path: Path) -> None:
    """Their markers have expired: the server finds the pods again, and their bindings. Nobody believes it."""
    settings = {"PODYARD_RETENTION_MARKERS_S": str(MARKERS_S)}
    async with staged(tmp_path, ONE_OF_EACH, environment=settings) as stage:
        server = stage.server
        assert server is not None
        async with stage.trial("killed-late") as load:
            await load.run(pods=2 * PODS, over_s=OVER_S)
            gone = load.made[:PODS]
            await stage.people.delete(subjects.PODS, gone)
            old = [subjects.object_(subjects.PODS, "default", name) for name in gone]
            for subject in old:
                await eventually(f"{subject} has gone", lambda subject=subject: is_gone(stage, subject), WITHIN_S)
            await server.kill()
            await server.start()
            there = [await stage.bus.get(STREAM, subject) for subject in old]
            assert any(found is not None for found in there), "they are back"
            await load.run(pods=3 * PODS, over_s=OVER_S)
            for subject in old:
                await eventually(f"{subject} is deleted", lambda subject=subject: is_deleted(stage, subject), WITHIN_S)


async def is_gone(stage: Stage, subject: str) -> bool:
    return await stage.bus.get(STREAM, subject) is None


async def is_deleted(stage: Stage, subject: str) -> bool:
    found = await stage.bus.get(STREAM, subject)
    return found is None or found.deleted


class Gap(NamedTuple):
    """The longest times, in seconds, in which nothing was stored, and in which no pod was bound."""

    stored_s: float
    bound_s: float


async def gap_until_bound(stage: Stage, more: int) -> Gap:
    """What there was of them until so many more pods are bound."""
    checker = stage.recorder.checker
    stored_at = bound_at = time.monotonic()
    bound, goal, gap = checker.bound, checker.bound + more, Gap(0.0, 0.0)
    async with asyncio.timeout(WITHIN_S):
        while checker.bound < goal:
            await stage.recorder.changed()
            now = time.monotonic()
            gap, stored_at = gap._replace(stored_s=max(gap.stored_s, now - stored_at)), now
            if checker.bound > bound:
                gap, bound_at, bound = gap._replace(bound_s=max(gap.bound_s, now - bound_at)), now, checker.bound
    return gap


@whole
@pytest.mark.timeout(400)
async def test_leaders_of_the_stream_are_killed_paused_and_restarted(tmp_path: Path) -> None:
    """Three servers. A server that is away takes neither writing nor anybody's view with it."""
    async with servers.three_servers(tmp_path / "nats") as nats, stack(nats, tmp_path) as stage:
        gaps: list[Gap] = []

        async def harm(how: Harm) -> None:
            name = await nats.leader(stage.bus, STREAM)
            stage.tell(f"the leader {name} is {how.__name__}")
            undo = await how(nats[name])
            gaps.append(await gap_until_bound(stage, MORE))
            stage.tell(f"{gaps[-1].stored_s:.1f} s without anything stored, {gaps[-1].bound_s:.1f} s without a binding")
            await undo()
            await nats.healthy(name)

        async with stage.trial("leaders-harmed") as load:
            await under_load(stage, load, [partial(harm, how) for how in (killed, paused, stopped)])
        print(
            "; ".join(f"nothing stored for {gap.stored_s:.1f} s, nothing bound for {gap.bound_s:.1f} s" for gap in gaps)
        )
        assert max(gap.stored_s for gap in gaps) < GOES_ON_S
        assert max(gap.bound_s for gap in gaps) < BINDS_S
