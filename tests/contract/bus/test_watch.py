"""A watch on the real server: it misses nothing unnoticed, whatever is done to it."""

import asyncio
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Any, NoReturn

import anyio
import msgspec
import pytest

from podyard.bus import Bus, BusSettings, Delivery, EmbeddedServer, Outgoing, WatchSpec, connect, ensure_streams
from podyard.bus import watch as watch_module
from podyard.bus._api import ConsumerConfig, ConsumerInfo
from podyard.bus.errors import NotFound
from podyard.bus.feed import Feed
from podyard.proto import codec, subjects
from podyard.proto.facts import Nomination
from podyard.proto.operations import DeadLetter
from tests.contract.bus.readers import Reader, gone, message, spec, watching
from tests.support.buses import MEMORY, ConnectBus
from tests.support.waiting import eventually


async def test_lists_what_is_there_then_follows(bus: Bus):
    await bus.publish_many([message("a", b"1", expect=0), message("b", b"2", expect=0)])
    await bus.publish(message("a", b"3", expect=1))
    reader = Reader()
    async with watching(bus, reader) as watch:
        await reader.until(lambda: reader.synced_at)
        assert reader.content == {"cluster.pods.default.a": b"3", "cluster.pods.default.b": b"2"}
        assert reader.listings == [(3, "start")]
        assert reader.synced_at == [3] == [watch.position]

        ack = await bus.publish(message("c", b"4", expect=0))
        await reader.until(lambda: watch.position == ack.sequence)
        assert reader.content["cluster.pods.default.c"] == b"4"
        assert [d.sequence for d in reader.deliveries] == [2, 3, 4]
        assert watch.listings == 1


async def test_an_empty_stream_is_synced_at_once(bus: Bus):
    reader = Reader()
    async with watching(bus, reader, spec(heartbeat_s=5.0)):
        await reader.until(lambda: reader.synced_at, limit_s=2.0)
    assert reader.synced_at == [0]


async def test_nothing_of_interest_in_a_full_stream_is_synced_at_its_end(bus: Bus):
    await bus.publish(Outgoing("cluster.nodes._.n1", b"{}"))
    reader = Reader()
    async with watching(bus, reader, spec("cluster.pods.>", heartbeat_s=5.0)):
        await reader.until(lambda: reader.synced_at, limit_s=2.0)
    assert reader.synced_at == [1]


async def test_a_delivery_tells_predecessor_trace_and_time(bus: Bus):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await bus.publish(message("a", b"1", expect=0, trace=trace))
    await bus.publish(message("a", b"2", expect=1))
    await bus.publish(message("b", b"3"))
    reader = Reader()
    async with watching(bus, reader):
        await reader.until(lambda: reader.synced_at)
        assert [(d.subject[-1], d.predecessor, d.trace) for d in reader.deliveries] == [("a", 1, ""), ("b", None, "")]
        ack = await bus.publish(message("c", expect=0, trace=trace))
        await reader.until(lambda: len(reader.deliveries) == 3)
    last, again = reader.deliveries[-1], await bus.get("CLUSTER", "cluster.pods.default.c")
    assert again is not None
    assert (last.predecessor, last.trace, last.sequence) == (0, trace, ack.sequence)
    assert again.stored_at == pytest.approx(last.stored_at, abs=1e-5)


async def test_follows_other_subjects_than_it_listed(bus: Bus):
    """As the queue: bindings are listed, commits are followed."""
    await bus.publish_batch(
        [Outgoing("placement.bindings.d.a.u1", b"binding"), Outgoing("placement.commits.1", b"commit")]
    )
    reader = Reader()
    both = spec("placement.bindings.>", follow="placement.commits.>")
    async with watching(bus, reader, both) as watch:
        await reader.until(lambda: reader.synced_at)
        assert [d.payload for d in reader.deliveries[:1]] == [b"binding"]
        await bus.publish_batch(
            [Outgoing("placement.bindings.d.b.u2", b"binding 2"), Outgoing("placement.commits.2", b"commit 2")]
        )
        await reader.until(lambda: watch.position == 4)
    assert [d.payload for d in reader.deliveries] == [b"binding", b"commit", b"commit 2"]


