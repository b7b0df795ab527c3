"""Events are sent in the background, whatever the bus does; what is lost is counted and told."""

from collections.abc import Sequence

import anyio
import pytest
import structlog
from structlog.testing import capture_logs

from podyard.bus import Ack, BusError, NoResponders, Outgoing, TooLarge, Unclear
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent, Reason
from podyard.runtime.clock import Clock
from podyard.scheduler.service import SERVICE
from podyard.shell import event_recorder
from podyard.shell.event_correlator import BURST, Event
from podyard.shell.event_outbox import MOST
from podyard.shell.event_recorder import CHECK, LOST, SPARED, STORED, Recorder
from tests.support.services import make_service
from tests.support.waiting import eventually

KILLED = Reason("Killed")
MISSING = NoResponders("k8sevents.default.Pod.web.1")


class FakeBus:
    """Refuses with `failure`, or stores."""

    def __init__(self) -> None:
        self.failure: BusError | Exception | None = None
        self.tries: list[int] = []
        self.stored: list[Outgoing] = []
        self.silent = False

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[Ack | BusError]:
        self.tries.append(len(messages))
        if self.silent:
            await anyio.sleep_forever()
        if isinstance(self.failure, BusError):
            return [self.failure for _ in messages]
        if self.failure is not None:
            raise self.failure
        self.stored += messages
        return [Ack(number + 1) for number in range(len(messages))]


