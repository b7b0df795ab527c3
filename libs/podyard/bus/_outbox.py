"""Messages sent without waiting: put by synchronous code, carried by one task."""

import logging
from collections import deque
from typing import Final, NoReturn

import anyio

from podyard.bus._link import Link
from podyard.bus.errors import BusError

log: Final = logging.getLogger("podyard.bus")

LIMIT: Final = 65_536
"""Messages that may wait; above it new ones are dropped and counted, since nobody was promised their arrival."""


class Outbox:
    """Sends in order and never blocks. Without a connection its messages are dropped: they are of the moment."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: deque[tuple[str, bytes, dict[str, str] | None]] = deque()
        self._some = anyio.Event()
        self.dropped = 0

    def put(self, subject: str, payload: bytes, lines: dict[str, str] | None = None) -> None:
        """Send `payload` soon."""
        if len(self._waiting) >= LIMIT:
            self._drop(subject, "too many wait")
            return
        self._waiting.append((subject, payload, lines))
        self._some.set()

    async def run(self) -> NoReturn:
        """Carry messages for ever."""
        while True:
            await self._some.wait()
            self._some = anyio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Hand everything that waits to the connection."""
        while self._waiting:
            subject, payload, lines = self._waiting.popleft()
            try:
                await self._link.publish(subject, payload, headers=lines)
            except BusError as error:
                self._drop(subject, str(error))

    def _drop(self, subject: str, why: str) -> None:
        self.dropped += 1
        log.debug("a message on %s was dropped: %s", subject, why)