async def test_what_was_written_between_listing_and_following_is_followed(bus: Bus):
    await bus.publish(Outgoing("placement.bindings.d.a.u1", b"binding"))
    reader = Reader()
    written: list[asyncio.Task[object]] = []

    def write_more(delivery: object) -> None:
        if not written:
            written.append(asyncio.create_task(bus.publish(Outgoing("placement.commits.1", b"commit"))))

    reader.on_deliver = write_more
    async with watching(bus, reader, spec("placement.bindings.>", follow="placement.commits.>")):
        await reader.until(lambda: len(reader.deliveries) == 2)
    assert reader.deliveries[1].payload == b"commit"


async def test_heartbeats_move_the_position_over_foreign_messages(bus: Bus):
    reader = Reader()
    async with watching(bus, reader, spec("cluster.pods.>")) as watch:
        await reader.until(lambda: reader.synced_at)
        acks = await bus.publish_many([Outgoing(f"cluster.nodes._.n{i}", b"{}") for i in range(50)])
        await reader.until(lambda: watch.position == 50)
        assert len(acks) == 50
        assert reader.advances[-1] == 50
        assert reader.deliveries == []


async def test_heartbeats_move_the_position_over_expired_messages(bus: Bus):
    """A marker that expires before anybody listed leaves no message, and still the listing ends."""
    await bus.publish(message("gone", b"", deleted=True, ttl_s=1))
    await gone(bus, "cluster.pods.default.gone")
    reader = Reader()
    async with watching(bus, reader) as watch:
        await reader.until(lambda: reader.synced_at)
        await reader.until(lambda: watch.position == 1)
    assert reader.deliveries == []


async def test_a_marker_is_delivered_as_deleted(bus: Bus):
    await bus.publish(message("a", b"1", expect=0))
    reader = Reader()
    async with watching(bus, reader):
        await reader.until(lambda: reader.synced_at)
        await bus.publish(message("a", b"1", expect=1, deleted=True, ttl_s=60))
        await reader.until(lambda: len(reader.deliveries) == 2)
    assert [d.deleted for d in reader.deliveries] == [False, True]
    assert reader.content == {}


async def test_a_killed_server_that_comes_back_is_read_on(bus: Bus, nats_server: EmbeddedServer):
    await bus.publish_many([message(f"p{i}") for i in range(300)])
    reader = Reader()
    async with watching(bus, reader) as watch:
        await reader.until(lambda: reader.synced_at)
        followed = await bus.publish(message("followed", expect=0))
        await reader.until(lambda: watch.position == followed.sequence)
        await nats_server.kill()
        await nats_server.start()
        ack = await bus.publish(message("after", expect=0))
        await reader.until(lambda: watch.position >= ack.sequence)
        assert len(reader.content) == 302
        assert watch.listings > 1, "the server kept the consumer in memory only: it must list again"


async def test_a_server_killed_during_the_listing_is_listed_again(bus: Bus, nats_server: EmbeddedServer):
    await bus.publish_many([message(f"p{i}", b"x" * 1000) for i in range(3000)])
    reader = Reader()
    killed: list[asyncio.Task[None]] = []

    def kill_once(delivery: object) -> None:
        if len(reader.deliveries) == 100:
            killed.append(asyncio.create_task(nats_server.kill()))

    reader.on_deliver = kill_once
    async with watching(bus, reader, spec("cluster.pods.>", follow="placement.>")):
        await reader.until(lambda: killed)
        await killed[0]
        await nats_server.start()
        await reader.until(lambda: reader.synced_at)
        assert len(reader.content) == 3000


async def test_a_stream_made_again_is_listed_again(bus: Bus):
    await bus.publish_many([message("a"), message("b")])
    reader = Reader()
    async with watching(bus, reader) as watch:
        await reader.until(lambda: reader.synced_at)
        await bus.api.call("STREAM.DELETE.CLUSTER", None, dict)
        await ensure_streams(bus)
        await bus.publish(message("c", b"new"))
        await reader.until(lambda: reader.content == {"cluster.pods.default.c": b"new"})
        await reader.until(lambda: watch.position == 1)
    assert any("made again" in reason for reason in reader.reasons), reader.reasons


