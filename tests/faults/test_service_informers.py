"""Informers of the Kubernetes API, over HTTPS, while instances of it and the NATS server are killed: what
each of them knows is what the stream holds, and on the way nothing came after what is newer, every bookmark
was true, and a change that was not told was overtaken by a later one of the same object.

The stream keeps one message an object. An instance that is behind, or begins, finds the last one alone."""

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import anyio
import msgspec
import pytest

from podyard.bench.kube import Client
from podyard.bus import Bus, BusSettings, connect, ensure_streams
from podyard.bus.embedded import EmbeddedServer, embedded_server
from podyard.cli.lab import kube_access, plan
from tests.faults.mixed_changes import NAMESPACES, PODS, WIDGETS, Change, Changes
from tests.faults.process import Process
from tests.faults.reflector import Page, Reflector, Span
from tests.support.waiting import eventually

whole = pytest.mark.whole_faults
RATE: Final = 1000
ALL_PODS: Final = "/api/v1/pods"
IN_WEB: Final = f"/api/v1/namespaces/{NAMESPACES[1]}/pods"
ALL_WIDGETS: Final = "/apis/example.com/v1/widgets"
SETTLED_WITHIN_S: Final = 30.0
ANSWERED_WITHIN_S: Final = 20.0
ZONE: Final = "topology.kubernetes.io/zone"
TOLD_AT_LEAST: Final = 0.5
"""Of all changes that were stored while an informer followed: all of them, unless somebody is behind."""


class Watched(NamedTuple):
    """What an informer is about."""

    path: str
    resource: str
    namespace: str = ""
    app: str = ""

    def means(self, change: Change) -> bool:
        """Whether an object that it is about had, or has, that key."""
        return change.resource == self.resource and self.namespace in ("", change.namespace)

    def selects(self, app: str) -> bool:
        """Whether it is about an object with that label; empty: one that is not there."""
        return bool(app) and self.app in ("", app)


WATCHED: Final = (
    Watched(ALL_PODS, PODS),
    Watched(IN_WEB, PODS, namespace=NAMESPACES[1]),
    Watched(ALL_PODS, PODS, app="blue"),
    Watched(ALL_WIDGETS, WIDGETS),
)


class Anew(NamedTuple):
    """An instance lost the stream, and read it anew: of several changes of an object in between it found the
    last. Whoever is cut off while he is told of it, and goes on with another instance, may be told there of
    the end of what he never knew."""

    after: int
    to: int

    def holds(self, version: int) -> bool:
        return self.after < version <= self.to


class Place:
    """A server, two instances of the Kubernetes API, informers of both, and who writes."""

    def __init__(self, server: EmbeddedServer, bus: Bus, instances: Sequence[Process], clients: Sequence[Client]):
        self.server = server
        self.bus = bus
        self.instances = instances
        self.clients = clients
        self.changes = Changes(bus, Random(1), RATE)
        self.reflectors = {
            Reflector(
                f"{one.path} {one.app} {'streaming' if streaming else 'listing'}",
                clients,
                one.path,
                f"app%3D{one.app}" if one.app else "",
                streaming=streaming,
            ): one
            for one in WATCHED
            for streaming in (False, True)
        }

    def read_anew(self) -> list[Anew]:
        """By all instances, from their logs; what they read at their start is no matter: who comes from
        before it has to list."""
        lines = [line for one in self.instances for line in one.log.read_text().splitlines() if '"listed"' in line]
        found = [Anew(record["after"], record["to"]) for record in map(msgspec.json.decode, lines)]
        return [one for one in found if one.after]

    async def killed(self, *numbers: int) -> None:
        """Instances are killed, and started again at once."""
        for number in numbers:
            self.instances[number].kill()
        for number in numbers:
            await self.instances[number].ended()
            await self.instances[number].start()
        for number in numbers:
            await self.instances[number].ready()

    async def server_killed(self) -> None:
        """The NATS server is killed and started again; wait until all have read what was written since."""
        await self.server.kill()
        await self.server.start()
        end = await self.stored_after(self.changes.last)
        await self.known_to_all(end)

    async def stored_after(self, sequence: int) -> int:
        """Wait until something is written again."""
        await eventually("writing goes on", lambda: self.changes.last > sequence, ANSWERED_WITHIN_S)
        return self.changes.last

    async def known_to_all(self, sequence: int) -> None:
        """Wait until all instances have come so far."""
        for client in self.clients:
            await eventually("it has come so far", lambda client=client: _reached(client, sequence), SETTLED_WITHIN_S)

    async def settled(self) -> None:
        """Nobody writes any more: wait until every informer was told of the last change that it is about."""
        last = {one: max((c.sequence for c in self.changes.stored if one.means(c)), default=0) for one in WATCHED}
        for reflector, one in self.reflectors.items():
            await eventually(
                f"{reflector.name} has come to {last[one]}; it is at {reflector.version}",
                lambda reflector=reflector, at=last[one]: reflector.version >= at,
                SETTLED_WITHIN_S,
            )


