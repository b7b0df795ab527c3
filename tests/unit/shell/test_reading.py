"""Reading: what /readyz says, what a core is told, and when the garbage collector is."""

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import anyio
import prometheus_client
import pytest

from podyard.bus import Delivery, WatchSpec
from podyard.bus.watch import WatchSink
from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.proto import subjects
from podyard.runtime.health import Health
from podyard.shell import causes, reading
from podyard.shell.informer import with_placements
from podyard.shell.reading import CHECK, COLLECT_EVERY, LISTING, SILENT, Reading
from tests.support import objects, stored
from tests.support.stream import ClusterStream


class WatchedBus:
    """A bus whose watch does what the test says."""

    def __init__(self) -> None:
        self.sink: WatchSink
        self.on_read: Callable[[], None] | None = None

    def watch(self, spec: WatchSpec, sink: WatchSink, *, on_read: Callable[[], None] | None) -> Any:
        del spec
        self.sink, self.on_read = sink, on_read
        return self

    def relist(self, reason: str) -> None:
        raise AssertionError(reason)

    async def run(self) -> None:
        await anyio.sleep_forever()


class Stage:
    def __init__(self, *, lasting: bool = False, together: bool = False) -> None:
        self.bus: Any = WatchedBus()
        self.health = Health(stall_limit_s=60.0, registry=prometheus_client.CollectorRegistry())
        self.told: list[Sequence[Change]] = []
        self.view = ClusterView()
        self.stream = ClusterStream(lambda: 1000.0)
        self.reading = Reading(
            self.bus,
            self.view,
            with_placements((subjects.OBJECTS_WITHOUT_FACTS,)),
            self.health,
            service="sample",
            on_changes=self._on_changes,
            on_listed=lambda reason: self.listings.append((reason, gc.get_freeze_count())),
            together=together,
            lasting=lasting,
        )
        self.listings: list[tuple[str, int]] = []
        self.causes: list[Any] = []

    def _on_changes(self, changes: Sequence[Change]) -> None:
        self.told.append(changes)
        for _ in changes:
            self.causes.append(causes.of(changes, self.view.version_of))

    def list_all(self, reason: str = "start") -> None:
        self.bus.sink.listing(self.stream.last, reason)
        for delivery in self.stream.held():
            self.bus.sink.deliver(delivery)
        self.bus.sink.synced(self.stream.last)

    @property
    def said(self) -> tuple[bool, str]:
        return self.health.checks[CHECK][:2]


async def test_it_is_ready_once_it_has_listed_and_while_the_cluster_is_heard() -> None:
    stage = Stage()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.reading.run)
        await anyio.wait_all_tasks_blocked()
        assert stage.said == (False, LISTING)
        stage.list_all()
        assert stage.said == (True, "")
        stage.bus.sink.contact(False)
        assert stage.said == (False, SILENT)
        stage.bus.sink.contact(True)
        assert stage.said == (True, "")
        tasks.cancel_scope.cancel()
    assert CHECK not in stage.health.checks, "who does not read says nothing of it"


async def test_what_a_listing_and_what_a_delivery_changed_is_told_with_its_cause() -> None:
    stage = Stage()
    stage.stream.put(stored.version("pods", objects.pod("a")))
    stage.list_all()
    stage.stream.put(stored.version("pods", objects.pod("b")))
    stage.bus.sink.deliver(stage.stream.log[-1])
    assert [len(changes) for changes in stage.told] == [1, 1]
    listed, delivered = stage.causes
    assert (listed.name, delivered.name) == ("cluster.pods.default.a@1", "cluster.pods.default.b@2")
    assert isinstance(delivered.message, Delivery)
    assert delivered.message.payload


def _uids(told: Sequence[Sequence[Change]]) -> list[list[str]]:
    return [[change.key.name for change in changes] for changes in told]


async def test_what_was_read_at_one_go_is_told_at_one_go_before_anything_else() -> None:
    stage = Stage(together=True)
    stage.list_all()
    for name in "abcdef":
        stage.stream.put(stored.version("pods", objects.pod(name)))
    *first, fifth, sixth = stage.stream.log
    for delivery in first:
        stage.bus.sink.deliver(delivery)
    assert stage.told == [], "there may be more"
    stage.bus.on_read()
    assert _uids(stage.told) == [["a", "b", "c", "d"]]
    assert [cause.message for cause in stage.causes] == list(first)
    stage.bus.on_read()
    assert len(stage.told) == 1, "nothing is told twice"
    stage.bus.sink.deliver(fifth)
    waiter = stage.bus.sink.waiter(fifth.sequence)
    assert not waiter.is_set(), "the core does not know of it"
    stage.bus.sink.advanced(fifth.sequence)
    assert _uids(stage.told)[1:] == [["e"]]
    assert waiter.is_set()
    stage.bus.sink.deliver(sixth)
    stage.list_all("a gap")
    assert _uids(stage.told)[2:] == [["f"]], "what was delivered is told before a listing begins"


async def test_what_was_read_is_told_at_once_unless_it_is_to_be_told_together() -> None:
    stage = Stage()
    stage.list_all()
    assert stage.bus.on_read is None
    stage.stream.put(stored.version("pods", objects.pod("a")))
    stage.bus.sink.deliver(stage.stream.log[-1])
    assert _uids(stage.told) == [["a"]]


@pytest.fixture
def _collector() -> Iterator[None]:
    """A collector that nobody has told anything yet: it is the process', and other tests run services in
    it."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    gc.unfreeze()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("_collector")
@pytest.mark.parametrize("lasting", [True, False])
async def test_what_lasts_is_put_out_of_the_collectors_sight_after_the_first_listing(lasting: bool) -> None:
    stage = Stage(lasting=lasting)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.reading.run)
        await anyio.wait_all_tasks_blocked()
        assert (gc.get_threshold() == COLLECT_EVERY) is lasting
        stage.list_all()
        frozen = gc.get_freeze_count()
        assert (frozen > 0) is lasting
        stage.list_all("a gap")
        assert stage.listings[0] == ("start", 0), "the core was told before"
        assert gc.get_freeze_count() <= frozen, "once"
        tasks.cancel_scope.cancel()
    assert reading.CHECK not in stage.health.checks
