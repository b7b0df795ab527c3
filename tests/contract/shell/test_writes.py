"""Writing objects: compare-and-set through markers, conflicts, batches and unclear answers."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from podyard.bus import Ack, Bus, BusError, Delivery, Outgoing
from podyard.bus.errors import Unclear
from podyard.cluster import intents
from podyard.cluster.errors import Contended, ObjectExists, ObjectMissing
from podyard.cluster.intents import Author, Intent, Keep, Put, Written
from podyard.cluster.keys import ObjectKey
from podyard.objects import times
from podyard.objects.errors import ObjectError
from podyard.proto import headers, streams, subjects
from podyard.shell import writes
from tests.support import objects
from tests.support.objects import Document

NOW = 1_800_000_000.5
"""Seconds since 1970; objects know whole ones."""
AUTHOR = Author("test", "because", trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")


def pod(name: str, uid: str, **spec: Any) -> Document:
    return objects.pod(name, uid=uid, **spec)


def key(name: str) -> ObjectKey:
    return ObjectKey("pods", "default", name)


def lengthen(document: dict[str, Any]) -> dict[str, Any]:
    document["spec"]["seen"] = document["spec"].get("seen", 0) + 1
    return document


async def stored(bus: Bus, name: str) -> intents.Stored | None:
    return await writes.read(bus, key(name))


async def last_message(bus: Bus, name: str) -> Delivery:
    """Of an object; there is one."""
    found = await bus.get(streams.CLUSTER.name, subjects.object_(*key(name)))
    assert found is not None
    return found


async def create_many(bus: Bus, objects: Sequence[tuple[ObjectKey, Document]], author: Author) -> list[writes.Result]:
    return await writes.carry_out(bus, [Intent(key, intents.creation(key, one)) for key, one in objects], author)


async def test_a_created_object_names_its_author_and_no_predecessor(bus: Bus) -> None:
    written = await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)
    delivery = await last_message(bus, "a")
    assert (delivery.sequence, delivery.predecessor, delivery.trace) == (written.sequence, 0, AUTHOR.trace)
    event = intents.Stored(1, delivery.payload, deleted=False).event
    assert (event.who, event.why, event.uid, event.actions) == ("test", "because", "u1", ("Add",))


async def test_a_create_that_meets_a_living_object_fails_and_names_it(bus: Bus) -> None:
    await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)
    with pytest.raises(ObjectExists) as caught:
        await writes.create(bus, key("a"), pod("a", "u2"), AUTHOR)
    assert caught.value.uid == "u1"


async def test_a_create_repeated_with_the_same_uid_is_the_same_create(bus: Bus) -> None:
    first = await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)
    again = await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)
    known = await writes.one(bus, Intent(key("a"), intents.creation(key("a"), pod("a", "u1")), first.after), AUTHOR)
    assert (again.sequence, known.sequence) == (first.sequence, first.sequence)
    assert isinstance(known.step, Keep)


async def test_a_create_goes_through_a_marker(bus: Bus) -> None:
    await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)
    removed = await writes.remove(bus, key("a"), AUTHOR)
    await writes.create(bus, key("a"), pod("a", "u2"), AUTHOR)
    delivery = await last_message(bus, "a")
    assert delivery.predecessor == removed.sequence


async def test_a_document_that_cannot_be_changed_fails_alone(bus: Bus) -> None:
    """Whoever wrote it did so without asking: a change that takes for granted what admission holds raises
    anything."""
    bad: Document = {**pod("bad", "u1"), "spec": None}
    for name, document in (("bad", bad), ("good", pod("good", "u2"))):
        await writes.create(bus, key(name), document, AUTHOR)
    wanted = [Intent(key(name), intents.alteration(key(name), lengthen)) for name in ("bad", "good")]
    failed, written = await writes.carry_out(bus, wanted, AUTHOR)
    assert isinstance(failed, ObjectError)
    assert "cannot be changed as it is stored: AttributeError" in str(failed)
    assert isinstance(written, Written)


async def test_a_pod_without_anything_below_spec_is_deleted(bus: Bus) -> None:
    await writes.create(bus, key("a"), {**pod("a", "u1"), "spec": None}, AUTHOR)
    plan = intents.deletion(key("a"), now=NOW, occupies=lambda _: True)
    [done] = await writes.carry_out(bus, [Intent(key("a"), plan)], AUTHOR)
    assert isinstance(done, Written)
    assert isinstance(done.step, Put)


async def test_a_marker_has_a_ttl_and_the_last_version(bus: Bus) -> None:
    await writes.create(bus, key("a"), pod("a", "u1", nodeName="n"), AUTHOR)
    await writes.remove(bus, key("a"), AUTHOR)
    delivery = await last_message(bus, "a")
    assert delivery.deleted
    assert delivery.headers["Nats-TTL"] == f"{streams.MARKER_TTL_S}s"
    last = intents.Stored(delivery.sequence, delivery.payload, deleted=True)
    assert last.document()["spec"] == pod("a", "u1", nodeName="n")["spec"]


async def test_removing_what_is_not_there_says_so(bus: Bus) -> None:
    with pytest.raises(ObjectMissing):
        await writes.remove(bus, key("a"), AUTHOR)
    await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)
    with pytest.raises(ObjectMissing):
        await writes.remove(bus, key("a"), AUTHOR, uid="u0")


async def test_an_update_that_lost_is_decided_again_from_the_newer_version(bus: Bus) -> None:
    await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)
    old = await stored(bus, "a")
    await writes.update(bus, key("a"), lengthen, AUTHOR)
    await writes.update(bus, key("a"), lengthen, AUTHOR, known=old)
    now = await stored(bus, "a")
    assert now is not None
    assert now.document()["spec"]["seen"] == 2


async def test_what_an_old_version_forbids_is_looked_up_before_it_fails(bus: Bus) -> None:
    await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)
    await writes.remove(bus, key("a"), AUTHOR)
    marker = await stored(bus, "a")
    await writes.create(bus, key("a"), pod("a", "u2"), AUTHOR)
    removed = await writes.remove(bus, key("a"), AUTHOR, known=marker)
    assert removed.before is not None
    assert removed.before.uid == "u2"


async def test_many_creates_are_one_batch(bus: Bus) -> None:
    results = await create_many(bus, [(key(f"p{i}"), pod(f"p{i}", f"u{i}")) for i in range(256)], AUTHOR)
    sequences = [one.sequence for one in results if isinstance(one, Written)]
    assert sequences == list(range(1, 257))
    written = [await last_message(bus, f"p{i}") for i in range(256)]
    assert [delivery.sequence for delivery in written] == sequences
    (batch,) = {delivery.headers.get(headers.BATCH_ID) for delivery in written}
    assert batch


async def test_very_large_objects_are_written_one_by_one(bus: Bus) -> None:
    """60 of 1.4 MB are more than may wait for the socket at once."""
    wanted = [(key(f"p{number}"), pod(f"p{number}", f"u{number}", large="x" * 1_400_000)) for number in range(60)]
    results = await create_many(bus, wanted, AUTHOR)
    assert all(isinstance(one, Written) for one in results), results
    assert headers.BATCH_ID not in (await last_message(bus, "p0")).headers
    removed = await writes.mark_deleting(
        bus, [(place, "") for place, _ in wanted], AUTHOR, now=NOW, occupies=lambda _: False
    )
    assert all(isinstance(one, Written) for one in removed), removed
    assert headers.BATCH_ID not in (await last_message(bus, "p0")).headers


async def test_one_in_the_way_does_not_stop_the_others_of_a_batch(bus: Bus) -> None:
    await writes.create(bus, key("p7"), pod("p7", "other"), AUTHOR)
    await writes.create(bus, key("p9"), pod("p9", "gone"), AUTHOR)
    await writes.remove(bus, key("p9"), AUTHOR)
    results = await create_many(bus, [(key(f"p{i}"), pod(f"p{i}", f"u{i}")) for i in range(64)], AUTHOR)
    assert isinstance(results[7], ObjectExists)
    assert all(isinstance(one, Written) for index, one in enumerate(results) if index != 7)
    again = await stored(bus, "p9")
    assert again is not None
    assert again.uid == "u9"


async def test_an_object_named_twice_is_written_twice_in_order(bus: Bus) -> None:
    create = Intent(key("a"), intents.creation(key("a"), pod("a", "u1")))
    alter = Intent(key("a"), intents.alteration(key("a"), lengthen))
    results = await writes.carry_out(bus, [create, alter, alter], AUTHOR)
    assert [type(one) for one in results] == [Written, Written, Written]
    found = await stored(bus, "a")
    assert found is not None
    assert found.document()["spec"]["seen"] == 2


class Forgetful:
    """A bus whose first answers get lost, after or before the message was stored."""

    def __init__(self, bus: Bus, *, store: bool) -> None:
        self._bus = bus
        self._store = store
        self._lose = True
        self.get = bus.get

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[Ack | BusError]:
        if not self._lose:
            return await self._bus.publish_many(messages)
        self._lose = False
        if self._store:
            await self._bus.publish_many(messages)
        return [Unclear(message.subject, "lost") for message in messages]

    async def publish_batch(self, messages: Sequence[Outgoing]) -> Ack:
        self._lose = False
        if self._store:
            await self._bus.publish_batch(messages)
        raise Unclear("batch", "lost")


@pytest.mark.parametrize("store", [True, False], ids=["it was stored", "it was not"])
@pytest.mark.parametrize("count", [1, 64], ids=["single", "batch"])
async def test_an_unclear_answer_is_settled_by_the_same_compare_and_set(bus: Bus, store: bool, count: int) -> None:
    forgetful: Any = Forgetful(bus, store=store)
    wanted = [(key(f"p{i}"), pod(f"p{i}", f"u{i}")) for i in range(count)]
    results = await create_many(forgetful, wanted, AUTHOR)
    assert [one.sequence for one in results if isinstance(one, Written)] == list(range(1, count + 1))
    assert await bus.last_sequence(streams.CLUSTER.name) == count
    forgetful = Forgetful(bus, store=store)
    longer = [Intent(place, intents.alteration(place, lengthen)) for place, _ in wanted]
    results = await writes.carry_out(forgetful, longer, AUTHOR)
    assert [one.sequence for one in results if isinstance(one, Written)] == list(range(count + 1, 2 * count + 1))
    assert await bus.last_sequence(streams.CLUSTER.name) == 2 * count, "none is longer by two"


async def test_losing_every_time_ends(bus: Bus) -> None:
    await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)

    class Rival:
        """Changes the object before each publish."""

        get = staticmethod(bus.get)

        async def publish_many(self, messages: Sequence[Outgoing]) -> list[Ack | BusError]:
            await writes.update(bus, key("a"), lengthen, AUTHOR)
            return await bus.publish_many(messages)

    rival: Any = Rival()
    with pytest.raises(Contended) as caught:
        await writes.update(rival, key("a"), lengthen, AUTHOR)
    assert caught.value.attempts == writes.ATTEMPTS


async def test_many_writers_of_one_object_all_get_on(bus: Bus) -> None:
    """Each loses to all others if they go in step."""
    writers = 3 * writes.ATTEMPTS
    await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)

    async def write() -> None:
        await writes.update(bus, key("a"), lengthen, AUTHOR)

    async with anyio.create_task_group() as tasks:
        for _ in range(writers):
            tasks.start_soon(write)
    written = await stored(bus, "a")
    assert written is not None
    assert written.document()["spec"]["seen"] == writers


async def test_pods_that_take_room_get_their_grace_period_and_others_a_marker(bus: Bus) -> None:
    names = ("bound", "pending", "short")
    for name in names:
        await writes.create(bus, key(name), pod(name, name, terminationGracePeriodSeconds=17), AUTHOR)
    results = await writes.mark_deleting(
        bus, [(key(name), "") for name in names[:2]], AUTHOR, now=NOW, occupies=lambda uid: uid != "pending"
    )
    results += await writes.mark_deleting(
        bus, [(key("short"), "")], AUTHOR, now=NOW, occupies=lambda _: True, grace_s=0
    )
    assert [type(one.step).__name__ for one in results if isinstance(one, Written)] == ["Put", "Remove", "Remove"]
    bound = await stored(bus, "bound")
    assert bound is not None
    metadata = bound.document()["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 17
    assert times.seconds_of(metadata["deletionTimestamp"]) == int(NOW) + 17
    pending = await stored(bus, "pending")
    assert pending is not None
    assert pending.deleted


async def test_a_put_over_an_unreadable_version_is_a_create(bus: Bus) -> None:
    junk = await bus.publish(Outgoing(subjects.object_("pods", "default", "a"), b"{", expect=0))
    written = await writes.create(bus, key("a"), pod("a", "u1"), AUTHOR)
    assert written.sequence > junk.sequence
    assert isinstance(written.step, Put)


async def test_more_objects_than_one_batch_may_hold_are_written_too(bus: Bus) -> None:
    """1,000 messages are the server's limit of a batch, 256 ours."""
    results = await create_many(bus, [(key(f"p{i}"), pod(f"p{i}", f"u{i}")) for i in range(1100)], AUTHOR)
    assert all(isinstance(result, Written) for result in results)
    assert [result.sequence for result in results if isinstance(result, Written)] == list(range(1, 1101))
