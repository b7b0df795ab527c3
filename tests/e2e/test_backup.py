"""A lab at work is backed up, everything is lost, and another lab goes on from the files."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import pytest

from podyard.bus import BusSettings, connect, embedded_server
from podyard.bus.restore import SKIPPED
from tests.e2e import ledger
from tests.e2e.stage import WITHIN_S, Stand, cli, node, stand

NODES: Final = [node(f"node-{number}", cpu="64", pods=500) for number in range(3)]
BEFORE: Final = 30
"""Pods that run before the backup is taken."""


@asynccontextmanager
async def pods_all_the_time(here: Stand) -> AsyncGenerator[list[str]]:
    """People make pods while the block runs; the names of those that the api has acknowledged."""
    made: list[str] = []

    async def people() -> None:
        while True:
            batch = [f"pod-{len(made) + number}" for number in range(3)]
            await here.do.apply([here.pod(name, cpu="10m") for name in batch], "the test")
            made.extend(batch)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(people)
        yield made
        tasks.cancel_scope.cancel()


@pytest.mark.timeout(180)
async def test_a_lab_that_lost_everything_goes_on_from_its_backup(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    async with stand(tmp_path / "lost") as here:
        await here.join(*NODES)
        async with pods_all_the_time(here) as made:
            await here.seen.until("pods that run", lambda: sum(map(here.runs, made)) >= BEFORE, WITHIN_S)
            acknowledged, ran = [*made], [name for name in made if here.runs(name)]
            done = await here.cli("backup", str(kept), "-o", "json")
            assert (done.code, done.err) == (0, "")
            refused = await here.cli("restore", str(kept))
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith("error: the server holds a cluster: CLUSTER up to ")
        assert len(made) > len(acknowledged), "nobody wrote while the backup was taken"

    async with embedded_server(tmp_path / "found" / "nats") as server:
        told = await cli("restore", str(kept), "-o", "json", url=server.url)
        assert (told.code, told.err) == (0, "")
        async with connect(BusSettings(servers=(server.url,), name="test")) as bus:
            before = await ledger.read_back(bus)
    last = {one["name"]: one["last"] for one in json.loads(done.out)["streams"]}
    restored = {one["name"]: one for one in json.loads(told.out)}
    assert restored["CLUSTER"]["goes_on_at"] == last["CLUSTER"] + SKIPPED + 1
    assert len(before.live) >= BEFORE

    async with stand(tmp_path / "found") as here:
        await here.seen.until("all that was acknowledged", lambda: all(map(here.runs, acknowledged)), WITHIN_S)
        await here.do.apply([here.pod("new")], "the test")
        await here.running("new")
        after = await ledger.read_back(here.bus)
        ledger.check_commits(after, here.seen.view.nodes)
        kept_nodes = {uid: pod.node for uid, pod in before.live.items()}
        assert {uid: pod.node for uid, pod in after.live.items() if uid in kept_nodes} == kept_nodes
        assert {here.bound_to(name) for name in ran} <= {one["metadata"]["name"] for one in NODES}
