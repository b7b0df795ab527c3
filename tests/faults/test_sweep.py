"""One bad thing stays one bad thing: whatever is sent or stored on whatever subject, services live, other pods are
bound meanwhile, and the bad thing can be deleted.

`make test` sends one of many, `make test-faults` all. A failure names the messages of its round; the logs have the rest.
"""

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import msgspec
import pytest
import pytest_asyncio
from msgspec import inspect

from podyard.bus import Delivery, Outgoing, WatchSpec, connect
from podyard.bus.errors import BusError, RemoteError, TooLarge
from podyard.cli import objects_client
from podyard.cli.security import directory
from podyard.cluster.snapshot import snapshot
from podyard.proto import catalogue, codec, streams, subjects
from podyard.proto.catalogue import Channel
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ApplyRequest
from podyard.proto.streams import MEBIBYTE
from tests.contract.proto import filled
from tests.e2e.labs import SHORT
from tests.e2e.stage import Stand, node, stand, state_of
from tests.faults.good_objects import everything
from tests.faults.poisons import Poison, spoilt, whole
from tests.support.holding import held
from tests.support.lasting import Lasting

SERVICES: Final = "api,queue,scheduler,binder,node_agent,workloads,descheduler"
ROUND: Final = 200
"""Messages between two looks at whether work goes on."""

BAD: Final = "bad-0"
"""The name in a good document; each message that is made of it gets a number of its own."""

ANSWERED_S: Final = 10.0
GONE_S: Final = 120.0
STARTED_S: Final = 90.0
TIMES: Final = {**SHORT, "PODYARD_NODE_AGENT_STOP_DELAY_S": "0.05"}
GOOD_NODE: Final = "good"

extents = pytest.mark.parametrize(
    "every",
    [
        pytest.param(211, id="a few", marks=pytest.mark.timeout(120)),
        pytest.param(1, id="all", marks=[pytest.mark.whole_faults, pytest.mark.timeout(1_800)]),
    ],
)
"""One of so many spoilt messages is sent."""


class Sent(NamedTuple):
    """A bad message with its address."""

    what: str
    subject: str
    payload: bytes


class Stored:
    """Which subjects of CLUSTER hold an object that is not deleted. A sink of a watch."""

    SPEC: Final = WatchSpec(
        stream=streams.CLUSTER.name, list_subjects=streams.CLUSTER.subjects, follow_subjects=streams.CLUSTER.subjects
    )

    def __init__(self) -> None:
        self.objects: set[str] = set()
        self._changed = anyio.Event()

    async def only(self, wanted: Iterable[str], within_s: float) -> None:
        """Wait until nothing but these is there."""
        kept = set(wanted)
        with anyio.move_on_after(within_s):
            while self.objects - kept:
                await self._changed.wait()
        left = sorted(self.objects - kept)
        assert not left, f"{len(left)} objects cannot be deleted: {left[:20]}"

    def listing(self, target: int, reason: str) -> None: ...

    def deliver(self, delivery: Delivery) -> None:
        with suppress(ValueError):
            subjects.parse_object(delivery.subject)
            (self.objects.discard if delivery.deleted else self.objects.add)(delivery.subject)
            self._changed.set()
            self._changed = anyio.Event()

    def synced(self, position: int) -> None: ...

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...


