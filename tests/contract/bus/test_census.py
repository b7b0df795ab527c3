"""What a killed server brings back, and that no listing shows it where a census tells of it."""

import logging
from unittest import mock

import pytest

from podyard.bus import Bus, Delivery, Outgoing, WatchSpec, census, ensure_streams
from podyard.bus._api import ConsumerConfig, ConsumerInfo
from podyard.proto import codec, streams, subjects
from podyard.proto.operations import DeadLetter
from tests.contract.bus.readers import Reader, gone, message, spec, watching
from tests.memory_nats import MemoryServer
from tests.support.buses import Server
from tests.support.waiting import eventually

CLUSTER = streams.CLUSTER.name
OLD, KEPT = "cluster.pods.default.old", "cluster.pods.default.kept"


async def killed(server: Server) -> None:
    """The server dies, and is there again."""
    if isinstance(server, MemoryServer):
        server.bring_back(CLUSTER)
    else:
        await server.kill()
        await server.start()


async def deleted(bus: Bus, name: str = "old") -> None:
    """An object is made and deleted, and its marker has expired."""
    ack = await bus.publish(message(name, b"old", expect=0))
    await bus.publish(message(name, b"", expect=ack.sequence, deleted=True, ttl_s=1))
    await gone(bus, f"cluster.pods.default.{name}")


async def counted(bus: Bus, *living: int, position: int) -> int:
    """A census is stored; its sequence."""
    found = await bus.get(CLUSTER, subjects.CENSUS)
    expect = 0 if found is None else found.sequence
    payload = census.encode(position, living, 1.0)
    return (await bus.publish(Outgoing(subjects.CENSUS, payload, expect=expect))).sequence


async def listed(bus: Bus, back: list[Delivery] | None = None) -> set[str]:
    """What a new reader finds, the census apart.

    :param back: where it is told what it passed over
    """
    reader = Reader()
    watch = bus.watch(spec(), reader, on_came_back=(back if back is not None else list[Delivery]()).append)
    async with watching(bus, reader, watch=watch):
        await reader.until(lambda: reader.synced_at)
    return {*reader.content} - {subjects.CENSUS}


async def test_a_killed_server_brings_back_what_was_replaced_and_not_what_expired(bus: Bus, bus_server: Server):
    """The real server knows where its first message is: what was deleted before that stays away."""
    await bus.publish(message("first"))
    await deleted(bus)
    await bus.publish(message("kept", b"1", expect=0))
    last = await bus.publish(message("kept", b"2", expect=4))
    await bus.publish(message("short", ttl_s=1))
    await gone(bus, "cluster.pods.default.short")
    await killed(bus_server)
    assert await listed(bus) == {"cluster.pods.default.first", OLD, KEPT}
    old, kept = await bus.get(CLUSTER, OLD), await bus.get(CLUSTER, KEPT)
    assert old is not None
    assert kept is not None
    assert (old.sequence, old.payload) == (2, b"old")
    assert (kept.sequence, kept.payload) == (last.sequence, b"2")


async def test_a_listing_passes_over_what_a_census_lacks_and_says_so(
    bus: Bus, bus_server: Server, caplog: pytest.LogCaptureFixture
):
    await bus.publish(message("kept"))
    await deleted(bus)
    await counted(bus, 1, position=3)
    await killed(bus_server)
    back: list[Delivery] = []
    with caplog.at_level(logging.WARNING, "podyard.bus"):
        assert await listed(bus, back) == {KEPT}
    assert [(one.subject, one.sequence, one.payload) for one in back] == [(OLD, 2, b"old")]
    told = [one.getMessage() for one in caplog.records if "passed over" in one.getMessage()]
    words = "messages that were deleted came back with the server and are passed over, first"
    assert told == [f"watch of CLUSTER: 1 {words} {OLD} @2"]


async def test_a_reader_that_lists_again_asks_for_the_newest_census(bus: Bus, bus_server: Server):
    await bus.publish(message("kept"))
    await counted(bus, 1, position=1)
    reader = Reader()
    async with watching(bus, reader) as watch:
        await reader.until(lambda: reader.synced_at)
        await deleted(bus)
        await counted(bus, 1, position=4)
        await killed(bus_server)
        await reader.until(lambda: len(reader.synced_at) == 2)
        assert {*reader.content} == {KEPT, subjects.CENSUS}
        assert watch.came_back == 1
        ack = await bus.publish(message("old", b"new", expect=3))
        await reader.until(lambda: watch.position == ack.sequence)
        assert reader.content[OLD] == b"new", "whoever writes it again is seen"
        watch.relist("the test asks for it")
        await reader.until(lambda: len(reader.synced_at) == 3)
        assert reader.content[OLD] == b"new"
        assert watch.came_back == 0