class SetClock(Clock):
    """Stands where it is put."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at


class Stage:
    def __init__(self) -> None:
        self.bus, self.clock = FakeBus(), SetClock()
        self.service = make_service(SERVICE, self.bus, clock=self.clock)
        self.recorder = Recorder(self.service)

    def record(self, number: int, *, name: str = "") -> None:
        about = ObjectRef(resource=subjects.PODS, namespace="default", name=name or f"web-{number}")
        self.recorder.record(Event(about, KILLED, f"message {number}", self.clock.at))

    def counted(self, outcome: str) -> float:
        found = self.service.metrics.get_sample_value("podyard_events_total", {"outcome": outcome})
        assert found is not None
        return found

    @property
    def told(self) -> str | None:
        """What `/readyz` says."""
        check = self.service.health.checks.get(CHECK)
        assert check is None or check.ok, "work goes on"
        return None if check is None else check.reason

    @property
    def stored(self) -> list[K8sEvent]:
        return [codec.decode(K8sEvent, message.payload) for message in self.bus.stored]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(event_recorder, "RETRY_S", 0.001)
    structlog.reset_defaults()
    return Stage()


async def test_an_event_lies_on_a_subject_of_its_own_and_a_repetition_on_the_same(stage: Stage) -> None:
    for _ in range(2):
        stage.record(1, name="web")
        await stage.recorder.flush()
    stage.record(2, name="web")
    await stage.recorder.flush()
    places = [message.subject for message in stage.bus.stored]
    first, again, other = stage.stored
    assert places == [f"k8sevents.default.Pod.web.{event.id}" for event in stage.stored]
    assert (places[0] == places[1], places[0] == places[2]) == (True, False)
    assert (first.count, again.count, other.count) == (1, 2, 1)


async def test_no_more_than_fifty_are_sent_within_a_second_and_the_rest_follows(stage: Stage) -> None:
    for number in range(120):
        stage.record(number)
    for _ in range(3):
        await stage.recorder.flush()
    assert stage.bus.tries == [50]
    stage.clock.at += 1
    await stage.recorder.flush()
    stage.clock.at += 1
    await stage.recorder.flush()
    assert stage.bus.tries[-2:] == [50, 20]
    assert stage.counted(STORED) == 120


async def test_of_too_many_that_wait_the_oldest_are_lost_counted_and_told(stage: Stage) -> None:
    for number in range(MOST + 3):
        stage.record(number)
    assert stage.counted(LOST) == 3
    assert stage.told == "events for people are not stored: more than 50 a second; 1000 wait, 3 are lost"
    for _ in range(20):
        await stage.recorder.flush()
        stage.clock.at += 1
    assert (stage.told, stage.counted(STORED)) == (None, MOST)


async def test_what_is_spared_its_object_is_counted_and_not_sent(stage: Stage) -> None:
    for _ in range(BURST + 5):
        stage.record(1, name="web")
    await stage.recorder.flush()
    assert (stage.counted(SPARED), [event.count for event in stage.stored]) == (5, [BURST])


async def test_a_stream_that_is_missing_is_told_and_what_waits_is_stored_when_it_is_there(stage: Stage) -> None:
    stage.bus.failure = MISSING
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.recorder.run)
        stage.record(1)
        await eventually("several tries", lambda: len(stage.bus.tries) > 3)
        assert stage.told == f"events for people are not stored: {MISSING}; 1 wait, 0 are lost"
        stage.bus.failure = None
        await eventually("it is stored", lambda: len(stage.bus.stored) == 1)
        await eventually("nothing is told", lambda: stage.told is None)
        tasks.cancel_scope.cancel()
    assert (stage.counted(STORED), stage.counted(LOST)) == (1, 0)


async def test_the_log_is_told_once_a_minute(stage: Stage) -> None:
    stage.bus.failure = MISSING
    with capture_logs() as logs:
        stage.record(1)
        for _ in range(5):
            await stage.recorder.flush()
            stage.clock.at += 10
        assert len(logs) == 1
        stage.clock.at += 10
        await stage.recorder.flush()
        assert [log["log_level"] for log in logs] == ["warning", "warning"]
        stage.bus.failure = None
        stage.clock.at += 1
        await stage.recorder.flush()
    assert logs[-1]["event"] == event_recorder.STORED_AGAIN


async def test_what_is_unclear_is_sent_again_and_what_is_refused_is_lost(stage: Stage) -> None:
    stage.record(1)
    stage.bus.failure = Unclear("k8sevents", "no answer")
    await stage.recorder.flush()
    assert stage.counted(LOST) == 0
    stage.clock.at += 1
    stage.bus.failure = TooLarge("k8sevents", 9)
    await stage.recorder.flush()
    assert (stage.counted(LOST), stage.counted(STORED)) == (1, 0)
    assert stage.told is not None
    assert "1 are lost" in stage.told


async def test_what_cannot_be_sent_at_all_ends_nothing(stage: Stage) -> None:
    stage.record(1)
    stage.bus.failure = ValueError("no such letter")
    with capture_logs():
        await stage.recorder.flush()
    stage.bus.failure = None
    stage.clock.at += 1
    stage.record(2)
    await stage.recorder.flush()
    assert (stage.counted(LOST), stage.counted(STORED)) == (1, 1)


async def test_what_was_under_way_at_the_end_of_a_term_is_sent_at_its_end(stage: Stage) -> None:
    stage.bus.silent = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.recorder.run)
        stage.record(1)
        await eventually("it is under way", lambda: stage.bus.tries)
        tasks.cancel_scope.cancel()
    stage.bus.silent = False
    await stage.recorder.flush()
    assert len(stage.bus.stored) == 1


async def test_the_end_of_a_term_waits_for_no_bus(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_recorder, "END_WITHIN_S", 0.01)
    stage.bus.silent = True
    stage.record(1)
    with anyio.fail_after(5):
        await stage.recorder.flush()


def test_recording_waits_for_nothing_and_needs_no_loop(stage: Stage) -> None:
    stage.record(1)
    assert stage.bus.tries == []


async def test_it_may_run_again_after_a_term(stage: Stage) -> None:
    for number in range(2):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.recorder.run)
            stage.record(number)
            wanted = number + 1
            await eventually("it is stored", lambda wanted=wanted: len(stage.bus.stored) == wanted)
            tasks.cancel_scope.cancel()