class Sweep:
    """A lab at work, and bad messages thrown at it."""

    def __init__(self, here: Stand, stored: Stored) -> None:
        self.here = here
        self.stored = stored
        self.before: set[str] = set()
        """What is there apart from bad things."""
        self._numbers = itertools.count(1)
        self._starts = self._started()

    def _started(self) -> dict[str, int]:
        return {child.instance: child.starts for child in self.here.lab.children}

    async def goes_on(self, after: Iterable[str]) -> None:
        """A pod is made, bound and runs; nobody has ended."""
        name = f"good-{next(self._numbers)}"
        told = "\n  ".join(after)
        try:
            await self.here.do.apply([self.here.pod(name, selector={GOOD_NODE: "yes"})], "work goes on")
            await self.here.running(name)
            await objects_client.delete(
                self.here.bus, [_reference(subjects.object_("pods", "default", name))], grace_period_s=0
            )
            assert self._started() == self._starts, "services have ended, and were started again"
        except Exception as error:
            error.add_note(f"after these bad messages:\n  {told}\nlogs: {self.here.lab.directory}/logs")
            raise

    async def throw(self, messages: Iterator[Sent], send: Any) -> int:
        """Send all, round by round, and see work go on after each; how many they were."""
        count = 0
        while batch := list(itertools.islice(messages, ROUND)):
            await send(batch)
            count += len(batch)
            await self.goes_on(one.what for one in batch)
        return count

    async def store(self, batch: list[Sent]) -> None:
        """As somebody would who may write into the streams."""
        done = await self.here.bus.publish_many([Outgoing(one.subject, one.payload) for one in batch], timeout_s=30)
        failed = [answer for answer in done if isinstance(answer, BusError) and not isinstance(answer, TooLarge)]
        assert not failed, failed[0]

    async def ask(self, batch: list[Sent]) -> None:
        """Each as a request; each is answered, be it with an error.

        :raises AssertionError: if one is not
        """
        for one in batch:
            try:
                await self.here.bus.request(one.subject, one.payload, timeout_s=ANSWERED_S)
            except (RemoteError, TooLarge):
                continue
            except BusError as error:
                raise AssertionError(f"{one.what}: {error}") from error

    async def tell(self, batch: list[Sent]) -> None:
        """Each as a message that nobody answers."""
        for one in batch:
            with suppress(TooLarge):
                self.here.bus.send(one.subject, one.payload)

    async def clear(self) -> None:
        """Delete whatever bad is stored; it goes."""
        left = sorted(self.stored.objects - self.before)
        await objects_client.delete(
            self.here.bus, [_reference(one) for one in left], grace_period_s=0, timeout_s=GONE_S
        )
        await self.stored.only(self.before, GONE_S)

    async def restarted(self) -> None:
        """Kill all services: those that come after them read everything that is stored."""
        for child in self.here.lab.children:
            child.kill()
        await state_of(
            self.here.lab,
            lambda child: child.starts > self._starts[child.instance] and child.state == "ready",
            "all services started again",
            STARTED_S,
        )
        self._starts = self._started()

    def kill(self, service: str) -> None:
        """It is started again."""
        self._starts[self.here.lab.child(service).instance] += 1
        self.here.lab.child(service).kill()

    async def mended(self, subject: str, *words: str) -> None:
        """The binder says which placement cannot be read; a person says what it was, and the binder leads again."""
        lab = self.here.lab
        await state_of(
            lab, lambda child: child.service != "binder" or subject in child.reason, f"{subject} named", STARTED_S
        )
        done = await self.here.cli("mend", subject, *words, "--yes")
        assert done.code == 0, done
        await state_of(lab, lambda child: child.state == "ready", "all ready again", STARTED_S)


def _reference(subject: str) -> ObjectRef:
    resource, namespace, name = subjects.parse_object(subject)
    return ObjectRef(resource=resource, namespace=namespace, name=name)


