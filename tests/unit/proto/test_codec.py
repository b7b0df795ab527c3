"""Bytes from outside: whatever is wrong with them, decoding says so, in one kind of error."""

import pytest

from podyard.proto import catalogue, codec
from podyard.proto.codec import MessageError
from podyard.proto.facts import NodeStatusFact, Nomination
from podyard.proto.placement import Fence, Placement
from tests.support import shapes

DEEP = 100_000
"""More levels than C may recurse in any Python that we run on: 3.13 lets it 10,000."""


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "Input data was truncated"),
        (b"null", "Expected `object`, got `null`"),
        (b"{", "Input data was truncated"),
        (b'{"node": 1}', "Expected `str`, got `int` - at `$.node`"),
        (b'{"node": "n1", "more": ' + nested(DEEP) + b"}", "nested too deep"),
        (nested(DEEP), "Expected `object`, got `array`"),
        (b'{"node": "n1", "at": NaN}', "JSON is malformed: invalid character (byte 21)"),
        (
            b'{"node": "n1", "more": "\xff"}',
            "'utf-8' codec can't decode byte 0xff in position 24: invalid start byte",
        ),
        (b'{"node": "\xc3"}', "'utf-8' codec can't decode byte 0xc3 in position 10: invalid continuation byte"),
    ],
)
@pytest.mark.parametrize("form", [bytes, memoryview])
def test_what_cannot_be_read_is_a_message_error_with_its_reason(form, payload: bytes, reason: str) -> None:
    with pytest.raises(MessageError) as caught:
        codec.decode(NodeStatusFact, form(payload))
    assert (caught.value.message_type, caught.value.reason) == ("NodeStatusFact", reason)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(b"9223372036854775808", id="2^63"),
        pytest.param(b"-9223372036854775809", id="-2^63-1"),
        pytest.param(b"1" + b"0" * 30, id="10^30"),
        pytest.param(b"1" + b"0" * 5_000, id="10^5000"),
    ],
)
def test_a_number_beyond_int64_is_none(number: bytes) -> None:
    payload = b'{"namespace": "a", "name": "b", "uid": "c", "node": "n", "priority": %s}'
    assert codec.decode(Nomination, payload % b"9223372036854775807").priority == 2**63 - 1
    with pytest.raises(MessageError, match=r"\$.priority"):
        codec.decode(Nomination, payload % number)


def test_a_hot_paths_decoder_says_the_same_and_names_a_unions_members() -> None:
    with pytest.raises(MessageError, match="not a Binding or Tombstone: nested too deep"):
        codec.decoder(Placement).decode(b'{"fact": "binding", "more": ' + nested(DEEP) + b"}")
    assert codec.decoder(Fence).decode(b'{"epoch": 1, "n": 2}') == Fence(epoch=1, n=2)


def test_every_whole_number_of_a_message_has_bounds_but_sums() -> None:
    """A number without bounds would be read, and raise where it is used: in a column, a float, a date."""
    sums = {f"Usage.{name}" for name in ("requests", "nonzero_cpu_milli", "nonzero_memory_bytes")}
    assert shapes.unbounded_numbers(catalogue.messages()) == sums
