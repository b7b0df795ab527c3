"""Archives of streams: what is written can be read, and the checksum is CRC-32C."""

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.bus import archive
from podyard.bus.archive import ArchiveError, Entry

ENTRIES = st.lists(
    st.builds(
        Entry,
        subject=st.text(min_size=1, max_size=40),
        sequence=st.integers(1, 2**62),
        stored_ns=st.integers(0, 2**62),
        head=st.binary(max_size=300),
        payload=st.binary(max_size=300),
    ),
    max_size=8,
)


def bit_by_bit(data: bytes) -> int:
    """CRC-32C as its definition has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 if crc & 1 else crc >> 1
    return crc ^ 0xFFFFFFFF


def test_the_checksum_is_that_of_the_standard() -> None:
    """RFC 3720, B.4: 32 bytes of zeros, of ones, ascending; and the usual "123456789"."""
    known = {bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43, bytes(range(32)): 0x46DD794E, b"123456789": 0xE3069283}
    assert {data: archive.crc32c(data) for data in known} == known


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 4095, 4096, 4097, 4099, 4100, 3 * 4096 + 17])
def test_the_checksum_of_any_length(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert archive.crc32c(data) == bit_by_bit(data)


@given(ENTRIES)
def test_what_is_written_is_read(wanted: list[Entry]) -> None:
    source = io.BytesIO(b"".join(map(archive.encoded, wanted)))
    assert list(archive.entries(source)) == wanted


def test_a_file_that_ends_too_early_is_none() -> None:
    whole = archive.encoded(Entry("cluster.pods.a.b", 7, 1, b"head", b"payload"))
    for end in range(1, len(whole)):
        with pytest.raises(ArchiveError, match="ends within an entry"):
            list(archive.entries(io.BytesIO(whole[:end])))


@pytest.mark.parametrize("sizes", [[], [1], [65536], [65537], [10, 200_000, 3]])
def test_framing_loses_nothing(sizes: list[int]) -> None:
    parts = [random.Random(size).randbytes(size) for size in sizes]
    blocks = list(archive.framed(parts))
    assert blocks[0] == b"\xff\x06\x00\x00sNaPpY"
    assert b"".join(block[8:] for block in blocks[1:]) == b"".join(parts)
    assert all(int.from_bytes(block[1:4], "little") == len(block) - 4 <= 65540 for block in blocks[1:])
