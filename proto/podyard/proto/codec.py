"""Encoding and decoding at one door: one typed decoder a message, built once.

Decoding validates; constructing does not. `decode` raises `MessageError` with the path of the fault, never anything else.
"""

from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
NULL = msgspec.Raw(b"null")
"""A Raw field that holds no object."""


class MessageError(ValueError):
    """Bytes that are not the message they should be. `reason` says where and why."""

    def __init__(self, message_type: str, reason: str) -> None:
        self.message_type = message_type
        self.reason = reason
        super().__init__(f"not a {message_type}: {reason}")


@cache
def decoder(message_type: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a message type or a union of them, made once; for hot paths that call `.decode` themselves."""
    return msgspec.json.Decoder(message_type)


def encode(message: msgspec.Struct) -> bytes:
    """`message` as it goes over the bus."""
    return _encoder.encode(message)


def decode(message_type: type[T], payload: bytes | memoryview) -> T:
    """`payload` as a `message_type`.

    :raises MessageError: if it is not valid JSON or not of that shape
    """
    try:
        return decoder(message_type).decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MessageError(message_type.__name__, str(error)) from error