@pytest.mark.parametrize("which", [0, 1], ids=["for the listing", "for what follows"])
async def test_a_stream_made_again_while_a_consumer_is_made_is_not_read_from_the_old_ones_position(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, which: int
):
    """The new one begins at 1: whoever waits for what comes after the old one's end has a view of nothing,
    and a position of nowhere."""
    await bus.publish_many([message(f"p{i}") for i in range(20)])
    create = bus.api.create_consumer
    made: list[str] = []

    async def make_again_before(stream: str, config: ConsumerConfig) -> ConsumerInfo:
        made.append(config.name)
        if len(made) == which + 1:
            await bus.api.call("STREAM.DELETE.CLUSTER", None, dict)
            await ensure_streams(bus)
            await bus.publish(message("new"))
        return await create(stream, config)

    monkeypatch.setattr(bus.api, "create_consumer", make_again_before)
    reader = Reader()
    what = msgspec.structs.replace(spec(), follow_subjects=("cluster.>", "placement.>"))
    async with watching(bus, reader, what) as watch:
        await reader.until(lambda: list(reader.content) == ["cluster.pods.default.new"])
        await reader.until(lambda: watch.position == 1)
        await bus.publish(message("newer"))
        await reader.until(lambda: watch.position == 2)
    assert reader.synced_at == [20, 1][1 - which :]
    assert "made again" in reader.reasons[1]


async def test_a_deleted_consumer_is_noticed(bus: Bus):
    await bus.publish(message("a"))
    reader = Reader()
    async with watching(bus, reader):
        await reader.until(lambda: reader.synced_at)
        await bus.publish(message("b"))
        await reader.until(lambda: len(reader.content) == 2)
        for name in (await bus.api.call("CONSUMER.NAMES.CLUSTER", None, dict))["consumers"]:
            with suppress(NotFound):  # the one that listed may just be going
                await bus.api.call(f"CONSUMER.DELETE.CLUSTER.{name}", None, dict)
        await bus.publish(message("c"))
        await reader.until(lambda: len(reader.content) == 3)
    assert "consumer is gone" in reader.reasons[1]


async def test_a_reader_that_blocks_while_much_is_written_loses_nothing(bus: Bus, nats_server: EmbeddedServer):
    """Nothing is queued on this side, so nothing is dropped: the server waits (flow control)."""
    written = threading.Event()

    async def write() -> None:
        async with connect(BusSettings(servers=(nats_server.url,), name="writer")) as writer:
            await writer.publish_many([message(f"p{i}", b"x" * 10_000) for i in range(3000)])

    def write_meanwhile() -> None:
        asyncio.run(write())
        written.set()

    reader = Reader()
    reader.on_deliver = lambda delivery: None if len(reader.deliveries) > 1 else assert_(written.wait(20))
    async with watching(bus, reader, spec(heartbeat_s=1)):
        await reader.until(lambda: reader.synced_at)
        thread = threading.Thread(target=write_meanwhile)
        thread.start()
        await reader.until(lambda: len(reader.content) == 3000)
        thread.join()
    assert reader.reasons == ["start"]


async def test_what_is_written_again_while_it_is_listed_is_not_missing_at_the_end(
    bus: Bus, nats_server: EmbeddedServer
):
    """A node that looked deleted for a moment would cost all its pods their places."""
    count, late = 2500, "cluster.pods.default.p2400"
    await bus.publish_many([message(f"p{i}", b"x" * 20_000) for i in range(count)])
    written = threading.Event()

    async def write() -> None:
        async with connect(BusSettings(servers=(nats_server.url,), name="writer")) as writer:
            await writer.publish_many([message(f"p{i}", b"again") for i in range(2300, count - 1)])
        written.set()

    at_the_end: list[int] = []

    class Looking(Reader):
        def synced(self, position: int) -> None:
            super().synced(position)
            at_the_end.append(len(self.content))

    reader = Looking()
    thread = threading.Thread(target=lambda: asyncio.run(write()))

    def block(delivery: object) -> None:
        """Flow control keeps the server from sending the late ones before they are written again."""
        if len(reader.deliveries) == 1:
            thread.start()
            assert written.wait(20)

    reader.on_deliver = block
    async with watching(bus, reader):
        await reader.until(lambda: reader.synced_at, limit_s=20)
    thread.join()
    assert at_the_end == [count]
    assert reader.content[late] == b"again"


