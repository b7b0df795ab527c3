"""Requests are sent again until an answer counts; people are told once of each reason."""

from collections.abc import Callable
from typing import Any

import prometheus_client
import pytest
import structlog
from structlog.testing import capture_logs

from podyard.bus import BusError, NoResponders, RemoteError, Reply, RequestTimeout
from podyard.proto import codec
from podyard.proto.queue_api import QueueReply, SessionHeartbeat
from podyard.runtime.health import Check, Health
from podyard.shell import asking
from podyard.shell.asking import Asking, Epochs

BEAT = SessionHeartbeat(session="s")
HEARTBEAT, DONE = "svc.queue.heartbeat", "svc.queue.done"


class FakeBus:
    """Answers each request with the next of `answers`; keeps the epochs that requests name. Told before each
    answer: `watch`."""

    def __init__(self, *answers: BusError | QueueReply | bytes) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []
        self.watch: Callable[[], None] = lambda: None

    async def request(self, subject: str, payload: bytes, *, timeout_s: float | None = None) -> Reply:
        self.watch()
        self.asked.append((subject, codec.decode(SessionHeartbeat, payload).epoch))
        answer = self.answers.pop(0)
        if isinstance(answer, BusError):
            raise answer
        return Reply(answer if isinstance(answer, bytes) else codec.encode(answer))


class Stage:
    """The health check as it was at each request is in `seen`."""

    def __init__(self, *answers: BusError | QueueReply | bytes, **options: Any) -> None:
        self.bus = FakeBus(*answers)
        self.health = Health(stall_limit_s=1.0, registry=prometheus_client.CollectorRegistry(), now=lambda: 0.0)
        self.repeats: list[str] = []
        self.asking = Asking(
            self.bus,  # pyright: ignore[reportArgumentType] - a fake
            "queue",
            health=self.health,
            log=structlog.get_logger(),
            repeated=self.repeats.append,
            **options,
        )
        self.seen: list[str] = []
        self.bus.watch = lambda: self.seen.append(self.check.reason)

    @property
    def check(self) -> Check:
        return self.health.checks["queue"]

    async def beat(self, subject: str = HEARTBEAT) -> QueueReply:
        return await self.asking.ask(subject, BEAT, QueueReply)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PAUSE_S", 0.0)
    monkeypatch.setattr(asking, "REFUSED_PAUSE_S", 0.0)


async def test_whatever_is_no_answer_is_asked_again():
    no_answers = (NoResponders(HEARTBEAT), RequestTimeout(HEARTBEAT, 1.0), RemoteError("a bug"), b"rubbish")
    stage = Stage(*no_answers, QueueReply(epoch=1))
    assert (await stage.beat()).epoch == 1
    assert stage.repeats == [HEARTBEAT] * 4
    assert all(stage.seen[1:]), "while it is asked again the check says why"
    assert stage.check.ok


async def test_an_answer_of_a_lower_epoch_than_any_before_counts_as_none():
    epochs = Epochs()
    stage = Stage(QueueReply(epoch=5), QueueReply(epoch=4), QueueReply(epoch=6), epochs=epochs)
    assert (await stage.beat()).epoch == 5
    assert (await stage.beat(DONE)).epoch == 6
    assert stage.seen == ["", "", "a leader of epoch 4 answers, and there is one of 5"]
    assert stage.bus.asked == [(HEARTBEAT, 0), (DONE, 5), (DONE, 5)], "each names the highest"
    assert epochs.highest == 6


async def test_without_epochs_an_answer_counts_whatever_its_epoch():
    stage = Stage(QueueReply(epoch=5), QueueReply(epoch=4))
    assert [(await stage.beat()).epoch for _ in range(2)] == [5, 4]


async def test_a_refusal_is_asked_again_unless_it_is_an_answer():
    refused, done = QueueReply(epoch=1, refused="not yet"), QueueReply(epoch=1)
    stage = Stage(refused, done)
    assert await stage.beat() == done
    assert stage.seen[1] == "the queue refuses: not yet"
    stage = Stage(refused, done, refusal_is_answer=True)
    assert await stage.beat() == refused
    assert stage.check.ok, "what a refusal means the caller says"


async def test_the_log_tells_of_a_reason_once_until_there_is_an_answer():
    away, late = NoResponders(HEARTBEAT), RequestTimeout(HEARTBEAT, 1.0)
    stage = Stage(away, away, late, QueueReply(epoch=1), late, QueueReply(epoch=1))
    with capture_logs() as lines:
        await stage.beat()
        await stage.beat()
    reasons = [str(away), str(late), str(late)]
    assert [(line["subject"], line["reason"]) for line in lines] == [(HEARTBEAT, reason) for reason in reasons]


async def test_one_subject_that_is_answered_does_not_hide_that_another_is_not():
    stage = Stage(NoResponders(DONE), QueueReply(epoch=1), QueueReply(epoch=1))

    async def pause(_: float) -> None:
        if len(stage.bus.asked) == 1:
            await stage.beat(HEARTBEAT)
            assert stage.check.reason == str(NoResponders(DONE))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking.anyio, "sleep", pause)
        await stage.beat(DONE)
    assert stage.check.ok


async def test_what_the_caller_says_stays_until_it_says_otherwise():
    stage = Stage(NoResponders(HEARTBEAT), QueueReply(epoch=1), at_first="waiting for the first answer")
    await stage.beat()
    assert stage.check.reason == "waiting for the first answer"
    stage.asking.accepted()
    assert stage.check.ok
    stage.asking.refused("another profile")
    assert stage.check.reason == "the queue refuses: another profile"
