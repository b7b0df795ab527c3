"""Back-pressure, not memory: ten times what can be taken at once is refused explicitly, or waits in NATS;
then all goes on.

Memory is PSS: what a process has of its own, and its share of what it shares.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

from podyard.binder.core.binder import MAX_UNJUDGED
from podyard.bus import Bus
from podyard.bus.errors import BusError
from podyard.cli.lab.lab import Lab
from podyard.plugins.defaults import default_profile
from podyard.proto import codec, streams, subjects
from podyard.proto.binder_api import BindReply, BindRequest, Decision
from tests.e2e import ledger
from tests.e2e.stage import node, stand
from tests.support import objects
from tests.support.objects import Document

SERVICES: Final = "api,queue,scheduler,binder"
MEBIBYTE: Final = 1 << 20
TIMES: Final = 10
PODS: Final = 5_000
"""Twenty pops, or as many commits, of 256: more than a scheduler asks for, and a binder holds, at once by
far."""

MOST_GROWTH: Final = 96 * MEBIBYTE
"""Of each process: some kilobytes a pod that is there, and what is in hand."""

MOST_REFUSING: Final = 48 * MEBIBYTE
"""Of a binder that holds `MAX_UNJUDGED` decisions and refuses nine times as many."""

ANSWERED_S: Final = 40.0
WITHIN_S: Final = 120.0
SAMPLE_S: Final = 0.2


class Peaks:
    """The most memory that each process had, above what it had at first."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._first = {name: process.memory_full_info().pss for name, process in self._processes.items()}
        self.growth: Counter[str] = Counter()

    async def sample(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            for name, process in self._processes.items():
                grown = process.memory_full_info().pss - self._first[name]
                self.growth[name] = max(self.growth[name], grown)
            await asyncio.sleep(SAMPLE_S)

    def __str__(self) -> str:
        return ", ".join(f"{name} +{grown / MEBIBYTE:.0f} MiB" for name, grown in self.growth.items())


@asynccontextmanager
async def measured(lab: Lab) -> AsyncGenerator[Peaks]:
    """Measure all services and the server while the block runs."""
    peaks = Peaks({"nats-server": lab.server.pid, **{child.instance: child.pid for child in lab.children}})
    sampling = asyncio.ensure_future(peaks.sample())
    try:
        yield peaks
    finally:
        sampling.cancel()
        with suppress(asyncio.CancelledError):
            await sampling


@pytest.mark.whole_faults
@pytest.mark.timeout(300)
async def test_a_flood_of_pods_while_all_readers_are_paused(tmp_path: Path) -> None:
    async with stand(tmp_path, SERVICES) as here:
        await here.do.apply([large_node(f"large-{index}") for index in range(2)], "room for all")
        async with measured(here.lab) as peaks:
            readers = [here.lab.child(service).pid for service in ("queue", "scheduler", "binder")]
            for pid in readers:
                os.kill(pid, signal.SIGSTOP)
            for first in range(0, PODS, 250):
                await here.do.apply([small_pod(f"small-{first + index}") for index in range(250)], "a flood")
            for pid in readers:
                os.kill(pid, signal.SIGCONT)
            await here.seen.until("all bound", lambda: len(here.seen.view.placements) == PODS, WITHIN_S)
        print(f"{PODS} pods: {peaks}")
        assert max(peaks.growth.values()) < MOST_GROWTH, str(peaks)
        await here.lab.until_ready(WITHIN_S)
        assert all(child.starts == 1 for child in here.lab.children)
        ledger.check_commits(await ledger.read_back(here.bus), here.seen.view.nodes)


@pytest.mark.whole_faults
@pytest.mark.timeout(300)
async def test_a_binder_refuses_ten_times_the_decisions_that_it_can_hold(tmp_path: Path) -> None:
    """The decisions count on a position that comes late, as if the binder lagged; nobody takes them back
    meanwhile."""
    async with stand(tmp_path, SERVICES) as here:
        position = await here.bus.last_sequence(streams.CLUSTER.name) + 1_000_000
        async with measured(here.lab) as peaks:
            answers = await asyncio.gather(
                *(flood(here.bus, f"flood-{number}", position) for number in range(TIMES * MAX_UNJUDGED // 256))
            )
        outcomes = Counter(answers)
        print(f"{TIMES * MAX_UNJUDGED} decisions: {dict(outcomes)}; {peaks}")
        held = MAX_UNJUDGED // 256
        assert outcomes["answered"] <= held
        assert outcomes["refused"] >= (TIMES - 1) * held
        assert peaks.growth["binder-1"] < MOST_REFUSING, str(peaks)
        await here.do.apply([large_node("large"), *(small_pod(f"small-{index}") for index in range(50))], "afterwards")
        await here.seen.until("all bound", lambda: len(here.seen.view.placements) == 50, WITHIN_S)


async def flood(bus: Bus, session: str, position: int) -> str:
    """One request with 256 decisions, asked until it has an answer; which, in a word."""
    decisions = tuple(
        Decision(
            namespace="default",
            name=f"{session}-{number}",
            uid=f"{session}-{number}",
            attempt=f"{session}-{number}",
            node="n1",
            number=number,
            position=position,
        )
        for number in range(1, 257)
    )
    profile = default_profile()
    request = BindRequest(session=session, digest={profile.name: profile.digest}, decisions=decisions)
    async with asyncio.timeout(WITHIN_S):
        while True:
            with suppress(BusError):
                answer = await bus.request(subjects.BINDER_BIND, codec.encode(request), timeout_s=ANSWERED_S)
                reply = codec.decode(BindReply, answer.payload)
                return "refused" if reply.refused else "answered"


def large_node(name: str) -> Document:
    return node(name, cpu="1000", memory="1000Gi", pods="10000")


def small_pod(name: str) -> Document:
    """All of them are alike to a scheduler: they have no labels."""
    return objects.written(objects.pod(name, cpu="1m"))
