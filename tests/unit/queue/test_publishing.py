"""Records and nominations go out in the background, whatever the bus does; metrics tell."""

from collections.abc import Callable, Sequence

import anyio
import msgspec
import prometheus_client
import pytest
import structlog

from podyard.bus import Ack, BusError, Conflict, Delivery, Outgoing
from podyard.proto import codec, subjects
from podyard.proto.facts import Nomination
from podyard.proto.pools import Pool
from podyard.proto.requeues import PodMove
from podyard.queue import records
from podyard.queue.core.effects import AttemptEnded, Judged
from podyard.queue.instruments import Instruments
from podyard.queue.nominations import Nominations
from podyard.telemetry.tracing import Spans
from tests.unit.queue.play import new_queue, node_event, park
from tests.unit.queue.test_leader import Stage

LOG = structlog.get_logger()
SUBJECT = subjects.nomination("default", "p", "uid-p")


class FakeBus:
    """Answers publishes as told; keeps what was stored."""

    def __init__(self, *answers: BusError | None) -> None:
        self.answers = list(answers)
        self.stored: list[Outgoing] = []
        self.tried: list[Outgoing] = []
        self.there: Delivery | None = None

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[Ack | BusError]:
        return [self._publish(message) for message in messages]

    def _publish(self, message: Outgoing) -> Ack | BusError:
        self.tried.append(message)
        failure = self.answers.pop(0) if self.answers else None
        if failure is not None:
            return failure
        self.stored.append(message)
        return Ack(100 + len(self.stored), False)

    async def get(self, stream: str, subject: str) -> Delivery | None:
        return self.there


