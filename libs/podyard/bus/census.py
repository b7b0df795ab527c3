"""What lived in the stream when the last census was taken. Pure.

nats-server does not write down that a newer message of a subject replaced an older one (2.15.1;
`max_msgs_per_subject` 1). A marker of a deletion does so, and expires: after a SIGKILL the server reads what
still lies in its files, and finds the version before the marker. A census (`proto.census`) tells it from what
lives, by its sequence alone: sequences are never given twice in a stream, and a census is a message of the
stream that it tells of.

Packed, sequences are what each is more than the one before, 8 bytes each, all lowest bytes first, then the
second ones and so on: most of these are zero.
"""

import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from typing import Final

from podyard.proto import codec
from podyard.proto.census import Census
from podyard.proto.codec import MessageError

MOST: Final = 8_000_000
"""Sequences that a census is read with: several times as many as fit into a message."""

_BYTES: Final = 8
_LEVEL: Final = 6
_NAME: Final = Census.__name__


class Living:
    """Which sequences up to a position lived."""

    __slots__ = ("_sequences", "position")

    def __init__(self, position: int, sequences: "array[int]") -> None:
        """:param sequences: in their order, none above the position"""
        self.position = position
        self._sequences = sequences

    def __len__(self) -> int:
        return len(self._sequences)

    def living(self, sequence: int) -> bool:
        """Whether the message with this sequence, not above the position, lived."""
        index = bisect_left(self._sequences, sequence)
        return index < len(self._sequences) and self._sequences[index] == sequence

    def came_back(self, sequence: int) -> bool:
        """Whether a message with this sequence, if it has no TTL, had been deleted."""
        return sequence <= self.position and not self.living(sequence)


def encode(position: int, sequences: Sequence[int], at: float) -> bytes:
    """The payload of a census.

    :param sequences: in their order, from 1, none twice, none above the position
    :param at: seconds since 1970, UTC
    """
    return codec.encode(Census(position=position, living=_packed(sequences), at=at))


def decode(payload: bytes) -> Living:
    """What a payload says.

    :raises MessageError: it is no census, or one that cannot be true
    """
    census = codec.decode(Census, payload)
    return Living(census.position, _unpacked(census.living, census.position))


def _packed(sequences: Sequence[int]) -> bytes:
    raw = _little(array("Q", (after - before for before, after in pairwise(chain((0,), sequences))))).tobytes()
    return zlib.compress(b"".join(raw[place::_BYTES] for place in range(_BYTES)), _LEVEL)


def _unpacked(packed: bytes, position: int) -> "array[int]":
    try:
        unpacking = zlib.decompressobj()
        planes = unpacking.decompress(packed, MOST * _BYTES + 1)
    except zlib.error as error:
        raise MessageError(_NAME, f"living: {error}") from error
    if len(planes) > MOST * _BYTES:
        raise MessageError(_NAME, f"living: more than {MOST} sequences")
    if not unpacking.eof or unpacking.unused_data:
        raise MessageError(_NAME, "living: not one whole stream of zlib")
    count, rest = divmod(len(planes), _BYTES)
    if rest:
        raise MessageError(_NAME, f"living: {len(planes)} bytes are no whole number of sequences")
    raw = bytearray(len(planes))
    for place in range(_BYTES):
        raw[place::_BYTES] = planes[place * count : (place + 1) * count]
    steps = array("Q")
    steps.frombytes(raw)
    _little(steps)
    if 0 in steps:
        raise MessageError(_NAME, "living: a sequence is there twice, or 0")
    if sum(steps) > position:
        raise MessageError(_NAME, f"living: a sequence is above the position {position}")
    return array("Q", accumulate(steps))


def _little(numbers: "array[int]") -> "array[int]":
    """The numbers as they are in a message, or back."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