def assert_(truth: bool) -> None:
    assert truth


class Loss:
    """Loses the first message whose subject ends in `.lost` between socket and subscription."""

    def __init__(self, bus: Bus) -> None:
        client = bus._link._client  # the fault is below the public face
        self._take = client._take
        self.lost = 0
        client._take = client._ps._take = self._lose_one  # type: ignore[method-assign]

    def _lose_one(self, sid: int, subject: bytes, *rest: bytes) -> bool:
        if subject.endswith(b".lost") and not self.lost:
            self.lost += 1
            return True
        return self._take(sid, subject, *rest)


async def test_a_lost_message_is_noticed_by_the_next_one(bus: Bus):
    reader = Reader()
    async with watching(bus, reader, spec(heartbeat_s=30)):
        await reader.until(lambda: reader.synced_at)
        loss = Loss(bus)
        await bus.publish_batch([message("lost"), message("next")])
        await reader.until(lambda: len(reader.content) == 2, limit_s=3)
    assert loss.lost == 1
    assert "were lost" in reader.reasons[1]


async def test_a_lost_message_is_noticed_by_a_heartbeat(bus: Bus):
    reader = Reader()
    async with watching(bus, reader):
        await reader.until(lambda: reader.synced_at)
        loss = Loss(bus)
        await bus.publish(message("lost"))
        await reader.until(lambda: "cluster.pods.default.lost" in reader.content)
    assert loss.lost == 1
    assert "1 messages, 0 arrived" in reader.reasons[1]


async def test_a_listing_ends_with_its_last_message_without_waiting_for_a_heartbeat(bus: Bus):
    await bus.publish_many([message(f"p{i}") for i in range(100)])
    reader = Reader()
    async with watching(bus, reader, spec(heartbeat_s=30)):
        await reader.until(lambda: reader.synced_at, limit_s=3)
    assert len(reader.content) == 100