async def carried(run: Callable[[], object]) -> None:
    """Let a background task do all that it can do now."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()


def make_nominations(bus: FakeBus, epoch: int = 7, version: int = 0, pending: bool = True) -> Nominations:
    return Nominations(bus, LOG, epoch, lambda subject: version, lambda uid: pending)  # pyright: ignore[reportArgumentType] - a fake


def fact(node: str, epoch: int) -> Delivery:
    nomination = Nomination(namespace="default", name="p", uid="uid-p", node=node, epoch=epoch)
    return Delivery(SUBJECT, codec.encode(nomination), 55, 0.0, {})


async def test_a_nomination_is_a_compare_and_set_on_what_is_known() -> None:
    bus = FakeBus()
    writer = make_nominations(bus, version=12)
    writer.put("default", "p", "uid-p", node="n1", priority=3)
    await carried(writer.run)
    writer.put("default", "p", "uid-p", node="n2")
    await carried(writer.run)
    assert [message.expect for message in bus.stored] == [12, 101], "the second follows the first"
    first = codec.decode(Nomination, bus.stored[0].payload)
    assert (first.node, first.priority, first.epoch) == ("n1", 3, 7)


async def test_a_conflict_with_an_earlier_leader_is_written_over() -> None:
    bus = FakeBus(Conflict(SUBJECT, 55))
    bus.there = fact("old", epoch=6)
    writer = make_nominations(bus)
    writer.put("default", "p", "uid-p", node="n1")
    await carried(writer.run)
    assert bus.stored[0].expect == 55


async def test_a_conflict_with_a_later_leader_is_given_up() -> None:
    bus = FakeBus(Conflict(SUBJECT, 55))
    bus.there = fact("new", epoch=8)
    writer = make_nominations(bus)
    writer.put("default", "p", "uid-p", node="n1")
    await carried(writer.run)
    assert bus.stored == []


async def test_an_unclear_write_that_was_applied_is_not_repeated() -> None:
    bus = FakeBus(Conflict(SUBJECT, 55))
    bus.there = fact("n1", epoch=7)
    writer = make_nominations(bus)
    writer.put("default", "p", "uid-p", node="n1")
    await carried(writer.run)
    assert bus.stored == []


async def test_the_end_of_a_pod_leaves_a_marker_with_a_ttl() -> None:
    bus = FakeBus()
    writer = make_nominations(bus, version=9)
    writer.put("default", "p", "uid-p", over=True)
    await carried(writer.run)
    (marker,) = bus.stored
    assert (marker.deleted, marker.expires, marker.expect) == (True, True, 9)


async def test_a_nomination_that_is_stored_after_its_pods_end_is_taken_back() -> None:
    bus = FakeBus()
    writer = make_nominations(bus, pending=False)
    writer.put("default", "p", "uid-p", node="n1")
    await carried(writer.run)
    assert [(message.deleted, message.expect) for message in bus.stored] == [(False, 0), (True, 101)]


async def test_a_nomination_whose_pod_goes_before_the_view_shows_it_is_taken_back() -> None:
    bus = FakeBus()
    writer = make_nominations(bus)
    writer.put("default", "p", "uid-p", node="n1")
    await carried(writer.run)
    writer.gone("default", "p", "uid-p")
    writer.gone("default", "other", "uid-other")
    await carried(writer.run)
    assert [(message.deleted, message.expect) for message in bus.stored] == [(False, 0), (True, 101)]
    writer.gone("default", "p", "uid-p")
    await carried(writer.run)
    assert len(bus.stored) == 2


async def test_a_nomination_that_was_not_sent_when_its_pod_went_is_not_stored() -> None:
    bus = FakeBus()
    writer = make_nominations(bus)
    writer.put("default", "p", "uid-p", node="n1")
    writer.gone("default", "p", "uid-p")
    await carried(writer.run)
    assert [message.deleted for message in bus.stored] == [True]


@pytest.mark.parametrize("there", [None, fact("new", epoch=8)])
async def test_nothing_is_kept_of_a_pod_whose_end_somebody_else_wrote(there: Delivery | None) -> None:
    bus = FakeBus(Conflict(SUBJECT, 55))
    bus.there = there
    writer = make_nominations(bus)
    writer.put("default", "p", "uid-p", over=True)
    await carried(writer.run)
    assert bus.stored == []
    assert writer._written == {}


def test_a_record_of_very_many_moves_stays_small_enough() -> None:
    move = PodMove(namespace="default", name="p", uid="uid-p", to=Pool.ACTIVE)
    moves = (move,) * 5000
    record = records.requeue_record(Judged(incoming=node_event(), moved=moves, at=1.0))
    assert (len(record.moved), record.moved_unnamed) == (4096, 904)
    assert len(codec.encode(record)) < 4 * 1024 * 1024


class Sizes:
    """A core of which only sizes are asked."""

    def counts(self) -> dict[str, int]:
        return {pool.value: 0 for pool in Pool} | {"activeQ": 3, "backoffQ": 2, "errorBackoffQ": 4}

    def rejected(self) -> dict[tuple[str, ...], int]:
        return {("OnNodes", "default-scheduler"): 2}

    def in_flight_events(self) -> dict[str, int]:
        return {"PodPopped": 1, "NodeAdd": 5}


def test_metrics_tell_pools_moves_hints_and_outcomes() -> None:
    registry = prometheus_client.CollectorRegistry()
    instruments = Instruments(registry, Spans())
    queue = new_queue()
    park(queue, "p", "OnNodes")
    park(queue, "q", "OnNodes")
    queue.move_all(node_event("p"), 60.0)
    (judged,) = queue.take_effects()
    assert isinstance(judged, Judged)
    instruments.judged(judged)
    stage = Stage()
    stage.add("a")
    stage.done(stage.take(), "error")
    (ended,) = [one for one in stage.queue.take_effects() if isinstance(one, AttemptEnded)]
    instruments.ended([ended])
    instruments.show_pools(Sizes())
    sample = registry.get_sample_value
    assert sample("podyard_queue_pods", {"pool": "activeQ"}) == 3
    assert sample("podyard_queue_moves_total", {"event": "NodeAdd", "plugin": "OnNodes", "to": "activeQ"}) == 1
    assert sample("podyard_queue_skips_total", {"event": "NodeAdd"}) == 1
    assert sample("podyard_queue_attempts_total", {"outcome": "error"}) == 1
    hint = {"plugin": "OnNodes", "event": "NodeAdd", "answer": "QueueSkip"}
    assert sample("podyard_queue_hint_seconds_count", hint) == 1
    assert msgspec.json.encode(records.ended_record(ended))
    hint = {"plugin": "OnNodes", "event": "NodeAdd", "hint": "QueueSkip"}
    assert sample("scheduler_queueing_hint_execution_duration_seconds_count", hint) == 1
    assert sample("scheduler_pending_pods", {"queue": "active"}) == 3
    assert sample("scheduler_pending_pods", {"queue": "backoff"}) == 6
    assert sample("scheduler_unschedulable_pods", {"plugin": "OnNodes", "profile": "default-scheduler"}) == 2
    assert sample("scheduler_inflight_events", {"event": "NodeAdd"}) == 5
    instruments.show_pools(None)
    assert sample("scheduler_pending_pods", {"queue": "active"}) is None
