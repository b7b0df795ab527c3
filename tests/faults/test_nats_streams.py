"""A stream is deleted and made again while services work: they go on with the new one, and take nothing of
the old one for true."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from podyard.bus import ensure_streams
from podyard.proto import streams
from podyard.shell.snapshot import snapshot
from tests.e2e import ledger
from tests.e2e.stage import jetstream
from tests.faults import load
from tests.faults.process import Process, http
from tests.faults.stage import Stage, staged
from tests.support import objects
from tests.support.waiting import eventually

whole = pytest.mark.whole_faults
SERVICES: Final = "api,queue,scheduler=2,binder=2,node_agent,workloads"
WITHIN_S: Final = 60.0
NOTICED_WITHIN_S: Final = 10.0
"""A heartbeat that is missing for 1.5 s, a question to the server, and a busy machine."""

MADE_AGAIN: Final = ": the stream was made again"
BEHIND: Final = 6
"""Pods bound while a stream is missing that no binding needs."""


async def make_again(stage: Stage, stream: str) -> None:
    stage.tell(f"{stream} is made again")
    await ensure_streams(stage.bus)


async def delete(stage: Stage, stream: str) -> None:
    stage.tell(f"{stream} is deleted")
    await jetstream(stage.bus, f"STREAM.DELETE.{stream}")


@whole
@pytest.mark.timeout(240)
async def test_records_and_leases_are_made_again_while_services_work(tmp_path: Path) -> None:
    async with staged(tmp_path, SERVICES) as stage, stage.trial("streams-again") as made, asyncio.TaskGroup() as tasks:
        tasks.create_task(made.run(pods=140, over_s=14))
        for stream in (streams.DECISIONS.name, streams.REQUEUES.name):
            await stage.bound(BEHIND)
            await delete(stage, stream)
            await stage.bound(BEHIND)
            await make_again(stage, stream)
        leader = await stage.leading("binder")
        await delete(stage, streams.LEASES.name)
        await without_lease(stage.process(leader))
        await make_again(stage, streams.LEASES.name)
        stage.leaders.now.clear()
        await stage.leading("binder")
        await stage.leading("queue")
        await stage.bound(BEHIND, WITHIN_S)


@whole
@pytest.mark.timeout(240)
async def test_nothing_of_a_cluster_that_was_deleted_is_taken_for_true(tmp_path: Path) -> None:
    """The same nodes full of other pods of the same names: that all fit says that the old ones take no room
    any more."""
    async with staged(tmp_path, SERVICES) as stage:
        before = await filled(stage)
        for _ in range(2):
            binder = await stage.leading("binder")
            readers = [one for one in stage.processes.values() if one.service != "binder" or one.instance == binder]
            told = [times_noticed(process) for process in readers]
            await delete(stage, streams.CLUSTER.name)
            await make_again(stage, streams.CLUSTER.name)
            for process, times in zip(readers, told, strict=True):
                await noticed(process, times)
            after = await filled(stage)
            assert not after & before, "a uid of the old stream is bound"
            found = await ledger.read_back(stage.bus)
            ledger.check_commits(found, (await snapshot(stage.bus)).nodes)
            assert set(found.placements) == after
            before = after
        for process in stage.processes.values():
            await process.ready()
        complaints = [text for process in stage.processes.values() for text in process.complaints()]
        assert not complaints, "\n".join(complaints)


async def without_lease(process: Process) -> None:
    """Wait until the service that led says that nobody can lead: its lease has ended, and it can get no
    other."""

    async def says_so() -> bool:
        return b"[-]lease" in await http(process.port, "/readyz")

    await eventually("a leader without a lease", says_so, WITHIN_S)


async def filled(stage: Stage) -> set[str]:
    """Nodes, each with a pod that takes all of it, bound; the pods' uids.

    A service that has noticed that the stream is another one still shows the old one until it has listed: to
    the api nodes that were there before are unchanged, and it writes none.
    """

    async def stored() -> bool:
        await stage.people.apply([load.node(index) for index in range(load.NODES)])
        return len((await snapshot(stage.bus)).nodes) == load.NODES

    await eventually(f"{load.NODES} nodes stored", stored, WITHIN_S)
    await stage.people.apply([filling(index) for index in range(load.NODES)])
    return set(await bound(stage, load.NODES))


async def noticed(process: Process, times: int) -> None:
    """Wait until a service has seen once more that the stream is another one. Until then its view is the old
    one's."""
    await eventually(f"{process.instance} noticed", lambda: times_noticed(process) > times or None, NOTICED_WITHIN_S)


def times_noticed(process: Process) -> int:
    """How often a service has listed another stream."""
    return process.log.read_text(encoding="utf-8").count(MADE_AGAIN)


def filling(index: int) -> dict[str, Any]:
    """A pod that takes all of one node."""
    cpu = str(load.node(index)["status"]["allocatable"]["cpu"])
    there = {objects.HOSTNAME: f"n{index}"}
    return objects.written(objects.pod(f"filling-{index}", cpu=cpu, labels={"app": "filling"}, nodeSelector=there))


async def bound(stage: Stage, number: int) -> list[str]:
    """Wait until so many pods are bound; their uids."""

    async def found() -> list[str] | None:
        view = await snapshot(stage.bus)
        uids = [pod.uid for pod in view.pods.values() if pod.bound is not None]
        return uids if len(uids) == number else None

    return await eventually(f"{number} pods bound", found, WITHIN_S)
