"""Encoding and decoding at one door: one typed decoder a message, built once.

Decoding validates; constructing does not. Whatever is wrong with bytes, decoding them raises `MessageError`,
never anything else: no JSON, another shape, text that is not UTF-8, nesting deeper than Python follows, a
number that no field can hold.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from podyard.proto import spellings

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
NULL = msgspec.Raw(b"null")
"""A Raw field that holds no object."""

TOO_DEEP: Final = "nested too deep"


class MessageError(ValueError):
    """Bytes that are not the message they should be. `reason` says where and why."""

    def __init__(self, message_type: str, reason: str) -> None:
        self.message_type = message_type
        self.reason = reason
        super().__init__(f"not a {message_type}: {reason}")


class Decoder(Generic[T]):
    """Decodes one message type, or a union of them. Hot paths keep its `decode`."""

    __slots__ = ("decode",)

    def __init__(self, message_type: Any) -> None:
        self.decode: Callable[[bytes | memoryview], T] = _guarded(message_type)
        """Bytes as the message; raises `MessageError` if they are not one."""


def _guarded(message_type: Any) -> Callable[[bytes | memoryview], Any]:
    read = msgspec.json.Decoder(message_type).decode
    members: tuple[type, ...] = getattr(message_type, "__args__", ()) or (message_type,)
    name = " or ".join(member.__name__ for member in members)

    def decode(payload: bytes | memoryview) -> Any:
        try:
            if not isinstance(payload, bytes) or not payload.isascii():
                # what msgspec skips, it does not look at: all readers find the same fault
                str(payload, "utf-8")
            try:
                return read(payload)
            except msgspec.ValidationError:
                renewed = spellings.renewed(payload)
                if renewed == payload:
                    raise
                return read(renewed)
        except Exception as error:  # boundary: bytes from outside
            raise MessageError(name, why_unreadable(error)) from error

    return decode


def why_unreadable(error: Exception) -> str:
    """What decoding raised, in words that fit any message."""
    return TOO_DEEP if isinstance(error, RecursionError) else str(error)


@cache
def decoder(message_type: Any) -> Decoder[Any]:
    """The decoder of a message type or a union of them, made once."""
    return Decoder(message_type)


def encode(message: msgspec.Struct) -> bytes:
    """`message` as it goes over the bus."""
    return _encoder.encode(message)


def decode(message_type: type[T], payload: bytes | memoryview) -> T:
    """`payload` as a `message_type`.

    :raises MessageError: if it is not valid JSON or not of that shape
    """
    return decoder(message_type).decode(payload)
