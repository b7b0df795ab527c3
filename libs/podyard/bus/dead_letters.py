"""Messages that could not be used: kept once each in `dead.<service>`, with the reason, while the service
goes on. Of thousands at once the log has few, and the number of the others."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, NoReturn

import anyio
from nats.nuid import NUID

from podyard.bus.delivery import Delivery
from podyard.bus.errors import BusError, PermanentError
from podyard.bus.outgoing import Outgoing
from podyard.bus.publisher import Publisher
from podyard.bus.requests import Request
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.proto import codec, subjects
from podyard.proto.operations import DeadLetter

log: Final = logging.getLogger("podyard.bus")

KEPT_PAYLOAD_BYTES: Final = 64 * 1024
WAITING: Final = 1024
"""Dead letters that may wait to be stored; above it the newest is lost, unless its reader meets it again."""

MOST_LINES: Final = 20
"""Dead letters that are logged within a second; of the others only the number is."""

REMEMBERED_BYTES: Final = 4 * 1024 * 1024
"""What is remembered of stored messages whose dead letter is not repeated when a reader meets them again
after listing: some 9,000."""

RETRY_S: Final = 1.0


def not_said() -> float:
    """The time for who connects without a clock."""
    return 0.0


class DeadLetters:
    """Takes dead letters from synchronous code and stores them in the background, until stored."""

    def __init__(self, publisher: Publisher, now: Callable[[], float]) -> None:
        """:param now: seconds since 1970, UTC"""
        self._publisher = publisher
        self._now = now
        self._waiting: deque[tuple[str, DeadLetter]] = deque()
        """With their message ids; the first one is being stored."""

        self._nuid = NUID()

        self._changed = anyio.Event()
        self._seen = Kept[tuple[str, str, int], bool](REMEMBERED_BYTES)
        self._lines = 0
        """Dead letters since the second began: those that were logged, and the others."""
        self._lost_since = 0
        """How many of them were lost, because too many waited."""

    def put(self, service: str, message: Delivery | Request, reason: str) -> None:
        """Keep `message` in `dead.<service>`; a stored message that was kept before is not kept again."""
        sequence = message.sequence if isinstance(message, Delivery) else 0
        if sequence and self._known((service, message.subject, sequence)):
            return
        if self._may_tell():
            log.warning("dead letter on %s (sequence %d): %s", message.subject, sequence, reason)
        if len(self._waiting) >= WAITING:
            self._lost_since += 1
            return
        if sequence:
            self._remember((service, message.subject, sequence))
        letter = DeadLetter(
            service=service,
            subject=message.subject,
            reason=reason,
            sequence=sequence,
            payload=bytes(message.payload[:KEPT_PAYLOAD_BYTES]),
            payload_bytes=len(message.payload),
            headers=dict(message.headers),
            at=self._now(),
        )
        self._waiting.append((self._nuid.next().decode(), letter))
        self._changed.set()

    async def run(self) -> NoReturn:
        """Store what was put, in order, waiting for NATS where needed."""
        while True:
            if not self._waiting:
                await self._next_change()
                continue
            if await self._store(*self._waiting[0]):
                self._waiting.popleft()
                self._changed.set()
            else:
                await anyio.sleep(RETRY_S)

    async def flush(self, timeout_s: float) -> None:
        """At the end: let `run` store what still waits, as far as `timeout_s` seconds allow."""
        with anyio.move_on_after(timeout_s):
            while self._waiting:
                await self._next_change()
        for _, letter in self._waiting:
            self._lost(letter, "the process ends")
        self._tell_rest()

    async def _next_change(self) -> None:
        self._changed = anyio.Event() if self._changed.is_set() else self._changed
        await self._changed.wait()

    async def _store(self, message_id: str, letter: DeadLetter) -> bool:
        """Whether it is settled; an unclear answer is sent again with the same id, which the server knows."""
        message = Outgoing(subjects.dead(letter.service), codec.encode(letter), message_id=message_id)
        try:
            await self._publisher.publish(message)
        except PermanentError as error:
            self._lost(letter, str(error))
        except BusError as error:
            log.info("a dead letter waits: %s", error)
            return False
        return True

    def _known(self, identity: tuple[str, str, int]) -> bool:
        if identity in self._seen:
            self._seen.use(identity)
            return True
        return False

    def _remember(self, identity: tuple[str, str, int]) -> None:
        self._seen.keep(identity, True, bytes_of(identity))

    def _may_tell(self) -> bool:
        """Whether one more line may be logged; the rest is told when the second is over."""
        self._lines += 1
        if self._lines == 1:
            asyncio.get_running_loop().call_later(1.0, self._tell_rest)
        return self._lines <= MOST_LINES

    def _tell_rest(self) -> None:
        more, lost = self._lines - MOST_LINES, self._lost_since
        self._lines = self._lost_since = 0
        if more > 0:
            log.warning("%d more dead letters within a second", more)
        if lost:
            log.error("%d dead letters are lost: more than %d wait to be stored", lost, WAITING)

    def _lost(self, letter: DeadLetter, why: str) -> None:
        log.error("a dead letter of %s on %s is lost (%s): %s", letter.service, letter.subject, why, letter.reason)
