"""The informer: lists, follows, tells positions, and finds its way back."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest
from anyio import Event, create_task_group, fail_after
from anyio.abc import TaskGroup

from podyard.bus import Ack, Bus, Outgoing
from podyard.cluster.changes import Change
from podyard.cluster.documents import DocumentView
from podyard.cluster.intents import Author
from podyard.cluster.keys import ObjectKey
from podyard.cluster.tables import Tables
from podyard.cluster.view import ClusterView
from podyard.proto import codec, streams, subjects
from podyard.proto.operations import DeadLetter
from podyard.shell import writes
from podyard.shell.informer import Informer, base_subjects, with_placements
from podyard.shell.snapshot import snapshot
from tests.memory_nats import MemoryBus
from tests.support import stored
from tests.support.cluster import Cluster, bound, released
from tests.support.objects import Document, pod
from tests.support.raising import raise_on
from tests.support.waiting import eventually

AUTHOR = Author("test")
LIMIT_S = 10.0


def key(name: str) -> ObjectKey:
    return ObjectKey("pods", "default", name)


class Reader:
    """An informer with what it told."""

    def __init__(self, bus: Bus, tasks: TaskGroup, *, together: bool) -> None:
        self.view = ClusterView()
        self.changes: list[Change] = []
        self.reads: list[int] = []
        """How many changes were told at one go."""
        self.listed: list[str] = []
        self.listed_again = Event()
        self.contacts: list[bool] = []
        self.informer = Informer(
            bus,
            self.view,
            base_subjects(),
            service="test",
            on_changes=self._on_changes,
            on_listed=self._on_listed,
            on_contact=self.contacts.append,
            together=together,
        )
        tasks.start_soon(self.informer.run)

    def _on_changes(self, changes: Sequence[Change]) -> None:
        self.changes += changes
        self.reads.append(len(changes))

    def _on_listed(self, reason: str) -> None:
        self.listed.append(reason)
        if len(self.listed) > 1:
            self.listed_again.set()

    def labels(self) -> list[str]:
        return [event.label for change in self.changes for event in change.events]


@asynccontextmanager
async def reading(bus: Bus, *, together: bool = False) -> AsyncGenerator[Reader]:
    """A reader that has listed all there is."""
    with fail_after(LIMIT_S):
        async with create_task_group() as tasks:
            reader = Reader(bus, tasks, together=together)
            await reader.informer.synced()
            yield reader
            tasks.cancel_scope.cancel()


@pytest.fixture
def cluster(bus: Bus) -> Cluster:
    return Cluster(bus)


async def test_it_lists_follows_and_says_how_far_it_is(bus: Bus, cluster: Cluster) -> None:
    await writes.create(bus, key("a"), pod("a"), AUTHOR)
    await writes.create(bus, key("b"), pod("b"), AUTHOR)
    committed = await cluster.commit([bound("a")])
    async with reading(bus) as reader:
        assert reader.informer.position >= committed
        assert reader.listed == ["start"]
        assert sorted(reader.labels()) == ["AssignedPodAdd", "UnschedulablePodAdd"]
        assert list(reader.view.pods_on("n1")) == ["uid-a"]
        await cluster.commit([bound("b")])
        freed = await cluster.commit(releases=[released("a")])
        await reader.informer.reached(freed)
        assert reader.labels()[2:] == ["AssignedPodAdd", "AssignedPodDelete"]
        assert list(reader.view.pods_on("n1")) == ["uid-b"]
        assert reader.view.fence is not None
        assert reader.view.fence.n == 3
        assert reader.informer.fresh
    assert reader.contacts == [True]


@pytest.mark.parametrize("together", [True, False])
async def test_what_comes_at_one_go_is_told_at_one_go_before_anybody_else_runs(bus: Bus, together: bool) -> None:
    if isinstance(bus, MemoryBus):
        bus.link.reads_together = True
    untold: list[int] = []

    async with reading(bus, together=together) as reader:

        def look(*_: object) -> None:
            told = reader.changes[-1].sequence if reader.changes else 0
            if reader.view.position > max(told, listed):
                untold.append(reader.view.position)

        listed = reader.view.position
        await bus.subscribe("others", look)
        for start in range(0, 300, 50):
            names = [f"p{number}" for number in range(start, start + 50)]
            written = [stored.version("pods", pod(name)).but(expect=0) for name in names]
            for _ in range(20):
                bus.send("others", b"")
            last = (await bus.publish_many(written))[-1]
            assert isinstance(last, Ack)
            for _ in range(20):
                bus.send("others", b"")
            await reader.informer.reached(last.sequence)
            look()
        assert untold == []
        assert [change.key.name for change in reader.changes] == [f"p{number}" for number in range(300)]
        assert (max(reader.reads) > 1) is together


async def test_a_position_is_reached_although_no_message_is_for_this_reader(bus: Bus) -> None:
    async with reading(bus) as reader:
        foreign = await bus.publish(Outgoing(subjects.object_("services", "default", "s"), b"{}", 0))
        await reader.informer.reached(foreign.sequence)
        assert reader.informer.position == foreign.sequence


async def test_a_missed_commit_is_found_by_the_next_and_read_again(bus: Bus, cluster: Cluster) -> None:
    await writes.create(bus, key("a"), pod("a"), AUTHOR)
    async with reading(bus) as reader:
        await cluster.commit()
        skipped = await cluster.commit([bound("a")], skip=1)
        await reader.informer.reached(skipped)
        await reader.listed_again.wait()
    assert reader.listed == ["start", "commit 3 follows 1"]


async def test_a_missed_commit_is_found_by_the_fence_and_read_again(bus: Bus, cluster: Cluster) -> None:
    async with reading(bus) as reader:
        await cluster.commit()
        await cluster.write(stored.commit(2)[-1])
        await reader.listed_again.wait()
    assert reader.listed == ["start", "the fence is at commit 2, read were 1"]


async def test_an_unreadable_version_counts_as_deleted_and_becomes_a_dead_letter(bus: Bus) -> None:
    created = await writes.create(bus, key("a"), pod("a"), AUTHOR)
    async with reading(bus) as reader:
        subject = subjects.object_("pods", "default", "a")
        junk = await bus.publish(Outgoing(subject, b'{"resource": 1}', created.sequence))
        await reader.informer.reached(junk.sequence)
        assert not reader.view.pods
        found = await eventually("a dead letter", lambda: bus.get(streams.DEAD.name, subjects.dead("test")))
    letter = codec.decode(DeadLetter, found.payload)
    assert (letter.subject, letter.sequence) == (subject, junk.sequence)
    assert "resource" in letter.reason


@pytest.mark.parametrize("when", ["followed", "listed"])
async def test_what_a_view_raises_on_is_set_aside_and_all_else_is_read(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    met = raise_on(monkeypatch, Tables, "put_pod", lambda tables, key, *_: key[1] == "poison")
    await writes.create(bus, key("a"), pod("a"), AUTHOR)
    if when == "listed":
        await writes.create(bus, key("poison"), pod("poison"), AUTHOR)
    async with reading(bus) as reader:
        if when == "followed":
            await writes.create(bus, key("poison"), pod("poison"), AUTHOR)
            await reader.listed_again.wait()
            assert reader.listed[1].startswith("the view raised on cluster.pods.default.poison @")
        last = await writes.create(bus, key("b"), pod("b"), AUTHOR)
        await reader.informer.reached(last.sequence)
        assert {name for _, name in reader.view.pods} == {"a", "b"}
        assert len(met) == 1
        found = await eventually("a dead letter", lambda: bus.get(streams.DEAD.name, subjects.dead("test")))
    letter = codec.decode(DeadLetter, found.payload)
    assert letter.subject == "cluster.pods.default.poison"
    assert letter.reason == "the view raised Bug: nobody thought of this"


async def test_a_reader_without_gap_sees_predecessors_and_one_with_a_gap_says_so(bus: Bus) -> None:
    created = await writes.create(bus, key("a"), pod("a"), AUTHOR)
    async with reading(bus) as reader:
        updated = await writes.update(bus, key("a"), _labelled, AUTHOR)
        await reader.informer.reached(updated.sequence)
        blind = await bus.publish(Outgoing(subjects.object_("pods", "default", "a"), (await _payload(bus))))
        await reader.informer.reached(blind.sequence)
        assert created.sequence != blind.sequence
        assert [change.gap for change in reader.changes] == [False, False, True], "listed, followed, blind"


def _labelled(document: Document) -> Document:
    document["metadata"]["labels"] = {"changed": "yes"}
    return document


async def _payload(bus: Bus) -> bytes:
    delivery = await bus.get(streams.CLUSTER.name, subjects.object_("pods", "default", "a"))
    assert delivery is not None
    return delivery.payload


@pytest.mark.parametrize("stays", [True, False], ids=["bound", "released"])
async def test_documents_know_who_takes_room(bus: Bus, cluster: Cluster, stays: bool) -> None:
    await writes.create(bus, key("a"), pod("a"), AUTHOR)
    with fail_after(LIMIT_S):
        async with create_task_group() as tasks:
            following, listing = DocumentView(), DocumentView()
            first = Informer(bus, following, with_placements((subjects.OBJECTS_WITHOUT_FACTS,)), service="test")
            tasks.start_soon(first.run)
            await first.synced()
            last = await cluster.commit([bound("a")])
            if not stays:
                last = await cluster.commit(releases=[released("a")])
            await first.reached(last)
            second = Informer(bus, listing, with_placements((subjects.OBJECTS_WITHOUT_FACTS,)), service="test")
            tasks.start_soon(second.run)
            await second.synced()
            tasks.cancel_scope.cancel()
    for view in (following, listing):
        assert view.node_of("uid-a") == ("n1" if stays else "")
        assert view.typed(key("a")).metadata.uid == "uid-a"


async def test_a_snapshot_holds_objects_with_their_facts(bus: Bus, cluster: Cluster) -> None:
    await writes.create(bus, key("a"), pod("a"), AUTHOR)
    await cluster.commit([bound("a")])
    view = await snapshot(bus, silence_s=LIMIT_S)
    assert view.pods["default", "a"].pod.spec.node_name == "n1"
