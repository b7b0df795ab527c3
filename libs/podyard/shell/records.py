"""Stores records in the background: nothing in a service waits for them, and a missing NATS only delays
them."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

import anyio
import structlog

from podyard.bus import Ack, Bus, BusError, Outgoing, TemporaryError, Unclear

MOST: Final = 20_000
"""Records that may wait ..."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""... and what they may take; above either the oldest are dropped and counted: memory counts more than old
explanations."""

RECORD_BYTES: Final = 1024
"""What a record takes besides its payload: its subject, its trace, its id."""

BATCH: Final = 256
"""Records that are under way at once."""

RETRY_S: Final = 0.5


class Records:
    """Records to store and subjects to purge, in order. Put by synchronous code, carried by the task that
    runs `run`.

    A record may be stored twice, when the answer to the first try is lost, unless it has a message id.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        log: structlog.stdlib.BoundLogger,
        lost: Callable[[int], None],
        tries: int | None = None,
    ) -> None:
        """
        :param lost: told how many records will never be stored
        :param tries: after so many a record is lost; None: it is tried until there are too many
        """
        self._bus = bus
        self._log = log
        self._on_lost = lost
        self._tries = tries
        self._waiting: deque[Outgoing] = deque()
        self._under_way: list[Outgoing] = []
        self._tried = 0
        """How often those under way were tried."""
        self._bytes = 0
        """What is taken by those that wait and those that are under way."""
        self._purges: deque[tuple[str, str]] = deque()
        self._some = anyio.Event()
        self._carrying = anyio.Lock()

    def put(self, message: Outgoing) -> None:
        """Store a message soon."""
        self._waiting.append(message)
        self._bytes += _taken(message)
        dropped = 0
        while len(self._waiting) > MOST or (self._bytes > MOST_BYTES and len(self._waiting) > 1):
            self._bytes -= _taken(self._waiting.popleft())
            dropped += 1
        if dropped:
            self._on_lost(dropped)
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
        """Carry all that waits now, those included that a cancelled caller was at."""
        async with self._carrying:
            while self._under_way or self._waiting:
                if not self._under_way:
                    self._under_way = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                    self._tried = 0
                await self._store()
            while self._purges:
                stream, subject = self._purges[0]
                if await self._purged(stream, subject):
                    self._purges.popleft()

    async def _store(self) -> None:
        """One try with those that are under way."""
        batch = self._under_way
        again = self._settle(batch, await self._bus.publish_many(batch))
        self._tried += 1
        if again and self._tried == self._tries:
            self._lost(len(again), f"not stored in {self._tried} tries")
            again = []
        self._bytes -= sum(map(_taken, batch)) - sum(map(_taken, again))
        self._under_way = again
        if again:
            await anyio.sleep(RETRY_S)

    def _settle(self, batch: list[Outgoing], answers: Sequence[Ack | BusError]) -> list[Outgoing]:
        """Messages to send again: those that were not stored, or perhaps not."""
        again = list[Outgoing]()
        refusals = list[BusError]()
        for message, answer in zip(batch, answers, strict=True):
            if isinstance(answer, TemporaryError | Unclear):
                again.append(message)
            elif isinstance(answer, BusError):
                refusals.append(answer)
        if refusals:
            self._lost(len(refusals), str(refusals[0]))
        return again

    def _lost(self, number: int, reason: str) -> None:
        self._on_lost(number)
        self._log.warning("records are lost", records=number, reason=reason)

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
