"""What is packed is unpacked again, what cannot be true is refused, and each sequence is judged rightly."""

import random
import zlib
from array import array

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.bus import census
from podyard.proto import codec, streams
from podyard.proto.census import Census
from podyard.proto.codec import MessageError

INT64_MAX = 2**63 - 1
sequences = st.sets(st.one_of(st.integers(1, 60), st.integers(1, 2**40), st.integers(1, INT64_MAX - 10))).map(sorted)


@given(sequences, st.integers(0, 9))
def test_what_lived_lives_and_nothing_else_up_to_the_position(lived: list[int], behind: int) -> None:
    position = (lived[-1] if lived else 0) + behind
    found = census.decode(census.encode(position, lived, 1.5))
    assert (found.position, len(found)) == (position, len(lived))
    for sequence in {*range(62), *(near for one in lived for near in (one - 1, one, one + 1)), position}:
        assert found.living(sequence) == (sequence in lived), sequence
        assert found.came_back(sequence) == (sequence <= position and sequence not in lived), sequence


def packed(steps: list[int]) -> bytes:
    raw = b"".join(step.to_bytes(8, "little") for step in steps)
    return zlib.compress(b"".join(raw[place::8] for place in range(8)))


def told(living: bytes, position: int = 10) -> bytes:
    return codec.encode(Census(position=position, living=living))


def test_the_packing_is_the_one_that_is_described() -> None:
    message = codec.decode(Census, census.encode(300, [1, 4, 260], 2.5))
    assert message == Census(position=300, living=packed([1, 3, 256]), at=2.5)


BOMB = zlib.compress(b"\x01" * (census.MOST * 8 + 1))


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        pytest.param(b"{", "truncated", id="no JSON"),
        pytest.param(told(b"rubbish"), "living: Error -3", id="not packed"),
        pytest.param(told(packed([1, 2])[:-5]), "not one whole stream", id="cut"),
        pytest.param(told(packed([1, 2]) + b"x"), "not one whole stream", id="more behind it"),
        pytest.param(told(zlib.compress(b"123456789")), "9 bytes are no whole number", id="half a number"),
        pytest.param(told(packed([3, 0])), "there twice, or 0", id="twice"),
        pytest.param(told(packed([0, 3])), "there twice, or 0", id="no sequence"),
        pytest.param(told(packed([4, 7])), "above the position 10", id="behind the position"),
        pytest.param(told(packed([2**64 - 1, 2**64 - 1])), "above the position 10", id="beyond all numbers"),
        pytest.param(told(BOMB, INT64_MAX), f"more than {census.MOST} sequences", id="endless"),
        pytest.param(b'{"position":-1,"living":""}', "position", id="no position"),
    ],
)
def test_what_cannot_be_true_is_refused(payload: bytes, why: str) -> None:
    with pytest.raises(MessageError, match=why):
        census.decode(payload)


def test_a_million_messages_fit_into_a_message_however_far_apart_they_are() -> None:
    """A tenth of them here: what is packed grows with their number."""
    chance, count = random.Random(1), 100_000
    for apart in (1, 100, 100_000):
        lived, last = array("Q"), 10**12
        for _ in range(count):
            last += chance.randint(1, 2 * apart)
            lived.append(last)
        assert 10 * len(census.encode(last, lived, 1.0)) < streams.MAX_PAYLOAD_BYTES
    assert msgspec.json.decode(census.encode(last, lived, 1.0))["position"] == last
