"""An older release is replaced by this one, one service after the other, under load: no pod is lost, bound
twice or kept waiting, and each release reads what the other writes.

The older one is that of the interpreter that `PODYARD_OLDER_PYTHON` names.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from podyard.proto import streams, subjects
from tests.faults.load import Load
from tests.faults.process import Process
from tests.faults.stage import Stage, staged
from tests.support import objects

SERVICES: Final = "api=2,queue=2,scheduler=2,binder=2,node_agent=2,workloads=2"
LONGEST_WAIT_S: Final = 15.0
BETWEEN: Final = 12
"""Pods that are bound between one replacement and the next."""

BOUND_WITHIN_S: Final = 60.0
EVERY_S: Final = 0.2
LIVING: Final = 60
LOOK_EVERY_S: Final = 0.05


@pytest.fixture
def older() -> str:
    """The interpreter of the environment that has the older release."""
    found = os.environ.get("PODYARD_OLDER_PYTHON", "")
    if not Path(found).is_file():
        pytest.fail(f"PODYARD_OLDER_PYTHON is {found!r}: make test-upgrade OLDER=/path/to/python", pytrace=False)
    return found


class Waiting:
    """Small pods that keep coming, two at a time, and how long each waits for its node."""

    def __init__(self, stage: Stage, load: Load) -> None:
        self._stage = stage
        self._load = load
        self._since: dict[str, float] = {}
        self.waited_s: list[float] = []
        self.worst: dict[str, float] = {}
        """The longest wait of a pod that got its node while this instance was replaced, or after it."""
        self.instance = "none yet"

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            names = [f"small-{len(self._load.made) + number}" for number in range(2)]
            self._load.made += names
            asked_at = time.monotonic()
            known = {*self._stage.people.accepted}
            await self._stage.people.apply([small(name) for name in names])
            self._since |= dict.fromkeys({*self._stage.people.accepted} - known, asked_at)
            await self._stage.people.delete(subjects.PODS, self._load.made[-LIVING - 2 : -LIVING])
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Until cancelled: who has a node now."""
        while True:
            for uid in [uid for uid in self._since if uid in self._stage.recorder.placed]:
                self.waited_s.append(time.monotonic() - self._since.pop(uid))
                self.worst[self.instance] = max(self.waited_s[-1], self.worst.get(self.instance, 0.0))
            await asyncio.sleep(LOOK_EVERY_S)

    @property
    def longest_s(self) -> float:
        """Of those that wait still, too."""
        return max([*self.waited_s, *(time.monotonic() - since for since in self._since.values())])


def small(name: str) -> objects.Document:
    return objects.written(objects.pod(name, cpu="10m", labels={"app": "plain"}))


@asynccontextmanager
async def coming(waiting: Waiting) -> AsyncGenerator[None]:
    """Pods come while the block runs."""
    tasks = [asyncio.ensure_future(waiting.run()), asyncio.ensure_future(waiting.look())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def replaced(process: Process, python: str) -> None:
    """It ends in order, and is started by another interpreter."""
    process.terminate()
    await process.ended()
    process.python = python
    await process.start()
    await process.ready()


@pytest.mark.timeout(600)
async def test_one_service_after_the_other_is_replaced_under_load(tmp_path: Path, older: str) -> None:
    async with staged(tmp_path, SERVICES, lease_ttl_s=streams.LEASE_TTL_S, python=older) as stage:
        newer = Process("api", "newer", tmp_path / "none", {}, stage.tell).python
        async with stage.trial("upgrade") as load:
            waiting = Waiting(stage, load)
            async with coming(waiting):
                await stage.bound(BETWEEN, BOUND_WITHIN_S)
                for process in stage.processes.values():
                    waiting.instance = process.instance
                    await replaced(process, newer)
                    await stage.bound(BETWEEN, BOUND_WITHIN_S)
            told = ", ".join(f"{instance} {wait_s:.1f}" for instance, wait_s in waiting.worst.items())
            print(f"{len(waiting.waited_s)} pods; the longest waits, seconds: {told}")
            assert {process.python for process in stage.processes.values()} == {newer}
            assert waiting.longest_s < LONGEST_WAIT_S
            assert await stage.bus.last_sequence(streams.DEAD.name) == 0, "something was stored that could not be read"
