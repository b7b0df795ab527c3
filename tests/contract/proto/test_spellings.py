"""Values of enumerations: one spelling on the wire; what 0.1 wrote in another one is read."""

import re
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from podyard.proto import catalogue, codec, spellings
from podyard.proto.binder_api import BindReply
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord
from podyard.proto.objects_api import ObjectsReply
from podyard.proto.placement import Tombstone
from podyard.proto.queue_api import DoneRequest

KUBERNETES = {"TCP", "UDP", "SCTP"}
"""What Kubernetes spells in capitals alone."""


def literals(info: inspect.Type, seen: set[str]) -> set[str]:
    """All values of enumerations within a message."""
    if isinstance(info, inspect.StructType):
        if info.cls.__name__ in seen:
            return set()
        seen.add(info.cls.__name__)
        return set().union(*(literals(field.type, seen) for field in info.fields))
    if isinstance(info, inspect.LiteralType):
        return {str(value) for value in info.values}
    if isinstance(info, inspect.EnumType):
        return {str(member.value) for member in info.cls if member.value}
    inner: list[Any] = [
        getattr(info, name) for name in ("type", "item_type", "key_type", "value_type") if hasattr(info, name)
    ]
    inner += getattr(info, "types", ()) + getattr(info, "item_types", ())
    return set().union(*(literals(one, seen) for one in inner))


@pytest.mark.parametrize("message", catalogue.messages(), ids=lambda message: message.__name__)
def test_values_are_one_word_in_camel_case(message: type) -> None:
    values = literals(inspect.type_info(message), set())
    assert [
        value for value in values - KUBERNETES if not re.fullmatch(r"[A-Za-z][a-z0-9]*([A-Z][a-z0-9]*)*", value)
    ] == []


ATTEMPT = b'{"namespace":"a","name":"b","uid":"c","attempt":"1-1","outcome":"bind_error","at":1.0,"message":%s}'


@pytest.mark.parametrize(
    ("message", "old", "new"),
    [
        (AttemptRecord, ATTEMPT % b'"x"', '"outcome":"bindError"'),
        (
            DoneRequest,
            b'{"session":"s","results":[{"uid":"c","attempt":"1-1","outcome":"bind_error","namespace":"a","name":"b"}]}',
            '"outcome":"bindError"',
        ),
        (
            BindReply,
            b'{"epoch":1,"answers":[{"attempt":"1-1","uid":"c","result":"already bound"}]}',
            '"result":"alreadyBound"',
        ),
        (
            ObjectsReply,
            b'{"results":[{"resource":"pods","name":"b","namespace":"a","outcome":"not found"}]}',
            '"outcome":"notFound"',
        ),
        (
            Tombstone,
            b'{"type":"Tombstone","namespace":"a","name":"b","uid":"c","node":"n","reason":"node gone","endedAt":1.0}',
            '"reason":"nodeGone"',
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_old_spellings_are_read_and_new_ones_written(message: type, old: bytes, new: str) -> None:
    read = codec.decode(message, old)
    written = codec.encode(read).decode()
    assert new in written
    assert spellings.renewed(written.encode()).decode() == written


def test_texts_that_look_like_an_old_spelling_stay_as_they_are() -> None:
    text = '"outcome":"bind_error"'
    read = codec.decode(AttemptRecord, ATTEMPT % msgspec.json.encode(text))
    assert (read.outcome, read.message) == ("bindError", text)


def test_a_value_of_no_spelling_is_refused() -> None:
    with pytest.raises(MessageError, match="outcome"):
        codec.decode(AttemptRecord, (ATTEMPT % b'"x"').replace(b"bind_error", b"bind error"))


def test_bytes_that_are_no_text_are_refused_whatever_their_spelling() -> None:
    with pytest.raises(MessageError, match="utf-8"):
        codec.decode(AttemptRecord, (ATTEMPT % b'"x"')[:-1] + b',"later":"\xff"}')
