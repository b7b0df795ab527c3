"""A whole stack for fault tests: a nats-server (or those that are given), a proxy before it for each service
process, the recorder with the simulation's checker, people, and a verdict.

    async with staged(tmp_path) as stage, stage.trial("acks") as load:
        leader = await stage.leading("binder")
        point = stage.proxy(leader).rule(CrashPoint("placement.fence", "stored", nth=4))
        async with load.flowing():
            await point.hit(20)
            await stage.leading("binder", other_than=leader)
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import anyio

from podyard.bus import Bus, BusSettings, connect
from podyard.bus.bootstrap import ensure_streams
from podyard.bus.embedded import EmbeddedServer, embedded_server
from podyard.bus.errors import BusError
from podyard.cli.lab import plan
from podyard.proto import codec, streams, subjects
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from tests.faults import load, recorder
from tests.faults.leaders import Leaders
from tests.faults.load import Load, People
from tests.faults.message_rules import CrashPoint
from tests.faults.overhearing import Overheard
from tests.faults.process import Process
from tests.faults.proxy import Proxy, serving
from tests.faults.recorder import Recorder
from tests.simulation import ending

EVERYTHING: Final = "api,queue=2,scheduler=2,binder=2,node_agent,workloads"
SETTLED_WITHIN_S: Final = 60.0
"""Without the queue's flush after 5 minutes: 10 s of backoff, twice, and the wait for a session that died."""

LOOK_EVERY_S: Final = 0.5
OVERHEARD_WITHIN_S: Final = 3.0
"""For an answer of the server to come to a proxy, on a busy machine."""
TOLD_WITHIN_S: Final = 10.0
"""The same in the midst of faults, where the reader may have to list first."""

LEASE_TTL_S: Final = 3
"""Shorter than in earnest: one server elects nobody, and a test waits for it again and again."""

SHOWN_LINES: Final = 60


def settings(lease_ttl_s: int) -> dict[str, str]:
    """Of the services: what only makes tests wait is short."""
    return {
        **{f"PODYARD_{name}_LEASE_TTL_S": str(lease_ttl_s) for name in ("BINDER", "QUEUE", "WORKLOADS")},
        "PODYARD_QUEUE_SESSION_TIMEOUT_S": "4",
        "PODYARD_QUEUE_BINDING_TIMEOUT_S": "8",
        "PODYARD_QUEUE_POD_MAX_BACKOFF_S": "3",
        "PODYARD_SCHEDULER_HEARTBEAT_S": "1",
        "PODYARD_NODE_AGENT_START_DELAY_S": "0.1",
        "PODYARD_NODE_AGENT_STOP_DELAY_S": "0.1",
        "PODYARD_BINDER_COMMIT_TIMEOUT_S": "2",
    }


