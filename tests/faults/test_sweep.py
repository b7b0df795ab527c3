"""One bad thing stays one bad thing: whatever is sent or stored on whatever subject, services live, other
pods are bound meanwhile, and the bad thing can be deleted.

`make test` sends one of many, `make test-faults` all. A failure names the messages of its round; the logs
have the rest.
"""

import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio
from msgspec import inspect

from podyard.bus import connect
from podyard.cli.security import directory
from podyard.proto import catalogue, codec, subjects
from podyard.proto.catalogue import Channel
from podyard.proto.objects_api import ApplyRequest
from podyard.proto.streams import MEBIBYTE
from podyard.shell.snapshot import snapshot
from tests.contract.proto import filled
from tests.faults.good_objects import everything
from tests.faults.poisons import Poison, spoilt, whole
from tests.faults.sweep import BAD, GOOD_NODE, Sent, Sweep, sweeping
from tests.support.holding import held
from tests.support.lasting import Lasting

extents = pytest.mark.parametrize(
    "every",
    [
        pytest.param(211, id="a few", marks=pytest.mark.timeout(120)),
        pytest.param(1, id="all", marks=[pytest.mark.whole_faults, pytest.mark.timeout(1_800)]),
    ],
)
"""One of so many spoilt messages is sent."""


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


OF_PEOPLE: Final = ("apply", "delete", "evict", "queueList", "would", "wouldGo", "bareEvent", "signals")
"""Channels that a person may write to."""
SOME: Final = 7
"""One of so many of these, all of which are sent where nobody has a key."""
FACTS: Final = ("podStatus", "nodeStatus", "nomination", "census")
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
    """No binder leads while one cannot be read, and it says which; a person says what it was, and work goes
    on."""
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
