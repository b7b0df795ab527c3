"""A push consumer: hands out a stream's messages in order, counts them itself, and says from time to time
that there is nothing."""

from collections.abc import Callable
from typing import Any, Final

from podyard.bus import _heads
from podyard.bus.watch import picker
from podyard.proto import headers
from tests.memory_nats.stream import Stored, Stream

SECOND_NS: Final = 1_000_000_000
CHUNK: Final = 256
"""Messages handed out at once; between two chunks others may write, as on the real server."""
CHUNK_S: Final = 0.001

Deliver = Callable[[str, str, bytes, bytes], bool]
"""Hands (subject, reply, payload, head) to whoever listens on the consumer's subject; whether somebody
does."""
Later = Callable[[float, Callable[[], None]], None]


class Consumer:
    """Invariant: everything up to `passed` was handed out or does not match."""

    def __init__(
        self,
        stream: Stream,
        config: dict[str, Any],
        deliver: Deliver,
        now: Callable[[], float],
        later: Later,
        gone: Callable[["Consumer"], None],
    ) -> None:
        """
        :param config: as in `CONSUMER.CREATE`
        :param gone: called when nobody has listened for `inactive_threshold`
        """
        self.name: str = config["name"]
        self.stream = stream
        self.closed = False
        start = config.get("opt_start_seq", 0)
        self.passed = start - 1 if start else 0
        self._matches = picker(tuple(config["filter_subjects"]))
        self._heartbeat_s = config.get("idle_heartbeat", 0) / SECOND_NS
        self._inactive_s = config.get("inactive_threshold", 0) / SECOND_NS
        self._deliver = deliver
        self._now = now
        self._later = later
        self._gone = gone
        self._sent = 0
        self._busy = False
        """A chunk is to follow."""
        self._active_at = now()
        self._heard_at = now()

    @property
    def pending(self) -> int:
        """Messages that wait for it."""
        return sum(1 for found in self.stream.after(self.passed) if self._matches(found.subject))

    def start(self) -> None:
        """Begin to hand out."""
        self._busy = True
        self._later(0.0, self._chunk)
        if self._heartbeat_s:
            self._later(self._heartbeat_s, self._beat)

    def stored(self, message: Stored) -> None:
        """The stream has a new message."""
        if self._busy or self.closed:
            return
        if not self._matches(message.subject):
            self.passed = message.sequence
        elif not self._hand_out(message, 0):
            self._busy = True

    def stall(self) -> None:
        """Hand out nothing more before the next heartbeat: what is written again meanwhile is handed out
        once."""
        self._busy = True

    def _chunk(self) -> None:
        if self.closed:
            return
        self.stream.expire(self._now())
        waiting = [found for found in self.stream.after(self.passed) if self._matches(found.subject)]
        for place, found in enumerate(waiting[:CHUNK]):
            if not self._hand_out(found, len(waiting) - place - 1):
                return
        if len(waiting) > CHUNK:
            self._later(CHUNK_S, self._chunk)
            return
        self._busy = False
        self.passed = max(self.passed, self.stream.last)

    def _hand_out(self, message: Stored, pending: int) -> bool:
        """Whether somebody took it; if nobody listens, it stays, and the next heartbeat looks again."""
        number = self._sent + 1
        place = f"{message.sequence}.{number}.{int(message.stored_at * SECOND_NS)}.{pending}"
        if not self._deliver(
            message.subject, f"$JS.ACK.{self.stream.name}.{self.name}.1.{place}", message.payload, message.head
        ):
            return False
        self._sent = number
        self.passed = message.sequence
        self._active_at = self._heard_at = self._now()
        return True

    def _beat(self) -> None:
        if self.closed:
            return
        now = self._now()
        if self._busy:
            self._chunk()
        if now - self._active_at >= self._heartbeat_s * 0.99:
            lines = {headers.LAST_CONSUMER: str(self._sent), headers.LAST_STREAM: str(self.passed)}
            text = "".join(_heads.line(name, value) for name, value in lines.items())
            if self._deliver("", "", b"", f"{_heads.VERSION} {_heads.CONTROL} Idle Heartbeat\r\n{text}\r\n".encode()):
                self._heard_at = now
        if self._inactive_s and now - self._heard_at > self._inactive_s:
            self._gone(self)
            return
        self._later(self._heartbeat_s, self._beat)
