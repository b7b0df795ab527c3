"""Records go out in the background, whatever the bus does; what is lost is counted."""

from collections.abc import Sequence

import anyio
import pytest
import structlog

from podyard.bus import Ack, BusError, Outgoing, TooLarge, Unavailable, Unclear
from podyard.shell import records
from podyard.shell.records import Records

AWAY = Unavailable("away", delay_s=0.001)


class FakeBus:
    """Answers as told, then well; keeps what was stored. `silent`: nothing is answered."""

    def __init__(self, *answers: BusError | None) -> None:
        self.answers = list(answers)
        self.tried: list[str] = []
        self.stored: list[str] = []
        self.purged: list[tuple[str, str]] = []
        self.silent = False

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[Ack | BusError]:
        self.tried += [message.subject for message in messages]
        if self.silent:
            await anyio.sleep_forever()
        return [self._publish(message) for message in messages]

    def _publish(self, message: Outgoing) -> Ack | BusError:
        failure = self.answers.pop(0) if self.answers else None
        if failure is not None:
            return failure
        self.stored.append(message.subject)
        return Ack(100 + len(self.stored), False)

    async def purge(self, stream: str, subject: str) -> None:
        self.purged.append((stream, subject))
        failure = self.answers.pop(0) if self.answers else None
        if failure is not None:
            raise failure


class Stage:
    def __init__(self, *answers: BusError | None, tries: int | None = None) -> None:
        self.bus = FakeBus(*answers)
        self.lost: list[int] = []
        self.records = Records(self.bus, log=structlog.get_logger(), lost=self.lost.append, tries=tries)  # pyright: ignore[reportArgumentType] - a fake

    def put(self, *names: str) -> None:
        for name in names:
            self.records.put(Outgoing(name, b""))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RETRY_S", 0.0)


async def test_what_was_not_stored_or_perhaps_not_is_sent_again_in_order():
    stage = Stage(AWAY, Unclear("a", "no answer"))
    stage.put("a", "b", "c")
    await stage.records.flush()
    assert stage.bus.stored == ["c", "a", "b"]
    assert stage.lost == []


async def test_what_comes_meanwhile_is_stored_after_what_is_tried_again():
    stage = Stage(AWAY)
    stage.put(*(f"{number}" for number in range(records.BATCH + 1)))
    await stage.records.flush()
    assert stage.bus.stored == [*(f"{number}" for number in range(1, records.BATCH)), "0", f"{records.BATCH}"]


async def test_a_refused_record_is_counted_and_does_not_hold_up_others():
    stage = Stage(TooLarge("a", 5_000_000))
    stage.put("a", "b")
    await stage.records.flush()
    assert stage.bus.stored == ["b"]
    assert stage.lost == [1]


async def test_after_so_many_tries_a_record_is_lost():
    stage = Stage(AWAY, None, AWAY, AWAY, tries=3)
    stage.put("a", "b")
    await stage.records.flush()
    stage.put("c")
    await stage.records.flush()
    assert stage.bus.tried == ["a", "b", "a", "a", "c"]
    assert stage.bus.stored == ["b", "c"]
    assert stage.lost == [1]


async def test_purges_come_after_records_and_are_tried_again():
    stage = Stage(None, AWAY)
    stage.records.purge("DECISIONS", "d")
    stage.put("a")
    await stage.records.flush()
    assert stage.bus.purged == [("DECISIONS", "d")] * 2
    assert stage.bus.stored == ["a"]


async def test_above_the_limit_the_oldest_go(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(records, "MOST", 2)
    stage = Stage()
    stage.put("a", "b", "c")
    await stage.records.flush()
    assert stage.bus.stored == ["b", "c"]
    assert stage.lost == [1]


async def test_records_that_wait_and_those_under_way_are_bounded_in_bytes():
    stage = Stage()
    stage.bus.silent = True
    payload = bytes(4 * 1024 * 1024)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.records.run)
        for number in range(5):
            stage.records.put(Outgoing(f"{number}", payload))
        await anyio.wait_all_tasks_blocked()
        for number in range(5, 40):
            stage.records.put(Outgoing(f"{number}", payload))
        tasks.cancel_scope.cancel()
    assert sum(stage.lost) == 25, "15 of 4 MiB are there: 5 under way, the last 10 wait"
    stage.bus.silent = False
    await stage.records.flush()
    assert stage.bus.stored == [*(f"{number}" for number in range(5)), *(f"{number}" for number in range(30, 40))]


async def test_what_was_stored_gives_its_room_back_and_no_more_than_that():
    stage = Stage(*[AWAY] * 10)
    payload = bytes(4 * 1024 * 1024)
    for number in range(10):
        stage.records.put(Outgoing(f"{number} a", payload))
        stage.records.put(Outgoing(f"{number} b", payload))
        await stage.records.flush()
    assert stage.lost == []
    for number in range(20):
        stage.records.put(Outgoing(f"{number}", payload))
    assert sum(stage.lost) == 5, "15 of 4 MiB may wait"


async def test_what_a_cancelled_task_was_at_is_carried_by_the_next():
    stage = Stage()
    stage.bus.silent = True
    stage.put("a", "b")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.records.run)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    stage.bus.silent = False
    stage.put("c")
    await stage.records.flush()
    assert stage.bus.stored == ["a", "b", "c"]
