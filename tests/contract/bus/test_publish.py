"""Publishing on the real server: single, pipelined, atomic batches; what is refused, and what stays
unclear."""

import asyncio
import itertools
import time

import pytest

from podyard.bus import (
    Ack,
    Bus,
    Conflict,
    EmbeddedServer,
    NoResponders,
    Outgoing,
    PermanentError,
    StreamFull,
    SubjectTooLong,
    TemporaryError,
    TooLarge,
    Unavailable,
    Unclear,
    ensure_streams,
)
from podyard.bus.errors import BatchUnclear, Refused
from podyard.proto import subjects
from podyard.proto.streams import MAX_PAYLOAD_BYTES, StreamSpec
from tests.contract.bus.readers import gone, message
from tests.support.buses import ConnectBus
from tests.support.waiting import eventually


async def content(bus: Bus, *names: str) -> dict[str, bytes | None]:
    """What the stream holds for each pod."""
    found = {name: await bus.get("CLUSTER", f"cluster.pods.default.{name}") for name in names}
    return {name: delivery and delivery.payload for name, delivery in found.items()}


class TestSingle:
    async def test_a_lost_compare_and_set_names_the_sequence(self, bus: Bus):
        await bus.publish(message("a", b"1", expect=0))
        await bus.publish(message("a", b"2", expect=1))
        with pytest.raises(Conflict) as caught:
            await bus.publish(message("a", b"3", expect=1))
        assert caught.value.last_sequence == 2
        assert caught.value.subject == "cluster.pods.default.a"
        assert await content(bus, "a") == {"a": b"2"}

    async def test_creating_over_a_marker_conflicts_and_works_with_its_sequence(self, bus: Bus):
        await bus.publish(message("a", b"1", expect=0))
        marker = await bus.publish(message("a", b"", expect=1, deleted=True, ttl_s=60))
        with pytest.raises(Conflict) as caught:
            await bus.publish(message("a", b"2", expect=0))
        found = await bus.get("CLUSTER", "cluster.pods.default.a")
        assert found is not None
        assert found.deleted
        assert found.sequence == caught.value.last_sequence == marker.sequence
        await bus.publish(message("a", b"2", expect=found.sequence))

    async def test_an_expired_marker_leaves_nothing_behind(self, bus: Bus):
        await bus.publish(message("a", b"", expect=0, deleted=True, ttl_s=1))
        await gone(bus, "cluster.pods.default.a")
        await bus.publish(message("a", b"2", expect=0))

    async def test_a_repeated_message_id_is_a_duplicate(self, bus: Bus):
        first = await bus.publish(Outgoing("k8sevents.d.Pod.a", b"1", message_id="m1"))
        again = await bus.publish(Outgoing("k8sevents.d.Pod.a", b"1", message_id="m1"))
        assert (first.duplicate, again.duplicate) == (False, True)
        assert first.sequence == again.sequence

    async def test_the_callers_headers_are_kept_and_not_changed(self, bus: Bus):
        lines = {"Who": "me"}
        await bus.publish(message("a", expect=0, headers=lines))
        found = await bus.get("CLUSTER", "cluster.pods.default.a")
        assert found is not None
        assert found.headers["Who"] == "me"
        assert lines == {"Who": "me"}

    async def test_without_a_stream_nobody_answers(self, bus: Bus):
        with pytest.raises(NoResponders) as caught:
            await bus.publish(Outgoing("nowhere.at.all", b""))
        assert isinstance(caught.value, TemporaryError)

    async def test_too_large_is_refused_before_it_is_sent(self, bus: Bus):
        with pytest.raises(TooLarge) as caught:
            await bus.publish(message("a", b"x" * (MAX_PAYLOAD_BYTES + 1)))
        assert caught.value.size_bytes == MAX_PAYLOAD_BYTES + 1
        await bus.publish(message("a", b"x" * (MAX_PAYLOAD_BYTES - 1000)))

    async def test_a_subject_that_the_server_would_not_read_is_refused_before_it_is_sent(self, bus: Bus):
        connects = bus.state.connects
        long = message("x" * 5000)
        with pytest.raises(SubjectTooLong, match=r"has 50\d\d characters, above the limit of 3072"):
            await bus.publish(long)
        with pytest.raises(SubjectTooLong):
            await bus.get("CLUSTER", long.subject)
        with pytest.raises(SubjectTooLong):
            await bus.publish_batch([message("before"), long, message("after")])
        results = await bus.publish_many([message("one"), long, message("two")])
        assert [type(one) for one in results] == [Ack, SubjectTooLong, Ack]
        bus.send(long.subject, b"")
        assert bus.dropped == 1
        assert await bus.get("CLUSTER", "cluster.pods.default.before") is None
        assert bus.state.connects == connects, "the connection was never lost"

    async def test_the_longest_subject_is_taken(self, bus: Bus):
        longest = "x" * (subjects.LONGEST - len("cluster.pods.default."))
        await bus.publish(message(longest, expect=0))
        with pytest.raises(Conflict):
            await bus.publish(message(longest, expect=0))

    async def test_a_batch_with_a_message_that_is_too_large_is_not_begun(self, bus: Bus):
        for _ in range(60):
            with pytest.raises(TooLarge):
                await bus.publish_batch([message("a"), message("b", b"x" * (MAX_PAYLOAD_BYTES + 1))])
        await bus.publish_batch([message("a"), message("b")])

    async def test_a_batch_may_be_larger_than_what_may_wait_for_the_socket(self, bus: Bus):
        """It is whole or not begun: who is busy in its middle leaves it open with the server."""
        large = b"x" * (2 * 1024 * 1024)
        ack = await bus.publish_batch([message(f"p{number}", large) for number in range(40)], timeout_s=30.0)
        assert ack.sequence == 40

    async def test_a_full_stream_says_so(self, bus: Bus):
        small = StreamSpec(name="SMALL", subjects=("small.>",), purpose="", max_bytes=2000, discard="new")
        await ensure_streams(bus, specs=[small])
        await bus.publish(Outgoing("small.a", b"x" * 1000))
        with pytest.raises(StreamFull) as caught:
            await bus.publish(Outgoing("small.b", b"x" * 1000))
        assert caught.value.delay_s > 0

    async def test_a_ttl_on_a_stream_without_ttls_is_refused(self, bus: Bus):
        with pytest.raises(Refused) as caught:
            await bus.publish(Outgoing("decisions.d.a.u", b"", ttl_s=5))
        assert caught.value.code == 10166

    async def test_a_paused_server_leaves_it_unclear_and_applies_it_later(self, bus: Bus, nats_server: EmbeddedServer):
        nats_server.pause()
        try:
            with pytest.raises(Unclear):
                await bus.publish(message("a", b"1", expect=0), timeout_s=0.3)
        finally:
            nats_server.resume()
        with pytest.raises(Conflict) as caught:  # settled by a compare-and-set
            await bus.publish(message("a", b"2", expect=0))
        assert caught.value.last_sequence == 1
        assert await content(bus, "a") == {"a": b"1"}

    async def test_without_a_connection_nothing_is_sent_later(self, bus: Bus, nats_server: EmbeddedServer):
        await nats_server.kill()
        with pytest.raises((Unavailable, Unclear)):  # unclear only if the loss was not seen yet
            await bus.publish(message("a", b"early"), timeout_s=0.3)
        with pytest.raises(Unavailable):
            await bus.publish(message("b", b"without connection"), timeout_s=0.3)
        await nats_server.start()
        await bus.publish(message("c", b"after"))
        assert await content(bus, "b") == {"b": None}

    async def test_a_publish_waits_for_the_connection_to_come_back(self, bus: Bus, nats_server: EmbeddedServer):
        lost = asyncio.Event()
        bus.on_state(lambda state: None if state.connected else lost.set())
        await nats_server.kill()
        await lost.wait()
        publishing = asyncio.create_task(bus.publish(message("a", b"1"), timeout_s=10))
        await nats_server.start()
        try:
            await publishing
        except NoResponders:  # connected before JetStream was up: nothing was stored, and it says so
            await bus.publish(message("a", b"1"))
        assert await content(bus, "a") == {"a": b"1"}