@asynccontextmanager
async def sweeping(directory: Path, **options: Any) -> AsyncGenerator[Sweep]:
    """A lab of its own, with one node that only good pods ask for."""
    stored = Stored()
    async with (
        stand(directory, SERVICES, environment=TIMES, **options) as here,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(here.bus.watch(Stored.SPEC, stored).run)
        await here.join(node(GOOD_NODE, cpu="1000", labels={GOOD_NODE: "yes"}))
        found = Sweep(here, stored)
        await found.goes_on(["nothing"])
        await stored.only([one for one in stored.objects if not one.startswith("cluster.pods.")], GONE_S)
        found.before = set(stored.objects)
        yield found
        tasks.cancel_scope.cancel()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def labs(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lasting[Sweep]]:
    """Where tests get their lab from."""
    found = Lasting(lambda: sweeping(tmp_path_factory.mktemp("sweep")))
    yield found
    await found.end()


@pytest_asyncio.fixture(loop_scope="session")
async def sweep(labs: Lasting[Sweep], request: pytest.FixtureRequest) -> AsyncIterator[Sweep]:
    """A lab at work; another one after a test that failed on it."""
    async with labs.lent(request) as found:
        yield found


def numbered(what: str, subject: str, poisons: Iterable[Poison], numbers: Iterator[int]) -> Iterator[Sent]:
    """Each under a name of its own, in subject and payload alike."""
    for poison in poisons:
        name = f"bad-{next(numbers)}"
        yield Sent(
            f"{what}{poison.what}", subject.replace(BAD, name), poison.payload.replace(BAD.encode(), name.encode())
        )


def stored_objects(every: int) -> Iterator[Sent]:
    """Objects as they would lie in CLUSTER had nobody checked them."""
    numbers = itertools.count(1)
    for first, (resource, document) in enumerate(everything("default", BAD).items()):
        namespace = document["metadata"].get("namespace", "")
        event = {
            "resource": resource,
            "namespace": namespace,
            "name": BAD,
            "uid": document["metadata"]["uid"],
            "who": "test",
            "object": document,
        }
        subject = subjects.object_(resource, namespace, BAD)
        bad = itertools.chain(
            whole() if every == 1 or resource == "pods" else (), spoilt(event, every=every, first=first)
        )
        yield from numbered(f"{resource} stored: ", subject, bad, numbers)


def sample(message: type[msgspec.Struct]) -> Any:
    """A message with every field, as JSON has it."""
    return msgspec.json.decode(codec.encode(filled.full(inspect.type_info(message))))


def channels(kind: str) -> list[Channel]:
    """Of the catalogue."""
    return [one for one in catalogue.CHANNELS if one.kind == kind]


def address(channel: Channel) -> str:
    """A concrete subject; pods and nodes in it are called `bad-0`."""
    known = {"namespace": "default", "node": GOOD_NODE, "resource": "Node", "action": "Add", "kind": "Pod"}
    return ".".join(
        known.get(token[1:-1], BAD) if token.startswith("{") else token for token in channel.address.split(".")
    )


def on_channel(channel: Channel, every: int) -> Iterator[Sent]:
    """What it may not carry."""
    numbers = itertools.count(1)
    for message in channel.messages:
        bad = itertools.chain(whole(), spoilt(sample(message), every=max(1, every // 10)))
        yield from numbered(f"{channel.name}: ", address(channel), bad, numbers)


OF_PEOPLE: Final = ("apply", "delete", "evict", "queueList", "would", "bareEvent", "signals")
"""Channels that a person may write to."""
SOME: Final = 7
"""One of so many of these, all of which are sent where nobody has a key."""
FACTS: Final = ("podStatus", "nodeStatus", "nomination")
LOGS: Final = ("attempt", "requeue", "k8sEvent", "dead")


@extents
async def test_objects_that_nobody_checked(sweep: Sweep, every: int):
    """In the end all services start anew with all of it, and all of it can be deleted."""
    assert await sweep.throw(stored_objects(every), sweep.store) > 50
    await sweep.restarted()
    await sweep.goes_on(["all services have started again"])
    await sweep.clear()
    await sweep.goes_on(["all of it was deleted"])


@extents
async def test_facts_and_records(sweep: Sweep, every: int):
    for channel in catalogue.CHANNELS:
        if channel.name in (*FACTS, *LOGS):
            await sweep.throw(on_channel(channel, every), sweep.store)
    await sweep.restarted()
    await sweep.goes_on(["all services have started again"])


@pytest.mark.parametrize(
    "each",
    [
        pytest.param(1, id="a few", marks=pytest.mark.timeout(120)),
        pytest.param(20, id="all", marks=[pytest.mark.whole_faults, pytest.mark.timeout(1_800)]),
    ],
)
async def test_placements(sweep: Sweep, each: int):
    """No binder leads while one cannot be read, and it says which; a person says what it was, and work goes on."""
    for name in ("binding", "fence", "commit"):
        [channel] = [one for one in catalogue.CHANNELS if one.name == name]
        bad = list(on_channel(channel, 1))
        batch = [one for one in bad[:: max(1, len(bad) // each)] if len(one.payload) < MEBIBYTE][:each]
        for sent in batch:
            await sweep.store([sent])
            if name == "binding":
                sweep.kill("binder")  # they are read when a binder takes over
            for found in (await snapshot(sweep.here.bus)).unreadable_placements:
                await sweep.mended(found.subject, *(("--gone",) if name == "binding" else ()))
            await sweep.goes_on([sent.what])


@extents
async def test_requests(sweep: Sweep, every: int):
    for channel in channels("request"):
        await sweep.throw(on_channel(channel, every), sweep.tell if channel.name == "pop" else sweep.ask)
    await sweep.throw(applied(every), sweep.ask)
    await sweep.clear()


@extents
async def test_events_signals_and_signs_of_life(sweep: Sweep, every: int):
    for channel in channels("ephemeral"):
        await sweep.throw(on_channel(channel, every), sweep.tell)


@pytest.mark.whole_faults
@pytest.mark.timeout(1_800)
async def test_what_people_and_agents_may_send_where_everybody_has_a_key(tmp_path: Path):
    """What others may not send at all is held by tests/contract/security."""
    async with held(sweeping(tmp_path, secure=True)) as sweep:
        for channel in catalogue.CHANNELS:
            if channel.name in OF_PEOPLE:
                send = sweep.tell if channel.kind == "ephemeral" else sweep.ask
                await sweep.throw(on_channel(channel, SOME), send)
        await sweep.throw(applied(SOME), sweep.ask)
        await sweep.clear()
        lab = sweep.here.lab
        agent = directory.bus_settings(Path(lab.options.security), directory.named("node_agent"), (lab.url,))
        async with connect(agent) as bus:
            theirs = Sweep(sweep.here._replace(bus=bus), sweep.stored)
            for channel in catalogue.CHANNELS:
                if channel.name in ("podStatus", "nodeStatus"):
                    await sweep.throw(on_channel(channel, SOME), theirs.store)
                elif channel.name in ("usage", "nodeHeartbeat"):
                    await sweep.throw(on_channel(channel, SOME), theirs.tell)


def applied(every: int) -> Iterator[Sent]:
    """Objects as people send them."""
    numbers = itertools.count(1)
    for resource, document in everything("default", BAD).items():
        for one in numbered(f"{resource} applied: ", "", spoilt(document, every=every), numbers):
            with suppress(msgspec.MsgspecError):
                request = ApplyRequest(objects=(msgspec.Raw(one.payload),), who="test")
                yield one._replace(subject=subjects.OBJECTS_APPLY, payload=codec.encode(request))
