"""However what a server sends is cut into pieces, the same messages are taken from it as nats-py's own parser
finds."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from podyard.bus._parser import DirectParser

KNOWN = 7
"""The subscription whose messages are taken."""


class Client:
    """Notes what a parser tells it."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def take(self, sid: int, subject: bytes, reply: bytes, payload: bytes, head: bytes) -> bool:
        if sid == KNOWN:
            self.told.append((sid, subject, reply, payload, head))
        return sid == KNOWN

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        self.told.append((sid, subject, reply, data, headers or b""))

    async def _process_ping(self) -> None:
        self.told.append("ping")

    async def _process_pong(self) -> None:
        self.told.append("pong")

    async def _process_err(self, text: str) -> None:
        self.told.append(text)


def message(sid: int, subject: bytes, reply: bytes, head: bytes, payload: bytes, blank: bytes = b" ") -> bytes:
    words = [b"HMSG" if head else b"MSG", subject, b"%d" % sid, *([reply] if reply else [])]
    words += [b"%d" % len(head)] if head else []
    return blank.join([*words, b"%d" % (len(head) + len(payload))]) + b"\r\n" + head + payload + b"\r\n"


subjects = st.sampled_from([b"cluster.pods.a.b", b"MSG", b"_INBOX.x.1"])
payloads = st.one_of(
    st.binary(max_size=40), st.sampled_from([b"", b"\r\n", b"MSG a 7 3\r\nabc\r\n", b"PING\r\n", b"HMSG a 7 1 2"])
)
messages = st.builds(
    message,
    st.sampled_from([KNOWN, KNOWN, KNOWN, 8]),
    subjects,
    st.sampled_from([b"", b"$JS.ACK.1"]),
    st.sampled_from([b"", b"NATS/1.0\r\na: b\r\n\r\n"]),
    payloads,
    st.sampled_from([b" ", b" ", b" ", b"\t", b"  "]),
)
sent = st.lists(
    st.one_of(messages, st.sampled_from([b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"-ERR 'x'\r\n"])), max_size=8
)


def told(parser: type[Parser], pieces: list[bytes]) -> list[Any]:
    client: Any = Client()
    made = DirectParser(client, client.take, lambda: None) if parser is DirectParser else parser(client)

    async def parse() -> None:
        for piece in pieces:
            await made.parse(piece)

    asyncio.run(parse())
    return [*client.told, bytes(made.buf), made.state]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


@given(sent, st.lists(st.integers(0, 1000), max_size=6))
def test_the_same_is_told_as_by_nats_py(found: list[bytes], places: list[int]) -> None:
    pieces = cut(b"".join(found), places)
    assert told(DirectParser, pieces) == told(Parser, pieces)


@pytest.mark.parametrize("line", [b"MSG a x 1", b"MSG a 7", b"HMSG a 7 b 1 2 3", b"MSG a 7 b c 1", b"BAD"])
def test_a_line_that_is_no_good_is_refused_as_by_nats_py(line: bytes) -> None:
    data = message(KNOWN, b"a", b"", b"", b"b") + line + b"\r\nx\r\n"
    for parser in (DirectParser, Parser):
        with pytest.raises(ProtocolError):
            told(parser, [data])
