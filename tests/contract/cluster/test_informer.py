"""The informer on the real server: lists, follows, tells positions, and finds its way back."""

import msgspec
import pytest
import pytest_asyncio
from anyio import Event, create_task_group, fail_after
from anyio.abc import TaskGroup

from podyard.bus import Bus, Outgoing
from podyard.cluster import writes
from podyard.cluster.changes import Change
from podyard.cluster.documents import DocumentView
from podyard.cluster.informer import Informer, base_subjects, with_placements
from podyard.cluster.intents import Author
from podyard.cluster.keys import ObjectKey
from podyard.cluster.snapshot import snapshot
from podyard.cluster.view import ClusterView
from podyard.proto import codec, streams, subjects
from podyard.proto.operations import DeadLetter
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Release, Tombstone

AUTHOR = Author("test")
LIMIT_S = 10.0


def pod(name: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c"}]}}


def key(name: str) -> ObjectKey:
    return ObjectKey("pods", "default", name)


class Binder:
    """Writes commits as the binder does: one atomic batch each."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._n = 0
        self._fence = 0
        self._bindings: dict[str, int] = {}

    async def commit(self, bind: tuple[str, ...] = (), release: tuple[str, ...] = (), *, skip: int = 0) -> int:
        self._n += 1 + skip
        bound = tuple(self._bound(name) for name in bind)
        released = tuple(self._release(name) for name in release)
        messages = [
            Outgoing(
                self._subject(one.name),
                codec.encode(msgspec.convert(msgspec.to_builtins(one) | {"fact": "binding"}, Binding)),
                0,
            )
            for one in bound
        ]
        for one in released:
            tombstone = Tombstone(namespace="default", name=one.name, uid=one.uid, node="n1", reason="terminated")
            messages.append(Outgoing(self._subject(one.name), codec.encode(tombstone), self._bindings[one.name]))
        record = CommitRecord(n=self._n, epoch=1, batch="b", bindings=bound, releases=released)
        messages.append(Outgoing(subjects.commit(self._n), codec.encode(record), 0, ttl_s=600))
        messages.append(Outgoing(subjects.FENCE, codec.encode(Fence(epoch=1, n=self._n)), self._fence))
        ack = await self._bus.publish_batch(messages)
        self._fence = ack.sequence
        first = ack.sequence - len(messages) + 1
        self._bindings |= {name: first + index for index, name in enumerate(bind)}
        return ack.sequence

    def _subject(self, name: str) -> str:
        return subjects.binding("default", name, f"uid-{name}")

    def _bound(self, name: str) -> BoundPod:
        return BoundPod(namespace="default", name=name, uid=f"uid-{name}", node="n1")

    def _release(self, name: str) -> Release:
        return Release(namespace="default", name=name, uid=f"uid-{name}", node="n1", reason="terminated")


class Reader:
    """An informer with what it told."""

    def __init__(self, bus: Bus, tasks: TaskGroup) -> None:
        self.view = ClusterView()
        self.changes: list[Change] = []
        self.listed: list[str] = []
        self.listed_again = Event()
        self.contacts: list[bool] = []
        self.informer = Informer(
            bus,
            self.view,
            base_subjects(),
            service="test",
            on_changes=self.changes.extend,
            on_listed=self._on_listed,
            on_contact=self.contacts.append,
        )
        tasks.start_soon(self.informer.run)

    def _on_listed(self, reason: str) -> None:
        self.listed.append(reason)
        if len(self.listed) > 1:
            self.listed_again.set()

    def labels(self) -> list[str]:
        return [event.label for change in self.changes for event in change.events]


@pytest_asyncio.fixture
async def binder(bus: Bus) -> Binder:
    return Binder(bus)


async def test_it_lists_follows_and_says_how_far_it_is(bus: Bus, binder: Binder) -> None:
    await writes.create(bus, key("a"), pod("a"), AUTHOR)
    await writes.create(bus, key("b"), pod("b"), AUTHOR)
    committed = await binder.commit(bind=("a",))
    with fail_after(LIMIT_S):
        async with create_task_group() as tasks:
            reader = Reader(bus, tasks)
            await reader.informer.synced()
            assert reader.informer.position >= committed
            assert reader.listed == ["start"]
            assert sorted(reader.labels()) == ["AssignedPodAdd", "UnschedulablePodAdd"]
            assert list(reader.view.pods_on("n1")) == ["uid-a"]
            await binder.commit(bind=("b",))
            released = await binder.commit(release=("a",))
            await reader.informer.reached(released)
            assert reader.labels()[2:] == ["AssignedPodAdd", "AssignedPodDelete"]
            assert list(reader.view.pods_on("n1")) == ["uid-b"]
            assert reader.view.fence is not None
            assert reader.view.fence.n == 3
            assert reader.informer.fresh
            tasks.cancel_scope.cancel()
    assert reader.contacts == [True]


async def test_a_position_is_reached_although_no_message_is_for_this_reader(bus: Bus) -> None:
    with fail_after(LIMIT_S):
        async with create_task_group() as tasks:
            reader = Reader(bus, tasks)
            await reader.informer.synced()
            foreign = await bus.publish(Outgoing(subjects.object_("services", "default", "s"), b"{}", 0))
            await reader.informer.reached(foreign.sequence)
            assert reader.informer.position == foreign.sequence
            tasks.cancel_scope.cancel()


async def test_a_missed_commit_is_found_by_the_fence_and_read_again(bus: Bus, binder: Binder) -> None:
    await writes.create(bus, key("a"), pod("a"), AUTHOR)
    with fail_after(LIMIT_S):
        async with create_task_group() as tasks:
            reader = Reader(bus, tasks)
            await reader.informer.synced()
            await binder.commit()
            skipped = await binder.commit(bind=("a",), skip=1)
            await reader.informer.reached(skipped)
            await reader.listed_again.wait()
            tasks.cancel_scope.cancel()
    assert reader.listed == ["start", "commit 3 follows 1"]


async def test_an_unreadable_version_counts_as_deleted_and_becomes_a_dead_letter(bus: Bus) -> None:
    created = await writes.create(bus, key("a"), pod("a"), AUTHOR)
    with fail_after(LIMIT_S):
        async with create_task_group() as tasks:
            reader = Reader(bus, tasks)
            await reader.informer.synced()
            subject = subjects.object_("pods", "default", "a")
            junk = await bus.publish(Outgoing(subject, b'{"resource": 1}', created.sequence))
            await reader.informer.reached(junk.sequence)
            assert not reader.view.pods
            while (found := await bus.get(streams.DEAD.name, subjects.dead("test"))) is None:
                await bus.last_sequence(streams.DEAD.name)
            tasks.cancel_scope.cancel()
    letter = codec.decode(DeadLetter, found.payload)
    assert (letter.subject, letter.sequence) == (subject, junk.sequence)
    assert "resource" in letter.reason


async def test_a_reader_without_gap_sees_predecessors_and_one_with_a_gap_says_so(bus: Bus) -> None:
    created = await writes.create(bus, key("a"), pod("a"), AUTHOR)
    with fail_after(LIMIT_S):
        async with create_task_group() as tasks:
            reader = Reader(bus, tasks)
            await reader.informer.synced()
            blind = await bus.publish(Outgoing(subjects.object_("pods", "default", "a"), (await _payload(bus))))
            await reader.informer.reached(blind.sequence)
            assert created.sequence != blind.sequence
            assert [change.gap for change in reader.changes] == [False, True]
            tasks.cancel_scope.cancel()


async def _payload(bus: Bus) -> bytes:
    delivery = await bus.get(streams.CLUSTER.name, subjects.object_("pods", "default", "a"))
    assert delivery is not None
    return delivery.payload


@pytest.mark.parametrize("bound", [True, False], ids=["bound", "released"])
async def test_documents_know_who_takes_room(bus: Bus, binder: Binder, bound: bool) -> None:
    await writes.create(bus, key("a"), pod("a"), AUTHOR)
    with fail_after(LIMIT_S):
        async with create_task_group() as tasks:
            following, listing = DocumentView(), DocumentView()
            first = Informer(bus, following, with_placements((subjects.OBJECTS_WITHOUT_FACTS,)), service="test")
            tasks.start_soon(first.run)
            await first.synced()
            last = await binder.commit(bind=("a",))
            if not bound:
                last = await binder.commit(release=("a",))
            await first.reached(last)
            second = Informer(bus, listing, with_placements((subjects.OBJECTS_WITHOUT_FACTS,)), service="test")
            tasks.start_soon(second.run)
            await second.synced()
            tasks.cancel_scope.cancel()
    for view in (following, listing):
        assert view.node_of("uid-a") == ("n1" if bound else "")
        assert view.typed(key("a")).metadata.uid == "uid-a"


async def test_a_snapshot_holds_objects_with_their_facts(bus: Bus, binder: Binder) -> None:
    await writes.create(bus, key("a"), pod("a"), AUTHOR)
    await binder.commit(bind=("a",))
    view = await snapshot(bus, timeout_s=LIMIT_S)
    assert view.pods["default", "a"].pod.spec.node_name == "n1"
