"""Records of attempts that did not bind, into the stream of decisions."""

from collections.abc import Sequence
from typing import Final

import anyio
import structlog

from podyard.bus import Bus, BusError, Outgoing, PermanentError
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord, message_id
from podyard.scheduler.engine import Engine
from podyard.scheduler.instruments import Instruments

AT_ONCE: Final = 256
TRIES: Final = 5
"""After that a record is given up: it is for people, and the next attempt writes another."""
PAUSE_S: Final = 1.0


class RecordLink:
    """Publishes what the engine's outbox holds. A repeat carries the same message id, so the stream keeps one."""

    def __init__(
        self, bus: Bus, engine: Engine, *, instruments: Instruments, log: structlog.stdlib.BoundLogger
    ) -> None:
        self._bus = bus
        self._engine = engine
        self._instruments = instruments
        self._log = log

    async def run(self) -> None:
        """Publish for ever."""
        while True:
            records = await self._engine.records.take(AT_ONCE)
            await self._publish([outgoing(record) for record in records])

    async def _publish(self, messages: Sequence[Outgoing]) -> None:
        for _ in range(TRIES):
            answers = await self._bus.publish_many(messages)
            failed = [(message, answer) for message, answer in zip(messages, answers, strict=True) if _failed(answer)]
            hopeless = [answer for _, answer in failed if isinstance(answer, PermanentError)]
            self._lost(len(hopeless), hopeless)
            messages = [message for message, answer in failed if not isinstance(answer, PermanentError)]
            if not messages:
                return
            await anyio.sleep(PAUSE_S)
        self._lost(len(messages), ())

    def _lost(self, number: int, reasons: Sequence[object]) -> None:
        if number:
            self._instruments.lost_records.inc(number)
            reason = str(reasons[0]) if reasons else f"not stored in {TRIES} tries"
            self._log.warning("records of attempts are lost", records=number, reason=reason)


def outgoing(record: AttemptRecord) -> Outgoing:
    """The message of a record."""
    return Outgoing(
        subject=subjects.decisions(record.namespace, record.name, record.uid),
        payload=codec.encode(record),
        message_id=message_id(record),
        trace=record.trace,
    )


def _failed(answer: object) -> bool:
    return isinstance(answer, BusError)
