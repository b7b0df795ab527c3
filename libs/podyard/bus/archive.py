"""A stream's messages as nats-server takes them when it restores a stream (2.15.1: server/archive/archive.go,
server/stream_backup.go). Pure.

An archive is `MAGIC`, an entry with the stream's state, one for each message in the order of their sequences,
and `END`. The server wants it in the framing of Snappy, whose blocks need not be compressed, but have a
checksum (google/snappy: framing_format.txt).
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import BinaryIO, Final, NamedTuple

import msgspec
import numpy as np

MAGIC: Final = b"NATSARC1"
END: Final = bytes(5)
"""An entry that says nothing: without it the server knows that something is missing."""

BLOCK_BYTES: Final = 65536
"""What a block of the framing may hold."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of one part of an entry; far above what the server takes as a message."""

_STREAM_IDENTIFIER: Final = b"\xff\x06\x00\x00sNaPpY"
_UNCOMPRESSED: Final = b"\x01"
_CHECKSUM_BYTES: Final = 4
_SPAN: Final = 4096
"""Bytes whose checksum is found at once; the tables for it take 4 MiB."""

_CASTAGNOLI: Final = 0x82F63B78
_ALL_ONES: Final = 0xFFFFFFFF


class ArchiveError(ValueError):
    """Bytes that are no entries."""


class Entry(NamedTuple):
    """One message. `stored_ns` is nanoseconds since 1970, UTC; `head` its header block."""

    subject: str
    sequence: int
    stored_ns: int
    head: bytes
    payload: bytes


def encoded(entry: Entry) -> bytes:
    """The entry's bytes."""
    name = entry.subject.encode()
    numbers = (
        _number(len(name)),
        _number(entry.stored_ns << 1),  # zigzag: it is never before 1970
        _number(entry.sequence),
        _number(len(entry.head)),
        _number(len(entry.payload)),
    )
    return b"".join((*numbers, name, entry.head, entry.payload))


def entries(source: BinaryIO) -> Iterator[Entry]:
    """Those in a file that has no others and neither `MAGIC` nor `END`.

    :raises ArchiveError: it ends within one, or one is too large
    """
    while (name_bytes := _read_number(source, may_end=True)) is not None:
        stored, sequence, head_bytes, payload_bytes = (_read_number(source) or 0 for _ in range(4))
        name = _read(source, name_bytes)
        yield Entry(name.decode(), sequence, stored >> 1, _read(source, head_bytes), _read(source, payload_bytes))


def beginning(first: int, last: int, messages: int) -> bytes:
    """`MAGIC` and the state of a stream: its first sequence, the last one given, the number of messages."""
    state = {"messages": messages, "bytes": 0, "first_seq": first, "last_seq": last, "consumer_count": 0}
    return MAGIC + encoded(Entry("state.json", 0, 0, b"", msgspec.json.encode(state)))


def framed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of all parts in blocks of the framing."""
    yield _STREAM_IDENTIFIER
    waiting = bytearray()
    for part in parts:
        waiting += part
        while len(waiting) >= BLOCK_BYTES:
            yield _block(bytes(waiting[:BLOCK_BYTES]))
            del waiting[:BLOCK_BYTES]
    if waiting:
        yield _block(bytes(waiting))


def checksum(data: bytes) -> int:
    """CRC-32C, as the framing has it: rotated, and a constant added."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & _ALL_ONES


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli). The checksum of a span is the sum of what each byte at its distance from the end
    contributes; what came before goes into the first four bytes."""
    state = _ALL_ONES
    table = _contributions()
    for start in range(0, len(data), _SPAN):
        span = data[start : start + _SPAN]
        if len(span) < _CHECKSUM_BYTES:
            for byte in span:
                state = state >> 8 ^ int(table[-1, (state ^ byte) & 0xFF])
            continue
        first = int.from_bytes(span[:_CHECKSUM_BYTES], "little") ^ state
        indexes = np.frombuffer(first.to_bytes(_CHECKSUM_BYTES, "little") + span[_CHECKSUM_BYTES:], dtype=np.uint8)
        rows = np.arange(_SPAN - len(span), _SPAN)
        state = int(np.bitwise_xor.reduce(table[rows, indexes]))
    return state ^ _ALL_ONES


@cache
def _contributions() -> "np.ndarray[tuple[int, int], np.dtype[np.uint32]]":
    """What a byte adds to the checksum, the last row for the last byte of a span."""
    one = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(one & 1, one >> 1 ^ np.uint32(_CASTAGNOLI), one >> 1).astype(np.uint32)
    rows = np.empty((_SPAN, 256), dtype=np.uint32)
    rows[-1] = one
    for row in range(_SPAN - 2, -1, -1):
        rows[row] = rows[row + 1] >> 8 ^ one[rows[row + 1] & 0xFF]
    return rows


def _block(data: bytes) -> bytes:
    size = (len(data) + _CHECKSUM_BYTES).to_bytes(3, "little")
    return b"".join((_UNCOMPRESSED, size, checksum(data).to_bytes(_CHECKSUM_BYTES, "little"), data))


def _number(value: int) -> bytes:
    """As Go's `binary.PutUvarint`."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _read_number(source: BinaryIO, *, may_end: bool = False) -> int | None:
    value = shift = 0
    while True:
        byte = source.read(1)
        if not byte:
            if may_end and not shift:
                return None
            raise ArchiveError("it ends within an entry")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
        if shift > 63:
            raise ArchiveError("a number is too large")


def _read(source: BinaryIO, size: int) -> bytes:
    if size > MOST_BYTES:
        raise ArchiveError(f"a part of an entry has {size} bytes")
    data = source.read(size)
    if len(data) < size:
        raise ArchiveError("it ends within an entry")
    return data