class TestMany:
    async def test_results_are_in_the_order_of_the_messages(self, bus: Bus):
        await bus.publish(message("taken", expect=0))
        names = [f"p{i}" for i in range(500)]
        messages = [message(name, expect=0) for name in names]
        messages[100] = message("taken", expect=0)
        messages[200] = message("big", b"x" * (MAX_PAYLOAD_BYTES + 1))
        results = await bus.publish_many(messages)
        assert isinstance(results[100], Conflict)
        assert results[100].last_sequence == 1
        assert isinstance(results[200], TooLarge)
        sequences = [result.sequence for result in results if isinstance(result, Ack)]
        assert sequences == list(range(2, 500))

    async def test_a_small_window_sends_all_the_same(self, connect_bus: ConnectBus, bus: Bus):
        narrow = await connect_bus("narrow", publish_window=3)
        results = await narrow.publish_many([message(f"p{i}", expect=0) for i in range(100)])
        assert all(isinstance(result, Ack) for result in results)

    async def test_no_messages_no_results(self, bus: Bus):
        assert await bus.publish_many([]) == []

    async def test_each_message_has_its_own_time(self, bus: Bus, nats_server: EmbeddedServer):
        nats_server.pause()
        began_at = time.monotonic()
        try:
            results = await bus.publish_many([message(f"p{i}", expect=0) for i in range(20)], timeout_s=0.3)
        finally:
            nats_server.resume()
        assert time.monotonic() - began_at < 2.0
        assert all(isinstance(result, Unclear) for result in results)
        settled = await bus.publish_many([message(f"p{i}", expect=0) for i in range(20)])
        assert all(isinstance(result, Conflict) for result in settled), "each had been applied after all"

    async def test_a_killed_server_leaves_nothing_hanging(self, bus: Bus, nats_server: EmbeddedServer):
        async with asyncio.timeout(15):
            publishing = asyncio.create_task(
                bus.publish_many([message(f"p{i}", b"x" * 500, expect=0) for i in range(20_000)])
            )

            async def under_way() -> bool:
                return await bus.last_sequence("CLUSTER") > 500

            await eventually("publishes under way", under_way)
            await nats_server.kill()
            await nats_server.start()
            results = await publishing
        stored = [i for i, result in enumerate(results) if isinstance(result, Ack)]
        assert stored
        assert len(stored) < len(results)
        found = await asyncio.gather(*(content(bus, f"p{i}") for i in stored[-50:]))
        assert all(None not in each.values() for each in found), "an acknowledged message is lost"
        assert any(isinstance(result, Unclear) for result in results)