async def test_a_listing_ends_at_a_heartbeat_when_the_awaited_message_never_comes(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    """The server may count a marker as pending that expires before it is sent
    (docs/rules.md, listing-ends-where-the-stream-ends)."""
    create = bus.api.create_consumer

    async def one_pending(stream: str, config: ConsumerConfig) -> ConsumerInfo:
        return msgspec.structs.replace(await create(stream, config), num_pending=1)

    monkeypatch.setattr(bus.api, "create_consumer", one_pending)
    reader = Reader()
    async with watching(bus, reader):
        await reader.until(lambda: reader.synced_at)
    assert reader.deliveries == []


ALL = msgspec.structs.replace(
    spec(), list_subjects=("cluster.>", "placement.>"), follow_subjects=("cluster.>", "placement.>")
)
"""Listed by one consumer without a filter."""


async def test_no_listing_beside_writers_is_short(bus: Bus, nats_server: EmbeddedServer):
    """The server counts what is written again as gone before it counts its new version as pending: with that
    trusted, some of a hundred listings lacked what was being written."""
    hot = [f"hot{i}" for i in range(4)]
    await bus.publish_many([message(f"p{i}") for i in range(200)] + [message(name) for name in hot])

    async def write(writer: Bus, name: str) -> NoReturn:
        while True:
            await writer.publish(message(name, b"again"))

    found: list[int] = []
    async with (
        connect(BusSettings(servers=(nats_server.url,), name="writer")) as writer,
        anyio.create_task_group() as tasks,
    ):
        for name in hot:
            tasks.start_soon(write, writer, name)
        for what in [ALL, spec()] * 300:
            reader = AtTheEnd()
            async with watching(bus, reader, what):
                await reader.until_synced()
            found.extend(reader.listed)
        tasks.cancel_scope.cancel()
    assert Counter(found) == {204: 600}


class AtTheEnd(Reader):
    """Remembers what it had read when the listing was said to be complete."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[int] = []

    def synced(self, position: int) -> None:
        super().synced(position)
        self.listed.append(len(self.content))


async def test_a_listing_is_not_complete_before_the_streams_last_message_whatever_the_server_counts(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    await bus.publish_many([message(f"p{i}") for i in range(3)])
    on_message = watch_module.Watch.on_message
    monkeypatch.setattr(
        watch_module.Watch,
        "on_message",
        lambda self, delivery, pending: on_message(self, delivery, max(0, pending - 1)),
    )
    reader = AtTheEnd()
    async with watching(bus, reader, ALL):
        await reader.until(lambda: reader.synced_at)
    assert (reader.listed, reader.synced_at) == ([3], [3])


async def test_a_heartbeat_that_has_not_passed_the_streams_end_completes_nothing(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    await bus.publish_many([message(f"p{i}") for i in range(3)])
    opened = Feed.open

    async def early(feed: Feed, *about: Any) -> int:
        feed._owner.on_heartbeat(0)
        return await opened(feed, *about)

    monkeypatch.setattr(Feed, "open", early)
    reader = AtTheEnd()
    async with watching(bus, reader, ALL):
        await reader.until(lambda: reader.synced_at)
    assert (reader.listed, reader.synced_at) == ([3], [3])


async def test_a_listing_looks_twice_where_the_stream_ends(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    """Once more looks who follows, since another consumer is made."""
    await bus.publish(message("a"))
    stream_info, looks = bus.api.stream_info, list[int]()
    reader = Reader()

    async def counted(*about: Any) -> Any:
        looks.append(len(reader.synced_at))
        return await stream_info(*about)

    monkeypatch.setattr(bus.api, "stream_info", counted)
    async with watching(bus, reader, ALL):
        await eventually("the last look", lambda: len(looks) == 3)
    assert looks == [0, 0, 1]


async def test_a_server_that_ends_before_the_stream_did_is_left(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch_module, "STALE_AFTER_S", 0.2)
    await bus.publish(message("first"))
    stream_info, ends = bus.api.stream_info, [9, 9]

    async def longer(*about: Any) -> Any:
        info = await stream_info(*about)
        return (
            msgspec.structs.replace(info, state=msgspec.structs.replace(info.state, last_seq=ends.pop()))
            if ends
            else info
        )

    monkeypatch.setattr(bus.api, "stream_info", longer)
    reader = AtTheEnd()
    async with watching(bus, reader, ALL):
        await reader.until(lambda: reader.synced_at)
    assert (reader.listed, reader.synced_at) == ([1], [1])
    assert "ends at 1, the stream did at 9" in reader.reasons[-1]


async def test_what_comes_after_the_listings_end_is_delivered_once(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    """A listing that writers outrun ends with more pending; its consumer sends that on, and the following one
    has it too."""
    monkeypatch.setattr(watch_module, "MOST_ROUNDS", 0)
    await bus.publish(message("first"))
    create = bus.api.create_consumer

    async def write_before(stream: str, config: ConsumerConfig) -> ConsumerInfo:
        if bus_is_listing.pop(0):
            await bus.publish_many([message(f"p{i}") for i in range(50)])
        return await create(stream, config)

    bus_is_listing = [True, False]
    monkeypatch.setattr(bus.api, "create_consumer", write_before)
    reader = Reader()
    what = msgspec.structs.replace(spec(), follow_subjects=("cluster.>", "placement.>"))
    async with watching(bus, reader, what) as watch:
        await reader.until(lambda: watch.position == 51)
        await reader.until(lambda: len(reader.deliveries) >= 51)
        await bus.publish(message("last"))
        await reader.until(lambda: watch.position == 52)
    assert [delivery.sequence for delivery in reader.deliveries] == list(range(1, 53))
    assert len(reader.synced_at) == 1


async def test_several_subjects_are_listed_through_one_filter_and_picked_here(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    """With several filters a listing of 31,000 messages took the server a minute (nats-server 2.15), and a
    take-over with it."""
    create = bus.api.create_consumer
    filters: list[tuple[str, ...]] = []

    async def note(stream: str, config: ConsumerConfig) -> ConsumerInfo:
        filters.append(config.filter_subjects)
        return await create(stream, config)

    monkeypatch.setattr(bus.api, "create_consumer", note)
    await bus.publish_many([message("a"), Outgoing("cluster.nodes._.n1", b"{}"), Outgoing("placement.fence", b"{}")])
    await bus.publish_many(
        [Outgoing("cluster.podstatus.n1.default.a.u1", b"{}"), Outgoing("placement.commits.1", b"{}")]
    )
    reader = Reader()
    wanted = ("cluster.pods.>", "placement.fence")
    what = WatchSpec(stream="CLUSTER", list_subjects=wanted, follow_subjects=wanted, heartbeat_s=0.1)
    async with watching(bus, reader, what) as watch:
        await reader.until(lambda: reader.synced_at)
        assert sorted(reader.content) == ["cluster.pods.default.a", "placement.fence"]
        assert (reader.synced_at, watch.position) == ([5], 5)
        await bus.publish_many([Outgoing("cluster.nodes._.n2", b"{}"), message("b")])
        await reader.until(lambda: watch.position == 7)
        assert sorted(reader.content) == ["cluster.pods.default.a", "cluster.pods.default.b", "placement.fence"]
    assert filters == [(">",), wanted]


async def test_silence_is_told_and_ends(bus: Bus, nats_server: EmbeddedServer):
    reader = Reader()
    async with watching(bus, reader) as watch:
        await reader.until(lambda: reader.synced_at)
        nats_server.pause()
        try:
            await reader.until(lambda: reader.contacts == [False], limit_s=4.0)
        finally:
            nats_server.resume()
        await reader.until(lambda: reader.contacts == [False, True])
        ack = await bus.publish(message("a"))
        await reader.until(lambda: watch.position >= ack.sequence)
        assert list(reader.content) == ["cluster.pods.default.a"]


async def test_a_reader_may_ask_for_a_listing(bus: Bus):
    await bus.publish(message("a"))
    reader = Reader()
    async with watching(bus, reader) as watch:
        await reader.until(lambda: reader.synced_at)
        watch.relist("the fence is not mine")
        await reader.until(lambda: len(reader.synced_at) == 2)
    assert reader.reasons == ["start", "the fence is not mine"]
    assert reader.content == {"cluster.pods.default.a": b"{}"}


async def test_a_watch_waits_for_its_stream(connect_bus: ConnectBus):
    bus = await connect_bus()
    reader = Reader()
    async with watching(bus, reader):
        await bus.request("$JS.API.INFO", b"")
        await ensure_streams(bus)
        await bus.publish(message("a"))
        await reader.until(lambda: len(reader.content) == 1)


async def test_an_unreadable_message_becomes_a_dead_letter_and_the_watch_goes_on(bus: Bus):
    reader = Reader()
    reader.on_deliver = lambda delivery: codec.decode(Nomination, delivery.payload) and None
    subject = subjects.nomination("default", "web", "u1")
    good = codec.encode(Nomination(namespace="default", name="web", uid="u1", node="n1"))
    async with watching(bus, reader) as watch:
        await reader.until(lambda: reader.synced_at)
        await bus.publish_many(
            [Outgoing(subject, b"{nonsense"), Outgoing(subjects.nomination("default", "web", "u2"), good)]
        )
        await reader.until(lambda: len(reader.deliveries) == 2)
        watch.relist("to meet the poison twice")
        await reader.until(lambda: len(reader.deliveries) == 4)
        await bus.publish(message("last", good))
        await reader.until(lambda: len(reader.deliveries) == 5)
    stored = await eventually("a dead letter", lambda: bus.get("DEAD", "dead.test"))
    assert stored is not None
    letter = codec.decode(DeadLetter, stored.payload)
    assert (letter.subject, letter.sequence, letter.payload) == (subject, 1, b"{nonsense")
    assert "Nomination" in letter.reason
    assert await bus.last_sequence("DEAD") == 1


async def test_what_a_reader_raises_comes_out_of_the_watch(bus: Bus):
    await bus.publish(message("a"))
    reader = Reader()

    def fail(delivery: object) -> None:
        raise RuntimeError("a bug of the reader")

    reader.on_deliver = fail
    with pytest.raises(RuntimeError, match="a bug of the reader"):
        async with asyncio.timeout(5):
            await bus.watch(spec(), reader).run()


LARGE = 20_000
MANY = 2_500
ON_THE_WAY = 4 * 1024 * 1024
"""Bytes that may be on their way to a reader (docs/rules.md, little-is-on-its-way)."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sequences at which consumers begin, as they are made."""
    found: list[int] = []
    open_feed = Feed.open

    async def counting(feed: Feed, api: Any, subjects: tuple[str, ...], start: int) -> int:
        found.append(start)
        return await open_feed(feed, api, subjects, start)

    monkeypatch.setattr(Feed, "open", counting)
    return found


def least_consumers(kind: str) -> int:
    """How many it takes at least to read what `much` writes; on the server in memory no feed is ever full."""
    return 1 if kind == MEMORY else MANY * LARGE // (2 * ON_THE_WAY)


async def much(bus: Bus) -> None:
    """More than ten times what may be on its way to a reader."""
    results = await bus.publish_many([message(f"p{i}", b"x" * LARGE) for i in range(MANY)])
    assert all(not isinstance(result, Exception) for result in results)


async def test_a_large_listing_is_read_once_by_one_consumer_after_the_other(bus: Bus, bus_kind: str, opened: list[int]):
    await much(bus)
    reader = Reader()
    async with watching(bus, reader):
        await reader.until(lambda: reader.synced_at, limit_s=20)
        assert reader.reasons == ["start"]
        assert len(opened) >= least_consumers(bus_kind)
        assert [delivery.sequence for delivery in reader.deliveries] == list(range(1, MANY + 1))
        await bus.publish(message("p0", b"again"))
        await reader.until(lambda: len(reader.deliveries) == MANY + 1)


async def test_what_is_followed_goes_on_by_one_consumer_after_the_other(bus: Bus, bus_kind: str, opened: list[int]):
    reader = Reader()
    async with watching(bus, reader):
        await reader.until_synced()
        await much(bus)
        await reader.until(lambda: len(reader.content) == MANY, limit_s=20)
        assert reader.reasons == ["start"]
        assert len(opened) > least_consumers(bus_kind), "the first one listed"
        assert [delivery.sequence for delivery in reader.deliveries] == list(range(1, MANY + 1))


async def test_who_is_slow_to_read_is_soon_answered_all_the_same(bus: Bus):
    """An answer comes behind what was on its way to the reader before it: with the server's own bound, 32
    MiB, a lease would end that is renewed while its holder lists."""
    await much(bus)
    asked_at, answered_at = 0, 0

    async def ask() -> None:
        nonlocal asked_at, answered_at
        asked_at = len(reader.deliveries)
        await bus.api.stream_info("CLUSTER")
        answered_at = len(reader.deliveries)

    def slowly(delivery: Delivery) -> None:
        time.sleep(0.001)  # the handling of each message holds the event loop up, as that of a real reader does
        if len(reader.deliveries) == MANY // 2:
            tasks.start_soon(ask)

    reader = Reader()
    reader.on_deliver = slowly
    async with watching(bus, reader), anyio.create_task_group() as tasks:
        await reader.until_synced()
    assert MANY // 2 <= asked_at < answered_at
    assert answered_at - asked_at <= 2 + ON_THE_WAY / LARGE


async def test_a_stream_that_is_made_again_while_another_consumer_is_made_is_listed_anew(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    reader = Reader()
    opened = 0
    open_feed = Feed.open
    all_stored = anyio.Event()

    async def replacing(feed: Feed, api: Any, subjects: tuple[str, ...], start: int) -> int:
        nonlocal opened
        opened += 1
        if opened == 3:  # the first one that follows was full
            await all_stored.wait()
            await bus.api.call("STREAM.DELETE.CLUSTER", None, dict[str, Any])
            await ensure_streams(bus)
            await bus.publish_many([message(f"q{i}", b"new") for i in range(MANY)])
        return await open_feed(feed, api, subjects, start)

    monkeypatch.setattr(Feed, "open", replacing)
    async with watching(bus, reader):
        await reader.until_synced()
        await much(bus)
        all_stored.set()
        await reader.until(lambda: len(reader.synced_at) == 2, limit_s=20)
        assert reader.content == {f"cluster.pods.default.q{i}": b"new" for i in range(MANY)}
    assert "made again" in reader.reasons[1]
