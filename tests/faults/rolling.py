"""What is replaced one by one, services or servers, while pods keep coming: how long each waits."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from podyard.proto import streams, subjects
from tests.faults.load import Load
from tests.faults.servers import Servers
from tests.faults.stage import Stage
from tests.support import objects

LONGEST_WAIT_S: Final = 15.0
BETWEEN: Final = 12
"""Pods that are bound between one replacement and the next."""

BOUND_WITHIN_S: Final = 60.0
EVERY_S: Final = 0.2
LIVING: Final = 60
LOOK_EVERY_S: Final = 0.05


class Waiting:
    """Small pods that keep coming, two at a time, and how long each waits for its node: from when it was
    first asked for, as who was told to try again does so."""

    def __init__(self, stage: Stage, load: Load) -> None:
        self._stage = stage
        self._load = load
        self._placed: deque[str] = deque()
        """Names of pods with a node, of which the oldest are deleted: of one without its wait would never
        end."""
        self._since: dict[str, tuple[float, str]] = {}
        """By name of a pod without a node: when it was first asked for, and who was replaced then."""
        self.waited_s: list[float] = []
        self.worst: dict[str, float] = {}
        """The longest wait of a pod that was asked for while this one was replaced, or after it. Who is
        replaced when it gets its node at last need not have kept it waiting."""
        self.during = "none yet"

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            names = [f"small-{len(self._load.made) + number}" for number in range(2)]
            self._load.made += names
            self._since |= dict.fromkeys(names, (time.monotonic(), self.during))
            while missing := [name for name in names if not self._is_made(name)]:
                await self._stage.people.apply([small(name) for name in missing])
                await asyncio.sleep(EVERY_S)
            over = [self._placed.popleft() for _ in range(len(self._placed) - LIVING)]
            await self._stage.people.delete(subjects.PODS, over)

    def _is_made(self, name: str) -> bool:
        accepted = (known for known, _ in self._stage.people.accepted.values())
        return (subjects.PODS, name) in self._stage.recorder.objects or name in accepted

    async def look(self) -> None:
        """Until cancelled: who has a node now."""
        seen = self._stage.recorder
        while True:
            for name in [*self._since]:
                found = seen.objects.get((subjects.PODS, name))
                if found is not None and found["metadata"]["uid"] in seen.placed:
                    since, during = self._since.pop(name)
                    self._placed.append(name)
                    self.waited_s.append(time.monotonic() - since)
                    self.worst[during] = max(self.waited_s[-1], self.worst.get(during, 0.0))
            await asyncio.sleep(LOOK_EVERY_S)

    @property
    def longest_s(self) -> float:
        """Of those that wait still, too."""
        return max([*self.waited_s, *(time.monotonic() - since for since, _ in self._since.values())])

    @property
    def told(self) -> str:
        """What there was, for people."""
        worst = ", ".join(f"{name} {wait_s:.1f}" for name, wait_s in self.worst.items())
        return f"{len(self.waited_s)} pods; the longest waits, seconds: {worst}"


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
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in ended] == [asyncio.CancelledError] * len(tasks), ended


async def replaced_one_by_one(nats: Servers, stage: Stage, settings: Mapping[str, Any]) -> Waiting:
    """Each server ends in order and starts again, by another configuration and whatever program there is now;
    the next one only once it has caught up, as probes have it. Who leads the stream is the last, so that all
    of them have led before.

    :param settings: that every server has from then on
    :raises AssertionError: if a pod is lost, bound twice, kept waiting, or anything cannot be read
    """
    async with stage.trial("servers") as load:
        waiting = Waiting(stage, load)
        async with coming(waiting):
            await stage.bound(BETWEEN, BOUND_WITHIN_S)
            leader = await nats.leader(stage.bus, streams.CLUSTER.name)
            for name in (*nats.others(leader), leader):
                waiting.during = name
                stage.tell(f"the server {name} is replaced, {leader} led the stream")
                await nats[name].stop()
                nats.reconfigure(name, settings)
                await nats[name].start()
                await nats.healthy(name)
                await stage.bound(BETWEEN, BOUND_WITHIN_S)
        print(waiting.told)
        assert waiting.longest_s < LONGEST_WAIT_S, waiting.told
    assert await stage.bus.last_sequence(streams.DEAD.name) == 0, "something was stored that could not be read"
    return waiting
