"""What the end-to-end tests share: labs of real processes, the command line as a process, and what is stored.

async with stand(directory, services="api,queue,scheduler,binder,node_agent") as here:
    await here.do.apply([node("node-1")], "a test")
    await here.seen.until("a node", lambda: here.seen.view.nodes, 10)
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from os import environ
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import anyio
import msgspec

from podyard.bus import Bus, BusSettings, Delivery, WatchSpec, connect
from podyard.cli.demo.actions import Actions
from podyard.cli.demo.evidence import Evidence, gather
from podyard.cli.lab import plan
from podyard.cli.lab.child import Child
from podyard.cli.lab.lab import Lab, LabOptions, running_lab
from podyard.proto import codec, streams
from podyard.proto.operations import DeadLetter

T = TypeVar("T")
WITHOUT_LOOPS: Final = "api,queue,scheduler,binder,node_agent"
"""The services that bring a single pod onto a node."""

READY_S: Final = 45.0
"""Seconds that the services get to start: 5 on an idle machine of 2 cores, more where others work too."""

WITHIN_S: Final = 30.0
"""Limit of a wait whose end is an event, never a pause."""


class Stand(NamedTuple):
    """A lab that runs, a person at it, and what it stores."""

    lab: Lab
    bus: Bus
    do: Actions
    seen: Evidence

    async def cli(self, *words: str, stdin: str = "") -> "Done":
        """`podyard <words>` in a process of its own."""
        return await cli(*words, url=self.lab.url, stdin=stdin)

    async def running(self, *names: str) -> None:
        """Wait until these pods of namespace `default` run."""
        await self.seen.until(f"{', '.join(names)} running", lambda: all(map(self.runs, names)), WITHIN_S)

    def runs(self, name: str) -> bool:
        """Whether its agent says so of this pod of namespace `default`."""
        pod = self.seen.view.pods.get(("default", name))
        return pod is not None and pod.status is not None and pod.status.phase == "Running"

    async def attempted(self, name: str, times: int = 1) -> None:
        """Wait until so many attempts of a pod of namespace `default` have ended without a node."""

        def enough() -> bool:
            return sum(record.name == name for record in self.seen.attempts) >= times

        await self.seen.until(f"{times} attempts of {name} in vain", enough, WITHIN_S)


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


@asynccontextmanager
async def stand(directory: Path, services: str = WITHOUT_LOOPS, **options: Any) -> AsyncGenerator[Stand]:
    """A lab with all its services ready; its data and logs stay in `directory`."""
    wanted = LabOptions(services=plan.parse(services), data_dir=str(directory), **options)
    async with running_lab(wanted) as lab:
        await lab.until_ready(READY_S)
        async with connect(BusSettings(servers=(lab.url,), name="test", service="test")) as bus, gather(bus) as seen:
            yield Stand(lab, bus, Actions(bus), seen)


async def cli(*words: str, url: str = "", stdin: str = "") -> Done:
    """`podyard <words>` in a process of its own, as in a shell without a terminal."""
    known = {**environ, "NO_COLOR": "1", "COLUMNS": "200", "PODYARD_STATE_DIR": "/nonexistent"}
    done = await anyio.run_process(
        [sys.executable, "-m", "podyard.cli", *words],
        input=stdin.encode(),
        check=False,
        env={**known, **({"PODYARD_NATS_SERVERS": url} if url else {})},
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def node(name: str, *, cpu: str = "8", memory: str = "16Gi", labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A node's manifest."""
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"capacity": amounts, "allocatable": dict(amounts)},
    }


def pod(name: str, *, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    """A pod's manifest."""
    container = {"name": "main", "image": "test", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


async def state_of(lab: Lab, wanted: Callable[[Child], bool], what: str, within_s: float = WITHIN_S) -> None:
    """Wait until every supervised service is as `wanted`.

    :raises AssertionError: if they are not in time, with what they were instead
    """
    changed = anyio.Event()
    before = lab.changed

    def note() -> None:
        before()
        changed.set()

    lab.changed = note
    try:
        with anyio.move_on_after(within_s):
            while not all(map(wanted, lab.children)):
                await changed.wait()
                changed = anyio.Event()
            return
    finally:
        lab.changed = before
    told = [f"{child.instance} {child.state} {child.reason}" for child in lab.children]
    raise AssertionError(f"not within {within_s} s: {what}; {'; '.join(told)}")


class DeadLetters:
    """All dead letters in the order in which they were stored."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self._changed = anyio.Event()

    async def until(self, what: str, question: Callable[[list[DeadLetter]], bool]) -> list[DeadLetter]:
        """Wait until the letters satisfy `question`.

        :raises AssertionError: if they do not in time
        """
        with anyio.move_on_after(WITHIN_S):
            while not question(self.letters):
                changed = self._changed
                await changed.wait()
            return list(self.letters)
        told = [f"{letter.service} {letter.subject}: {letter.reason}" for letter in self.letters]
        raise AssertionError(f"{what} was not seen; dead letters: {told}")

    def listing(self, target: int, reason: str) -> None: ...

    def deliver(self, delivery: Delivery) -> None:
        self.letters.append(codec.decode(DeadLetter, delivery.payload))
        self._changed.set()
        self._changed = anyio.Event()

    def synced(self, position: int) -> None: ...

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...


@asynccontextmanager
async def dead_letters(bus: Bus) -> AsyncGenerator[DeadLetters]:
    """Follow the dead letters of all services while the block runs."""
    found = DeadLetters()
    spec = WatchSpec(
        stream=streams.DEAD.name, list_subjects=streams.DEAD.subjects, follow_subjects=streams.DEAD.subjects
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bus.watch(spec, found).run)
        yield found
        tasks.cancel_scope.cancel()


async def jetstream(bus: Bus, verb: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """A request to the server's JetStream API, as an operator's tool would make it.

    :raises AssertionError: with the server's error
    """
    answer = await bus.request(f"$JS.API.{verb}", msgspec.json.encode(body) if body is not None else b"")
    found = msgspec.json.decode(answer.payload)
    assert "error" not in found, f"{verb}: {found['error']}"
    return found


@asynccontextmanager
async def held(manager: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
    """`manager`, entered and left in one task of its own, for fixtures: pytest-asyncio enters and leaves those in two."""
    end = asyncio.Event()
    entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    async def keep() -> None:
        try:
            async with manager as value:
                entered.set_result(value)
                await end.wait()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)

    keeper = asyncio.create_task(keep())
    try:
        yield await entered
    finally:
        end.set()
        await keeper