class TestBatch:
    async def test_is_stored_in_one_piece(self, bus: Bus):
        ack = await bus.publish_batch([message(f"p{i}", str(i).encode(), expect=0) for i in range(256)])
        assert ack.sequence == 256
        first, last = (
            await bus.get("CLUSTER", "cluster.pods.default.p0"),
            await bus.get("CLUSTER", "cluster.pods.default.p255"),
        )
        assert first is not None
        assert last is not None
        assert (first.sequence, first.predecessor, last.sequence) == (1, 0, 256)

    async def test_of_one_message(self, bus: Bus):
        assert (await bus.publish_batch([message("a", expect=0)])).sequence == 1

    @pytest.mark.parametrize("failing", [0, 5, 9])
    async def test_one_lost_compare_and_set_keeps_out_all(self, bus: Bus, failing: int):
        await bus.publish(message("other"))
        await bus.publish(message("taken"))
        messages = [message(f"p{i}", expect=0) for i in range(10)]
        messages[failing] = message("taken", expect=0)
        with pytest.raises(Conflict) as caught:
            await bus.publish_batch(messages)
        assert caught.value.last_sequence == 2
        assert await bus.last_sequence("CLUSTER") == 2

    async def test_racing_batches_one_wins_and_the_other_is_absent(self, bus: Bus, connect_bus: ConnectBus):
        """As two binders with one fence."""
        rival = await connect_bus("rival")
        await bus.publish(Outgoing("placement.fence", b"0", expect=0))

        def batch(who: str, fence: int) -> list[Outgoing]:
            bindings = [Outgoing(f"placement.bindings.d.{who}{i}-{fence}.u", who.encode(), expect=0) for i in range(20)]
            return [*bindings, Outgoing("placement.fence", who.encode(), expect=fence)]

        fence, wins = 1, {"a": 0, "b": 0}
        for _ in range(20):
            outcomes = await asyncio.gather(
                bus.publish_batch(batch("a", fence)), rival.publish_batch(batch("b", fence)), return_exceptions=True
            )
            acks = [outcome for outcome in outcomes if isinstance(outcome, Ack)]
            losers = [outcome for outcome in outcomes if isinstance(outcome, Conflict | BatchUnclear)]
            assert len(acks) == len(losers) == 1, outcomes
            assert acks[0].sequence == fence + 21
            wins["a" if outcomes[0] is acks[0] else "b"] += 1
            fence = acks[0].sequence
        assert await bus.last_sequence("CLUSTER") == 1 + 20 * 21
        assert sum(wins.values()) == 20

    async def test_a_used_batch_id_is_not_applied_again(self, bus: Bus):
        await bus.publish_batch([message("a", expect=0), message("b", expect=0)], batch_id="b1")
        with pytest.raises(PermanentError):
            await bus.publish_batch([message("a", expect=0), message("b", expect=0)], batch_id="b1")
        assert await bus.last_sequence("CLUSTER") == 2

    async def test_a_subject_twice_is_a_mistake_of_the_caller(self, bus: Bus):
        with pytest.raises(ValueError, match="twice"):
            await bus.publish_batch([message("a"), message("a")])

    @pytest.mark.parametrize("count", [0, 1001])
    async def test_the_number_of_messages_is_checked(self, bus: Bus, count: int):
        with pytest.raises(ValueError, match="1 to 1000"):
            await bus.publish_batch([message(f"p{i}") for i in range(count)])

    async def test_a_stream_without_batches_refuses(self, bus: Bus):
        with pytest.raises(Refused) as caught:
            await bus.publish_batch([Outgoing("decisions.d.a.u", b""), Outgoing("decisions.d.b.u", b"")])
        assert caught.value.code == 10174

    async def test_an_incomplete_batch_says_so(self, bus: Bus):
        """The server lost what came before (restarted, or gave it up): only the last message of a batch
        arrives."""
        lines = {"Nats-Batch-Id": "b2", "Nats-Batch-Sequence": "2", "Nats-Batch-Commit": "1"}
        with pytest.raises(Conflict):
            await bus.publish(message("a", headers=lines))
        assert await bus.last_sequence("CLUSTER") == 0

    async def test_a_paused_server_leaves_it_unclear_and_whole(self, bus: Bus, nats_server: EmbeddedServer):
        nats_server.pause()
        try:
            with pytest.raises(Unclear):
                await bus.publish_batch([message(f"p{i}", expect=0) for i in range(50)], timeout_s=0.3)
        finally:
            nats_server.resume()
        with pytest.raises(Conflict):
            await bus.publish(message("p49", b"settle", expect=0))
        assert await bus.last_sequence("CLUSTER") == 50

    async def test_killed_during_batches_none_is_half_there(self, bus: Bus, nats_server: EmbeddedServer):
        """Every batch overwrites the same 20 subjects: after a kill all of them are of one batch."""
        names = [f"p{i}" for i in range(20)]
        acked: list[int] = []

        async def write_for_ever() -> None:
            for number in itertools.count(1):
                await bus.publish_batch([message(name, str(number).encode()) for name in names])
                acked.append(number)

        async def under_way() -> bool:
            return len(acked) >= 20

        for _ in range(3):
            acked.clear()
            writing = asyncio.create_task(write_for_ever())
            await eventually("batches under way", under_way)
            await nats_server.kill()
            with pytest.raises((Unclear, TemporaryError)):
                await writing
            await nats_server.start()
            await ensure_streams(bus)
            values = set((await content(bus, *names)).values())
            assert len(values) == 1, f"half a batch: {values}"
            assert int(values.pop() or 0) >= acked[-1], "an acknowledged batch is lost"
