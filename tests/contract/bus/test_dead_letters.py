"""Dead letters: kept once, whole enough to read, also over a NATS that is away."""

import asyncio
import logging

import pytest

from podyard.bus import Bus, BusSettings, Delivery, EmbeddedServer, Request, WatchSpec, connect, ensure_streams
from podyard.bus.dead_letters import KEPT_PAYLOAD_BYTES, MOST_LINES, WAITING
from podyard.proto import codec
from podyard.proto.operations import DeadLetter
from tests.contract.bus.readers import Reader, watching
from tests.support.buses import ConnectBus
from tests.support.waiting import eventually

LETTERS = WatchSpec(stream="DEAD", list_subjects=("dead.>",), follow_subjects=("dead.>",), heartbeat_s=0.1)


def letters(reader: Reader) -> list[DeadLetter]:
    return [codec.decode(DeadLetter, delivery.payload) for delivery in reader.deliveries]


async def test_a_message_is_kept_with_its_reason(bus: Bus):
    delivery = Delivery("cluster.pods.d.a", b"\xff\x00", 7, headers={"traceparent": "00-1"})
    bus.dead_letter_soon("queue", delivery, "not a ClusterEvent")
    reader = Reader()
    async with watching(bus, reader, LETTERS):
        await reader.until(lambda: reader.deliveries)
    assert reader.deliveries[0].subject == "dead.queue"
    letter = letters(reader)[0]
    assert (letter.subject, letter.sequence, letter.reason) == ("cluster.pods.d.a", 7, "not a ClusterEvent")
    assert (letter.payload, letter.payload_bytes, letter.headers) == (b"\xff\x00", 2, {"traceparent": "00-1"})
    assert letter.at > 1.7e9


async def test_a_stored_message_is_kept_once_a_service(bus: Bus):
    delivery = Delivery("cluster.pods.d.a", b"x", 7)
    for service in ("queue", "queue", "binder"):
        bus.dead_letter_soon(service, delivery, "again")
    bus.dead_letter_soon("queue", Request("svc.x", b"first"), "requests are told apart by nothing")
    bus.dead_letter_soon("queue", Request("svc.x", b"second"), "requests are told apart by nothing")
    reader = Reader()
    async with watching(bus, reader, LETTERS):
        await reader.until(lambda: len(reader.deliveries) == 4)
    assert [(letter.service, letter.payload) for letter in letters(reader)] == [
        ("queue", b"x"),
        ("binder", b"x"),
        ("queue", b"first"),
        ("queue", b"second"),
    ]


async def test_of_thousands_at_once_few_are_told_and_the_others_counted(bus: Bus, caplog: pytest.LogCaptureFixture):
    """A reader meets each of them again when it lists again: what was lost is kept then."""
    all_of_them = [Delivery(f"cluster.pods.d.p{number}", b"x", number) for number in range(1, 2 * WAITING + 1)]
    reader = Reader()
    async with watching(bus, reader, LETTERS):
        for delivery in all_of_them:
            bus.dead_letter_soon("queue", delivery, "bad")
        await eventually("it is said how many are lost", lambda: f"{WAITING} dead letters are lost" in caplog.text)
        assert f"{2 * WAITING - MOST_LINES} more dead letters within a second" in caplog.text
        assert caplog.text.count("dead letter on cluster.pods") == MOST_LINES
        await reader.until(lambda: len(reader.deliveries) == WAITING)
        for delivery in all_of_them:
            bus.dead_letter_soon("queue", delivery, "bad")
        await reader.until(lambda: len(reader.deliveries) == 2 * WAITING)
    assert sorted(letter.sequence for letter in letters(reader)) == [one.sequence for one in all_of_them]


async def test_a_large_payload_is_cut(bus: Bus):
    bus.dead_letter_soon("api", Request("svc.x", b"x" * 200_000), "too much")
    reader = Reader()
    async with watching(bus, reader, LETTERS):
        await reader.until(lambda: reader.deliveries)
    letter = letters(reader)[0]
    assert (len(letter.payload), letter.payload_bytes) == (KEPT_PAYLOAD_BYTES, 200_000)


async def test_they_wait_for_a_server_that_is_away(
    bus: Bus, connect_bus: ConnectBus, nats_server: EmbeddedServer, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    hasty = await connect_bus("hasty", request_timeout_s=0.1)
    await nats_server.kill()
    hasty.dead_letter_soon("queue", Delivery("cluster.pods.d.a", b"x", 7), "while NATS was away")
    await eventually("the log says so", lambda: "a dead letter waits" in caplog.text)
    await nats_server.start()
    reader = Reader()
    async with watching(bus, reader, LETTERS):
        await reader.until(lambda: reader.deliveries)
    assert [letter.reason for letter in letters(reader)] == ["while NATS was away"]


async def test_what_waits_is_stored_before_the_connection_ends(nats_server: EmbeddedServer, bus: Bus):
    async with connect(BusSettings(servers=(nats_server.url,), name="ending")) as ending:
        for number in range(50):
            ending.dead_letter_soon("queue", Request("svc.x", str(number).encode()), "the last words")
    reader = Reader()
    async with watching(bus, reader, LETTERS):
        await asyncio.wait_for(reader.until(lambda: reader.synced_at), 5)
        assert len(reader.deliveries) == 50


async def test_what_was_lost_within_the_last_second_is_told_at_the_end(
    nats_server: EmbeddedServer, caplog: pytest.LogCaptureFixture
):
    async with connect(BusSettings(servers=(nats_server.url,), name="ending")) as ending:
        await ensure_streams(ending)
        for number in range(WAITING + 5):
            ending.dead_letter_soon("queue", Request("svc.x", str(number).encode()), "the last words")
    assert "5 dead letters are lost" in caplog.text