async def _reached(client: Client, sequence: int) -> bool:
    return await _position(client) >= sequence


async def _position(client: Client) -> int:
    """How far an instance has read."""
    page = msgspec.json.decode(await client.whole(f"{ALL_PODS}?limit=1"), type=Page)
    return int(page.metadata.resource_version)


@asynccontextmanager
async def standing(directory: Path) -> AsyncGenerator[Place]:
    """All of it, before anybody writes."""
    access = kube_access.prepare(directory, plan.parse("kube_api=2"), "lab", time.time())
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(embedded_server(directory / "nats"))
        known_as = BusSettings(servers=(server.url,), name="test", service="test")
        bus = await stack.enter_async_context(connect(known_as))
        await ensure_streams(bus)
        instances = [
            Process(
                kube_access.SERVICE,
                one.instance,
                directory / f"{one.instance}.log",
                {**access.environment(one.instance), "PODYARD_NATS_SERVERS": server.url},
                lambda said: None,
            )
            for one in access.endpoints
        ]
        clients = [Client(Path(access.kubeconfig), one.port) for one in access.endpoints]
        place = Place(server, bus, instances, clients)
        try:
            await place.changes.prepare()
            for instance in instances:
                await instance.start()
            for instance in instances:
                await instance.ready()
            yield place
        finally:
            for instance in instances:
                instance.kill()
            for instance in instances:
                if instance.pid:
                    await instance.ended()


@asynccontextmanager
async def followed(place: Place) -> AsyncGenerator[None]:
    """Changes are made and followed while the block runs; then all are told, and compared."""
    async with anyio.create_task_group() as tasks:
        for reflector in place.reflectors:
            tasks.start_soon(reflector.run)
        writing, written = anyio.CancelScope(), anyio.Event()

        async def write() -> None:
            with writing:
                await place.changes.run()
            written.set()

        tasks.start_soon(write)
        yield
        writing.cancel()
        await written.wait()
        await place.settled()
        tasks.cancel_scope.cancel()


async def compare(place: Place) -> None:
    """
    :raises AssertionError: with all that an informer was told wrongly
    """
    wrong: list[str] = []
    gaps = place.read_anew()
    for reflector, watched in place.reflectors.items():
        wrong += [f"{reflector.name}: {text}" for text in _differences(reflector, watched, place.changes)]
        wrong += [f"{reflector.name}: {text}" for text in _untrue(reflector, watched, place.changes, gaps)]
    for instance in place.instances:
        wrong += instance.complaints()
    for instance, client in zip(place.instances, place.clients, strict=True):
        listed = Reflector(f"a list of {instance.instance}", [client], ALL_PODS)
        await listed.list()
        wrong += [f"{listed.name}: {text}" for text in _differences(listed, WATCHED[0], place.changes)]
    assert not wrong, _told(wrong, place)


def _told(wrong: list[str], place: Place) -> str:
    """What is wrong, one of each beginning, and the way of each informer."""
    first = {text.partition(": ")[0]: text for text in reversed(wrong)}
    ways = [
        f"{reflector.name}: expired {reflector.expired}, resumed {reflector.resumed}, "
        + ", ".join(f"{span.begin}-{span.end}: {len(span.events)}" for span in reflector.spans)
        for reflector in place.reflectors
    ]
    read = [f"read anew from {one.after} to {one.to}" for one in place.read_anew()]
    last = f"{place.changes.last} was stored last"
    return "\n".join([f"{len(wrong)} faults", *first.values(), *wrong[:20], *ways, *read, last])


