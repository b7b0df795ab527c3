"""Somebody begins atomic batches and does not end them, as agents that are cut off do: what that costs the
binder, on a real server."""

import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import nats
from nats.aio.client import Client

from podyard.binder.term import COMMITS_CHECK
from podyard.bus import Bus, embedded_server, ensure_streams
from tests.contract.binder.stage import Cluster, leading_term
from tests.support.buses import connected
from tests.support.waiting import eventually

USUAL: Final = 50
"""Open batches of a stream that nats-server allows unless told."""


class Agent:
    """Begins batches, of one message of two each."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._numbers = itertools.count(1)

    async def begin(self, batches: int) -> list[bytes]:
        """Begin so many; returns what the server says against it."""
        refused: list[bytes] = []
        for number in itertools.islice(self._numbers, batches):
            headers = {"Nats-Batch-Id": f"open-{number}", "Nats-Batch-Sequence": "1"}
            answer = await self._client.request(f"cluster.podstatus.n1.d.p.u{number}", b"{}", 10, headers=headers)
            refused += [answer.data] if answer.data else []
        return refused

    async def end(self, number: int) -> None:
        """Commit one of them."""
        headers = {"Nats-Batch-Id": f"open-{number}", "Nats-Batch-Sequence": "2", "Nats-Batch-Commit": "1"}
        await self._client.request(f"cluster.podstatus.n1.d.p.w{number}", b"{}", 10, headers=headers)


@asynccontextmanager
async def place(folder: Path, settings: dict[str, Any]) -> AsyncIterator[tuple[Bus, Agent]]:
    """A server with these settings, all streams, and an agent."""
    async with embedded_server(folder, settings=settings) as server, connected(server, "binder") as bus:
        await ensure_streams(bus)
        client = await nats.connect(server.url)  # pyright: ignore[reportUnknownMemberType] - untyped
        try:
            yield bus, Agent(client)
        finally:
            await client.close()


async def test_more_batches_than_nats_allows_by_itself_may_be_open(tmp_path: Path) -> None:
    async with place(tmp_path, {}) as (bus, agent):
        cluster = Cluster(bus)
        async with leading_term(bus, "binder-a"):
            await cluster.node("n1")
            await cluster.pods("a")
            assert await agent.begin(4 * USUAL) == []
            began = time.monotonic()
            assert await cluster.bind(cluster.decide("a")) == ["bound"]
            assert time.monotonic() - began < 5.0, "as ever, and not when the others are forgotten"


async def test_with_none_left_the_binder_says_so_and_goes_on_with_the_first_that_is_free(tmp_path: Path) -> None:
    few = {"jetstream": {"limits": {"batch": {"max_inflight_per_stream": 3, "max_inflight_total": 10}}}}
    async with place(tmp_path, few) as (bus, agent):
        cluster = Cluster(bus)
        async with leading_term(bus, "binder-a") as term:
            await cluster.node("n1")
            await cluster.pods("a")
            assert await agent.begin(3) == []
            health, moves = term._service.health, term._instruments.fence_moves._value

            async def ask() -> None:
                assert await cluster.bind(cluster.decide("a")) == ["bound"]

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await eventually("the binder says so", lambda: COMMITS_CHECK in health.checks)
                reason = health.checks[COMMITS_CHECK].reason
                assert "others have begun as many atomic batches as the server allows" in reason
                await anyio.sleep(1.0)
                assert moves.get() < 12, "a move of the fence for each try, each later than the one before"
                await agent.end(1)
            await eventually("the binder is content", lambda: health.checks[COMMITS_CHECK].ok)
