"""A server that is killed finds again what was deleted, once its markers have expired (nats-server#8505):
nobody sees it, and it is deleted again."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from podyard.bus import Bus, BusSettings, EmbeddedServer, Outgoing, census, connect, embedded_server, ensure_streams
from podyard.proto import streams, subjects
from podyard.proto.facts import Nomination
from podyard.workloads.service import SERVICE
from tests.contract.bus.readers import Reader, gone, spec, watching
from tests.support import stored
from tests.support.services import make_service, running
from tests.support.waiting import eventually

MARKERS_S: Final = 4
OBJECTS: Final = 40
STREAM: Final = streams.CLUSTER.name
NAMESPACES: Final = [{"metadata": {"name": f"gone-{index}", "uid": f"u{index}"}} for index in range(OBJECTS)]
FACT: Final = Nomination(namespace="default", name="web", uid="u", node="n", priority=0, epoch=1)
KEPT: Final = {"metadata": {"name": "kept", "uid": "kept"}}
KEPT_SUBJECT: Final = "cluster.namespaces._.kept"


@asynccontextmanager
async def stand(directory: Path) -> AsyncGenerator[tuple[Bus, EmbeddedServer]]:
    """A server of its own, with markers that soon expire."""
    async with (
        embedded_server(directory / "nats") as server,
        connect(BusSettings(servers=(server.url,), name="workloads", marker_ttl_s=MARKERS_S)) as bus,
    ):
        await ensure_streams(bus)
        yield bus, server


async def deleted(bus: Bus) -> list[str]:
    """Objects and a fact are made, and deleted; returns their subjects once nothing is there, not even their
    markers."""
    await bus.publish(stored.version("namespaces", KEPT).but(expect=0))
    made = [stored.version("namespaces", found) for found in NAMESPACES] + [stored.nomination(FACT)]
    acks = [await bus.publish(one.but(expect=0)) for one in made]
    for one, ack in zip(made, acks, strict=True):
        await bus.publish(Outgoing(one.subject, one.payload, expect=ack.sequence, deleted=True, expires=True))
    return [one.subject for one in made]


async def killed(bus: Bus, server: EmbeddedServer, marked: list[str]) -> None:
    """The markers expire, then the server is killed, and started."""
    for subject in marked:
        await gone(bus, subject)
    await server.kill()
    await server.start()


async def listed(bus: Bus) -> set[str]:
    """What a new reader finds, the census apart."""
    reader = Reader()
    async with watching(bus, reader, spec()):
        await reader.until(lambda: reader.synced_at)
    return {*reader.content} - {subjects.CENSUS}


async def test_without_a_census_what_was_deleted_is_back(tmp_path: Path) -> None:
    """Should this fail, the server has learnt it, and censuses have had their time."""
    async with stand(tmp_path) as (bus, server):
        there = await deleted(bus)
        await killed(bus, server, there)
        assert await listed(bus) == {*there, KEPT_SUBJECT}


async def test_with_a_census_nobody_sees_what_is_back_and_it_is_deleted_again(tmp_path: Path) -> None:
    async with stand(tmp_path) as (bus, server):
        there = await deleted(bus)
        last = await bus.last_sequence(STREAM)

        async def counted() -> bool:
            found = await bus.get(STREAM, subjects.CENSUS)
            return found is not None and census.decode(found.payload).position >= last

        async def clean() -> bool:
            found = [await bus.get(STREAM, subject) for subject in there]
            return all(one is None or one.deleted for one in found)

        async with running(make_service(SERVICE, bus)):
            await eventually("a census", counted)
        await killed(bus, server, there)
        assert not await clean(), "they are back"
        assert await listed(bus) == {KEPT_SUBJECT}

        async with running(make_service(SERVICE, bus)):
            await eventually("that they are deleted again", clean, within_s=20)
        await killed(bus, server, there)
        assert await listed(bus) == {KEPT_SUBJECT}, "also when those markers have expired"
        again = await bus.get(STREAM, there[0])
        await bus.publish(
            stored.version("namespaces", NAMESPACES[0]).but(expect=0 if again is None else again.sequence)
        )
        assert await listed(bus) == {KEPT_SUBJECT, there[0]}, "who is made again is seen"
