"""What an old release wrote, this one reads with the same meaning."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from msgspec import inspect

from podyard.proto import catalogue, codec
from podyard.proto.codec import MessageError
from podyard.proto.queue_api import SessionHeartbeat
from tests.contract.proto import filled

GOLDEN = Path(__file__).parent / "golden"
MESSAGES = {message.__name__: message for message in catalogue.messages()}
FILES = sorted(GOLDEN.glob("*/*.json"))


def test_the_current_release_has_golden_bytes_of_every_message():
    newest = max(path.parent.name for path in FILES)
    assert {path.stem for path in FILES if path.parent.name == newest} >= MESSAGES.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_bytes_decode_with_every_field_kept(path: Path):
    message = codec.decode(MESSAGES[path.stem], path.read_bytes())
    written = msgspec.json.decode(path.read_bytes())
    again = msgspec.json.decode(codec.encode(message))
    assert {key: again.get(key) for key in written} == written


def test_attempts_that_release_0_1_calls_held_are_those_that_wait_in_the_binder():
    old = codec.decode(SessionHeartbeat, (GOLDEN / "v0.1" / "SessionHeartbeat.json").read_bytes())
    assert old.waiting == ("held-é",)
    new = SessionHeartbeat(session="s", waiting=("1-1",))
    assert codec.encode(new) == b'{"session":"s","waiting":["1-1"]}'
    assert codec.decode(SessionHeartbeat, codec.encode(new)) == new


@pytest.mark.parametrize("message", MESSAGES.values(), ids=lambda message: message.__name__)
def test_a_reader_ignores_fields_of_a_later_version(message: type[msgspec.Struct]):
    document = msgspec.json.decode(codec.encode(filled.full(inspect.type_info(message))))
    document["aFieldOfTheFuture"] = {"deep": [1]}
    codec.decode(message, msgspec.json.encode(document))


@pytest.mark.parametrize("message", MESSAGES.values(), ids=lambda message: message.__name__)
def test_round_trip(message: type[msgspec.Struct]):
    @settings(max_examples=25, deadline=None)
    @given(filled.strategy(inspect.type_info(message)))
    def check(value: msgspec.Struct):
        payload = codec.encode(value)
        assert codec.encode(codec.decode(message, payload)) == payload

    check()


@pytest.mark.parametrize("payload", [b"", b"\x00\xff", b"[]", b"{", b'"text"', b"nul", b"1e999"], ids=repr)
@pytest.mark.parametrize("message", MESSAGES.values(), ids=lambda message: message.__name__)
def test_rubbish_is_refused_with_a_reason(message: type[msgspec.Struct], payload: bytes):
    with pytest.raises(MessageError, match=message.__name__) as caught:
        codec.decode(message, payload)
    assert caught.value.reason