def _differences(reflector: Reflector, watched: Watched, changes: Changes) -> Iterator[str]:
    """What an informer knows that is not stored, and the other way round."""
    stored = {
        f"{namespace}/{name}": (namespace, name)
        for namespace, name in changes.keys(watched.resource)
        if watched.namespace in ("", namespace)
    }
    meant = {
        key: document
        for key, (namespace, name) in stored.items()
        if (document := changes.document(watched.resource, namespace, name)) is not None
        and watched.selects(document["metadata"]["labels"]["app"])
    }
    for key in sorted(meant.keys() ^ reflector.known.keys()):
        yield f"{key} is {'not known' if key in meant else 'known, and not stored'}"
    for key in meant.keys() & reflector.known.keys():
        found: Any = msgspec.json.decode(reflector.known[key][1])
        found["metadata"]["labels"].pop(ZONE, None)  # shown with a bound pod, and not stored
        for field in ("uid", "labels", "annotations"):
            if found["metadata"][field] != meant[key]["metadata"][field]:
                yield f"{key}: {field} {found['metadata'][field]}, stored {meant[key]['metadata'][field]}"
        node = changes.node(*stored[key]) if watched.resource == PODS else ""
        if found.get("spec", {}).get("nodeName", "") != node:
            yield f"{key}: nodeName {found['spec'].get('nodeName')!r}, stored {node!r}"


def _within(gaps: Sequence[Anew], version: int) -> bool:
    return any(one.holds(version) for one in gaps)


def _untrue(reflector: Reflector, watched: Watched, changes: Changes, gaps: Sequence[Anew]) -> Iterator[str]:
    """What was stored, not told, and not overtaken; what was told, and not stored; bookmarks before which
    something was not told; most of what was stored if that was not told."""
    later = _last_changes(watched, changes)
    overtaken: set[str] = set()
    stored = told = 0
    for span in reflector.spans:
        expected = set(_expected(span, watched, changes))
        seen = {(one.version, one.key) for one in span.events}
        stored, told = stored + len(expected), told + len(seen & expected)
        for version, key in sorted(expected - seen):
            overtaken.add(key)
            if later[key] == version:
                yield f"{key} @{version} was not told, from {span.begin} to {span.end}, and nothing came after it"
        for version, key in sorted(seen - expected):
            repeated = f"{watched.resource} {key}" in changes.repeated
            if not (repeated or _within(gaps, version) or (version + 1, key) in expected or key in overtaken):
                yield f"{key} @{version} was told, and is not stored"
        for bookmark, before in span.bookmarks:
            late = [one for one in span.events[before:] if one.version <= bookmark]
            if late:
                yield f"{late[0]} was told after the bookmark {bookmark}"
    for odd in reflector.odd:
        if odd.key not in overtaken and not _within(gaps, odd.version):
            yield f"{odd}"
    if told < TOLD_AT_LEAST * stored:
        yield f"{told} of {stored} changes were told"


def _last_changes(watched: Watched, changes: Changes) -> dict[str, int]:
    """Sequences of the last changes of all objects, by key."""
    return {f"{one.namespace}/{one.name}": one.sequence for one in sorted(filter(watched.means, changes.stored))}


def _expected(span: Span, watched: Watched, changes: Changes) -> Iterator[tuple[int, str]]:
    """Sequences, with keys, of what an informer has to be told of in that time."""
    apps: dict[tuple[str, str], str] = {}
    for change in sorted(change for change in changes.stored if watched.means(change)):
        before = apps.get((change.namespace, change.name), "")
        apps[change.namespace, change.name] = change.app
        if span.begin < change.sequence <= span.end and (watched.selects(before) or watched.selects(change.app)):
            yield change.sequence, f"{change.namespace}/{change.name}"


async def test_informers_know_what_the_stream_holds_whoever_is_killed(tmp_path: Path) -> None:
    async with standing(tmp_path) as place:
        async with followed(place):
            await place.stored_after(RATE)
            await place.killed(0)
            await place.server_killed()
            await place.killed(0, 1)
            await place.stored_after(place.changes.last + RATE // 2)
        await compare(place)
        told = {reflector.name: (reflector.expired, reflector.resumed) for reflector in place.reflectors}
        print(f"{len(place.changes.stored)} changes; expired, resumed: {told}")
        assert all(reflector.expired for reflector in place.reflectors), "all instances began anew"
        assert any(reflector.resumed for reflector in place.reflectors)
        assert any(span.bookmarks for reflector in place.reflectors for span in reflector.spans)


@whole
@pytest.mark.timeout(400)
async def test_informers_through_many_kills(tmp_path: Path) -> None:
    random = Random(2)
    async with standing(tmp_path) as place:
        async with followed(place):
            for number in range(12):
                await place.stored_after(place.changes.last + random.randrange(RATE, 4 * RATE))
                match number % 4:
                    case 0 | 2:
                        await place.killed(number // 2 % 2)
                    case 1:
                        await place.server_killed()
                    case _:
                        await place.killed(0, 1)
        await compare(place)
