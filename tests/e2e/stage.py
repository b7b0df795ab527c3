"""What the end-to-end tests share: labs of real processes, the command line as a process, and what is stored.

async with stand(directory, services="api,queue,scheduler,binder,node_agent") as here:
    await here.join(node("node-1"))
    await here.do.apply([here.pod("web")], "a test")
    await here.running("web")
"""

import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import msgspec

from podyard.bus import Bus, BusSettings, Delivery, WatchSpec, connect
from podyard.cli.demo.actions import Actions
from podyard.cli.demo.evidence import Evidence, gather
from podyard.cli.lab import plan
from podyard.cli.lab.child import Child
from podyard.cli.lab.lab import Lab, LabOptions, running_lab
from podyard.cluster.pods import PodView
from podyard.objects.admission import DEFAULT_NAMESPACE
from podyard.proto import codec, streams
from podyard.proto.decisions import AttemptRecord
from podyard.proto.operations import DeadLetter
from tests.support import objects
from tests.support.objects import Document
from tests.support.otlp_sink import SinkSpan, of_pod

WITHOUT_LOOPS: Final = "api,queue,scheduler,binder,node_agent"
"""The services that bring a single pod onto a node."""

READY_S: Final = 45.0
"""Seconds that the services get to start: 5 on an idle machine of 2 cores, more where others work too."""

WITHIN_S: Final = 30.0
"""Limit of a wait whose end is an event, never a pause."""


NAMESPACED: Final = ("apply", "delete", "explain", "get", "queue")
"""Commands that are about one namespace."""


class Stand(NamedTuple):
    """A lab that runs, a person at it with a namespace to work in, and what it stores."""

    lab: Lab
    bus: Bus
    do: Actions
    seen: Evidence
    namespace: str = DEFAULT_NAMESPACE

    async def cli(self, *words: str, stdin: str = "") -> "Done":
        """`podyard <words>` in a process of its own, about this person's namespace."""
        where = ("--namespace", self.namespace) if words[0] in NAMESPACED else ()
        return await cli(*words, *where, url=self.lab.url, stdin=stdin)

    def pod(self, name: str, **more: Any) -> Document:
        """A pod's manifest in this namespace; keywords are those of `pod`."""
        return pod(name, namespace=self.namespace, **more)

    async def join(self, *nodes: Document) -> None:
        """Make nodes, and wait until their agent reports them ready: so its first report wakes nobody
        later."""
        names = [one["metadata"]["name"] for one in nodes]
        await self.do.apply(list(nodes), "nodes of the test")
        await self.seen.until("nodes that are ready", lambda: all(map(self._ready, names)), WITHIN_S)

    def _ready(self, node: str) -> bool:
        found = self.seen.view.nodes.get(node)
        return found is not None and any(
            (one.type, one.status) == ("Ready", "True") for one in found.node.status.conditions
        )

    def known(self, name: str) -> PodView | None:
        """A pod of this namespace as it is stored, if it is."""
        return self.seen.view.pods.get((self.namespace, name))

    def bound_to(self, name: str) -> str:
        """The node that this pod is bound to; empty if it is not."""
        found = self.known(name)
        return "" if found is None or found.bound is None else found.bound.node

    def runs(self, name: str) -> bool:
        """Whether its agent says so of this pod."""
        found = self.known(name)
        return found is not None and found.status is not None and found.status.phase == "Running"

    async def running(self, *names: str) -> None:
        """Wait until these pods run."""
        await self.seen.until(f"{', '.join(names)} running", lambda: all(map(self.runs, names)), WITHIN_S)

    def attempts(self, name: str) -> list[AttemptRecord]:
        """Attempts of this pod that have ended without a node, in order."""
        return [one for one in self.seen.attempts if (one.namespace, one.name) == (self.namespace, name)]

    def spans_of(self, spans: Iterable[SinkSpan], name: str, pod: str) -> list[SinkSpan]:
        """Spans of one name that are about this pod, in order of time."""
        return of_pod(spans, name, self.namespace, pod)

    async def attempted(self, name: str, times: int = 1) -> None:
        """Wait until so many attempts of this pod have ended without a node."""
        what = f"{times} attempts of {name} in vain"
        await self.seen.until(what, lambda: len(self.attempts(name)) >= times, WITHIN_S)


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


@asynccontextmanager
async def stand(directory: Path, services: str = WITHOUT_LOOPS, **options: Any) -> AsyncGenerator[Stand]:
    """A lab with these services, all of them ready; its data and logs stay in `directory`."""
    wanted = LabOptions(services=plan.parse(services), data_dir=str(directory), **options)
    async with stand_with(wanted) as here:
        yield here


@asynccontextmanager
async def stand_with(wanted: LabOptions) -> AsyncGenerator[Stand]:
    """A lab with all its services ready."""
    async with running_lab(wanted) as lab:
        await lab.until_ready(READY_S)
        async with attended(lab) as here:
            yield here


@asynccontextmanager
async def attended(lab: Lab) -> AsyncGenerator[Stand]:
    """A person at a lab, with a key where one is asked for."""
    known_as = lab.person() if lab.options.security else BusSettings(servers=(lab.url,), name="test", service="test")
    async with connect(known_as) as bus, gather(bus) as seen:
        yield Stand(lab, bus, Actions(bus), seen)


async def cli(*words: str, url: str = "", stdin: str = "") -> Done:
    """`podyard <words>` in a process of its own, as in a shell without a terminal."""
    known = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "PODYARD_STATE_DIR": "/nonexistent"}
    done = await anyio.run_process(
        [sys.executable, "-m", "podyard.cli", *words],
        input=stdin.encode(),
        check=False,
        env={**known, **({"PODYARD_NATS_SERVERS": url} if url else {})},
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def node(name: str, *, cpu: str = "8", memory: str = "16Gi", **more: Any) -> Document:
    """A node's manifest; further keywords are those of `objects.node`."""
    return objects.written(objects.node(name, cpu=cpu, memory=memory, **more))


def pod(name: str, *, cpu: str = "100m", labels: Mapping[str, str] | None = None, **more: Any) -> Document:
    """A pod's manifest, with its name as the label `app`; further keywords are those of `objects.pod`."""
    return objects.written(objects.pod(name, cpu=cpu, labels={"app": name, **(labels or {})}, **more))


def pause(lab: Lab, service: str) -> None:
    """SIGSTOP: the service keeps what it has, and does nothing."""
    os.kill(lab.child(service).pid, signal.SIGSTOP)


def resume(lab: Lab, service: str) -> None:
    """SIGCONT."""
    os.kill(lab.child(service).pid, signal.SIGCONT)


@contextmanager
def paused(lab: Lab, service: str) -> Generator[None]:
    """A service does nothing while the block runs."""
    pause(lab, service)
    try:
        yield
    finally:
        resume(lab, service)


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