class Stage:
    """What a test acts on."""

    def __init__(self, directory: Path, bus: Bus) -> None:
        self.directory = directory
        self.bus = bus
        """The test's own connection, past all proxies."""
        self.people = People(bus)
        """They have a proxy too, `people`."""
        self.recorder = Recorder()
        self.overheard = Overheard(self.recorder.note)
        self.leaders = Leaders()
        self.processes: dict[str, Process] = {}
        self.proxies: dict[str, Proxy] = {}
        self.test = ""
        """The one that runs, for how to run it again."""
        self.server: EmbeddedServer | None = None
        """Its own, if it was not given any."""
        self._told: deque[str] = deque(maxlen=400)
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        """A line of the journal that a failing test shows."""
        self._told.append(f"{time.monotonic() - self._began:8.3f} @{self.recorder.next - 1} {text}")

    def process(self, instance: str) -> Process:
        """By name, as `binder-1`."""
        return self.processes[instance]

    def proxy(self, instance: str) -> Proxy:
        """What stands before the servers for that process."""
        return self.proxies[instance]

    async def leading(self, service: str, *, other_than: str = "", within_s: float = 30.0) -> str:
        """The instance that leads, once it is another one than that."""
        return await self.leaders.until(service, within_s, other_than=other_than)

    def standby(self, service: str, leader: str) -> str:
        """The instance of a service that does not lead."""
        return next(
            one.instance for one in self.processes.values() if one.service == service and one.instance != leader
        )

    async def bound(self, more: int, within_s: float = 30.0) -> None:
        """Wait until so many more pods are bound. What was stored while nobody could listen holds the
        recorder up for 10 s, no longer.

        :raises AssertionError: if they are not in time
        """
        checker, goal = self.recorder.checker, self.recorder.checker.bound + more
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while checker.bound < goal:
                    await self._complete(TOLD_WITHIN_S)
                    with anyio.move_on_after(LOOK_EVERY_S):
                        await self.recorder.changed()
        assert checker.bound >= goal, f"{goal - checker.bound} of {more} pods were not bound within {within_s} s"

    async def died(self, points: Sequence[CrashPoint], within_s: float) -> None:
        """Wait until a process has died at one of these points."""
        waiting = [asyncio.ensure_future(point.hit(within_s)) for point in points]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
        finally:
            for one in waiting:
                one.cancel()

    async def revive(self) -> None:
        """Start what has died, and wait until everything is ready."""
        for process in self.processes.values():
            if not process.alive:
                await process.start()
        for process in self.processes.values():
            await process.ready()

    async def quiet(self) -> None:
        """End all faults: heal networks, end rules, let everybody go on, start what has died."""
        for proxy in self.proxies.values():
            for rule in proxy.rules():
                rule.end()
            proxy.heal()
            await proxy.landed()
        for process in self.processes.values():
            if process.paused:
                process.resume()
        await self.revive()

    @asynccontextmanager
    async def trial(self, name: str, seed: int = 1, *, deaf: bool = False) -> AsyncGenerator[Load]:
        """A test's faults, under a load of its own; at its end they are over, everything settles, and the
        checker has its say.

        :param deaf: for a while nobody can listen, and the server tells nobody of what it stores: what is
            overwritten then is not missed
        :raises AssertionError: if it finds anything, with what was done and what was stored last
        """
        self._told.clear()
        pids = ", ".join(f"{one.instance} {one.pid}" for one in self.processes.values())
        self.tell(f"{name}: on processes {pids}")
        made = Load(self.people, name, Random(seed))
        try:
            yield made
            await self.quiet()
            await self.verdict(deaf=deaf)
            await self.people.delete(subjects.PODS, made.made, grace_period_s=0)
        except BaseException as error:
            error.add_note(self.report(name))
            raise

    async def verdict(self, within_s: float = SETTLED_WITHIN_S, *, deaf: bool = False) -> None:
        """Wait until every accepted pod is bound, or parked with a reason and fits no node.

        :raises AssertionError: with the violations found on the way, or what is not settled in time
        """
        wrong = await self._unsettled()
        end_s = time.monotonic() + within_s
        while wrong and not self.recorder.checker.violations and time.monotonic() < end_s:
            await asyncio.sleep(LOOK_EVERY_S)
            wrong = await self._unsettled()
        lost = [
            f"the api said that it had made {name} @{position}, and nobody ever saw it"
            for uid, (name, position) in self.people.accepted.items()
            if uid not in self.recorder.stored_at
        ]
        if self.recorder.checker.violations:
            wrong = []  # what is on its way when something is wrong already means nothing
        complaints = [text for process in self.processes.values() for text in process.complaints()]
        for process in self.processes.values():
            process.look()
            complaints += process.ended_by_itself
        found = [*self.recorder.checker.violations, *lost, *wrong, *complaints]
        unheard = self.recorder.overwritten if deaf else ()
        found += [f"the recorder missed {text}" for text in self.recorder.missed if text not in unheard]
        assert not found, "\n".join(found)

    async def _unsettled(self) -> list[str]:
        listed = None
        with suppress(BusError, TimeoutError):
            asked = codec.encode(QueueListRequest(limit=10_000))
            reply = await self.bus.request(subjects.queue_verb("list"), asked, timeout_s=2)
            listed = codec.decode(QueueListReply, reply.payload)
        await self._complete(OVERHEARD_WITHIN_S)
        seen = self.recorder
        pods = {name: document for (resource, name), document in seen.objects.items() if resource == subjects.PODS}
        return ending.unsettled(seen.checker, pods, seen.placed, listed)

    async def _complete(self, within_s: float) -> None:
        """Let the checker see everything that is stored by now; what nobody tells of in that time is
        missed."""
        with suppress(BusError):
            await self.recorder.complete(await self.bus.last_sequence(streams.CLUSTER.name), within_s)

    def report(self, name: str) -> str:
        """What was done when, what was stored last, and how to run it again."""
        checker = self.recorder.checker
        counts = f"{checker.commits} commits, {checker.bound} bound, {checker.released} released"
        leaders = ", ".join(f"{lease.holder} leads {service}" for service, lease in self.leaders.now.items())
        lines = [
            f"---- what was done, seconds, @position of the checker (of {name})",
            *self._told,
            "---- what was stored last",
            *list(self.recorder.lines)[-SHOWN_LINES:],
            f"---- {counts}; {leaders}; rejected by the api: {self.people.rejected}",
            f"---- logs: {self.directory}; again: .venv/bin/pytest -m '' '{self.test}'",
        ]
        return "\n".join(lines)