async def test_what_comes_back_between_listing_and_following_is_passed_over(
    bus: Bus, bus_server: Server, monkeypatch: pytest.MonkeyPatch
):
    """What is followed begins behind the last message that was listed, and that may be long ago."""
    await bus.publish(message("kept"))
    await deleted(bus)
    position = await bus.last_sequence(CLUSTER)
    await counted(bus, 1, position=position)
    create, made = bus.api.create_consumer, list[str]()

    async def killed_before(stream: str, config: ConsumerConfig) -> ConsumerInfo:
        if made:
            await killed(bus_server)
        made.append(config.name)
        return await create(stream, config)

    monkeypatch.setattr(bus.api, "create_consumer", killed_before)
    reader, back = Reader(), list[Delivery]()
    what = spec("cluster.pods.>", follow="cluster.pods.*.*")
    async with watching(bus, reader, watch=bus.watch(what, reader, on_came_back=back.append)) as watch:
        await eventually("that the server was killed and is back", lambda: len(made) == 2)
        ack = await bus.publish(message("new"))
        await reader.until(lambda: watch.position == ack.sequence)
    assert len(made) == 2, "the reader has not listed again"
    assert {*reader.content} == {KEPT, "cluster.pods.default.new"}
    assert [one.sequence for one in back] == [2]


@pytest.mark.parametrize("last", ["cluster.pods.default.other", "placement.bindings.d.a.u"])
async def test_a_listing_from_a_server_that_is_behind_the_census_ends_when_it_has_got_there(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, last: str
):
    """It has an old version, and not yet the one that lives: what was written again would be missing. That it
    is there is seen by a message, or by a heartbeat that has passed one for others."""
    await bus.publish(message("kept"))
    await bus.publish(message("old", b"old"))
    newest = Delivery(subjects.CENSUS, census.encode(4, (1, 3, 4), 1.0), 5)
    monkeypatch.setattr(bus.api, "last_message", mock.AsyncMock(return_value=newest))
    reader, back = Reader(), list[Delivery]()
    async with watching(bus, reader, watch=bus.watch(spec(), reader, on_came_back=back.append)):
        await eventually("that the old version is passed over", lambda: back)
        await bus.publish(message("old", b"new"))
        await reader.until(lambda: len(reader.deliveries) == 2)
        assert not reader.synced_at, "one message up to the census' position has not come"
        await bus.publish(Outgoing(last, b"{}"))
        await reader.until(lambda: reader.synced_at)
        assert {KEPT: b"{}", OLD: b"new"}.items() <= reader.content.items()
    assert [one.sequence for one in back] == [2]


async def test_what_has_a_ttl_and_what_lies_behind_the_position_is_listed(bus: Bus):
    """A census does not tell of it: the server lets it expire again."""
    await bus.publish(message("marked", b"", deleted=True, ttl_s=60))
    await bus.publish(message("kept"))
    await counted(bus, 2, position=2)
    await bus.publish(message("new"))
    reader = Reader()
    async with watching(bus, reader):
        await reader.until(lambda: reader.synced_at)
    assert [one.sequence for one in reader.deliveries] == [1, 2, 3, 4]


async def test_several_subjects_are_passed_over_alike(bus: Bus):
    for name in ("a", "b"):
        await bus.publish(message(name))
    await bus.publish(Outgoing("placement.bindings.d.a.u", b""))
    await bus.publish(Outgoing("placement.bindings.d.b.u", b""))
    await counted(bus, 2, 4, position=4)
    reader, back = Reader(), list[Delivery]()
    both = WatchSpec(
        stream=CLUSTER,
        list_subjects=("cluster.pods.>", "placement.bindings.>"),
        follow_subjects=("cluster.pods.>", "placement.commits.>"),
        heartbeat_s=0.1,
    )
    async with watching(bus, reader, watch=bus.watch(both, reader, on_came_back=back.append)):
        await reader.until(lambda: reader.synced_at)
    assert [one.sequence for one in reader.deliveries] == [2, 4]
    assert [one.sequence for one in back] == [1, 3]


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        pytest.param(b"rubbish", "not a Census", id="rubbish"),
        pytest.param(census.encode(2, (), 1.0), "position 2 is not before its own 2", id="from another stream"),
    ],
)
async def test_a_census_that_cannot_be_is_none_and_becomes_a_dead_letter(bus: Bus, payload: bytes, why: str):
    await bus.publish(message("kept"))
    await bus.publish(Outgoing(subjects.CENSUS, payload, expect=0))
    assert await listed(bus) == {KEPT}
    letter = await eventually("the dead letter", lambda: bus.get("DEAD", "dead.test"))
    found = codec.decode(DeadLetter, letter.payload)
    assert (found.subject, found.sequence) == (subjects.CENSUS, 2)
    assert why in found.reason


async def test_a_stream_that_is_made_again_begins_without(bus: Bus):
    await deleted(bus)
    await counted(bus, position=2)
    await bus.api.call("STREAM.DELETE.CLUSTER", None, dict)
    await ensure_streams(bus)
    await bus.publish(message("kept"))
    assert await listed(bus) == {KEPT}


async def test_no_other_stream_is_asked_for_a_census(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    last_message = bus.api.last_message

    async def noted(stream: str, subject: str, timeout_s: float | None = None) -> Delivery | None:
        asked.append(f"{stream} {subject}")
        return await last_message(stream, subject, timeout_s)

    monkeypatch.setattr(bus.api, "last_message", noted)
    for stream, subject in ((streams.K8SEVENTS, "k8sevents.>"), (streams.CLUSTER, "cluster.>")):
        reader = Reader()
        what = WatchSpec(stream=stream.name, list_subjects=(subject,), follow_subjects=(subject,))
        async with watching(bus, reader, what):
            await reader.until(lambda reader=reader: reader.synced_at)
    assert asked == [f"CLUSTER {subjects.CENSUS}"]
