"""Stores records in the background: nothing in the queue waits for them, and a missing NATS only delays them."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

import anyio
import structlog

from podyard.bus import Ack, Bus, BusError, Outgoing, TemporaryError, Unclear

LIMIT: Final = 20_000
"""Records that may wait ..."""

LIMIT_BYTES: Final = 64 * 1024 * 1024
"""... and what they may take; above either the oldest are dropped and counted: memory counts more than old explanations."""

RECORD_BYTES: Final = 1024
"""What a record takes besides its payload: its subject, its trace, its id."""

BATCH: Final = 256
RETRY_S: Final = 0.5


class Outbox:
    """Records to store and subjects to purge, in order. Put by synchronous code, carried by the task that runs `run`."""

    def __init__(self, bus: Bus, log: structlog.stdlib.BoundLogger, on_dropped: Callable[[int], None]) -> None:
        self._bus = bus
        self._log = log
        self._on_dropped = on_dropped
        self._waiting: deque[Outgoing] = deque()
        self._bytes = 0
        """What they take."""
        self._purges: deque[tuple[str, str]] = deque()
        self._some = anyio.Event()

    def put(self, message: Outgoing) -> None:
        """Store a message soon. Storing it twice must do no harm."""
        self._waiting.append(message)
        self._bytes += _taken(message)
        while len(self._waiting) > LIMIT or (self._bytes > LIMIT_BYTES and len(self._waiting) > 1):
            self._bytes -= _taken(self._waiting.popleft())
            self._on_dropped(1)
        self._some.set()

    def purge(self, stream: str, subject: str) -> None:
        """Remove a subject's messages soon, after what waits to be stored."""
        self._purges.append((stream, subject))
        self._some.set()

    async def run(self) -> NoReturn:
        """Carry for ever."""
        while True:
            await self._some.wait()
            self._some = anyio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Carry all that waits now."""
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            self._bytes -= sum(map(_taken, batch))
            again = self._settle(batch, await self._bus.publish_many(batch))
            if again:
                self._waiting.extendleft(reversed(again))
                self._bytes += sum(map(_taken, again))
                await anyio.sleep(RETRY_S)
        while self._purges:
            stream, subject = self._purges[0]
            if await self._purged(stream, subject):
                self._purges.popleft()

    def _settle(self, batch: list[Outgoing], answers: Sequence[Ack | BusError]) -> list[Outgoing]:
        """Messages to send again: those that were not stored, or perhaps not."""
        again = list[Outgoing]()
        for message, answer in zip(batch, answers, strict=True):
            if isinstance(answer, TemporaryError | Unclear):
                again.append(message)
            elif isinstance(answer, BusError):
                self._log.warning("a record was refused", subject=message.subject, reason=str(answer))
                self._on_dropped(1)
        return again

    async def _purged(self, stream: str, subject: str) -> bool:
        """Whether it is settled, one way or the other."""
        try:
            await self._bus.purge(stream, subject)
        except (TemporaryError, Unclear) as error:
            await anyio.sleep(error.delay_s if isinstance(error, TemporaryError) else RETRY_S)
            return False
        except BusError as error:
            self._log.warning("a subject could not be purged", subject=subject, reason=str(error))
        return True


def _taken(message: Outgoing) -> int:
    return RECORD_BYTES + len(message.payload)