@asynccontextmanager
async def staged(
    directory: Path,
    services: str = EVERYTHING,
    *,
    servers: Sequence[int] = (),
    replicas: int = 1,
    lease_ttl_s: int = LEASE_TTL_S,
    environment: Mapping[str, str] | None = None,
    python: str = "",
) -> AsyncGenerator[Stage]:
    """A stack with all services ready and nodes made. Everything that was started is ended with the block,
    however it ends.

    :param servers: ports of servers that run already; none: one of its own
    :param replicas: of the streams
    :param environment: further settings of all services
    :param python: of another release, by which they are started at first
    """
    async with AsyncExitStack() as stack:
        own = None
        if not servers:
            own = await stack.enter_async_context(embedded_server(directory / "nats"))
            servers = [own.port]
        urls = tuple(f"nats://127.0.0.1:{port}" for port in servers)
        bus = await stack.enter_async_context(connect(BusSettings(servers=urls, name="test", service="test")))
        await ensure_streams(bus, replicas=replicas)
        stage = Stage(directory, bus)
        stage.server = own
        door = stage.proxies["people"] = await stack.enter_async_context(serving(Proxy("people", servers, stage.tell)))
        known_as = BusSettings(servers=(door.url,), name="people", service="people")
        stage.people = People(await stack.enter_async_context(connect(known_as)))
        watches = [
            asyncio.ensure_future(bus.watch(recorder.SPEC, stage.recorder).run()),
            asyncio.ensure_future(bus.watch(Leaders.SPEC, stage.leaders).run()),
        ]
        stack.push_async_callback(_end_watches, watches)
        known = {**settings(lease_ttl_s), **(environment or {})}
        for planned in plan.parse(services):
            proxy = await stack.enter_async_context(serving(Proxy(planned.instance, servers, stage.tell)))
            process = Process(
                planned.service,
                planned.instance,
                directory / f"{planned.instance}.log",
                {**known, "PODYARD_NATS_SERVERS": proxy.url},
                stage.tell,
            )
            process.python = python or process.python
            proxy.kill = process.kill
            stage.overheard.listen(proxy)
            stage.proxies[planned.instance], stage.processes[planned.instance] = proxy, process
        stack.push_async_callback(_end_processes, stage)
        await stage.revive()
        await stage.people.apply([*load.priority_classes(), *(load.node(index) for index in range(load.NODES))])
        yield stage


async def _end_processes(stage: Stage) -> None:
    """Before their proxies: nobody connects to those any more."""
    for process in stage.processes.values():
        process.kill()
    for process in stage.processes.values():
        if process.pid:
            await process.ended()


async def _end_watches(watches: Sequence[asyncio.Task[Any]]) -> None:
    for watch in watches:
        watch.cancel()
    await asyncio.gather(*watches, return_exceptions=True)
