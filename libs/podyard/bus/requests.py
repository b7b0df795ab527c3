"""A request and its reply, and messages that expect none."""

from collections.abc import Mapping
from typing import NamedTuple

from nats.aio.msg import Msg

from podyard.proto import headers

_EMPTY: Mapping[str, str] = {}


class Request(NamedTuple):
    """What somebody asks a service. `reply` is empty if no answer is wanted; `trace` is the caller's traceparent or empty."""

    subject: str
    payload: bytes
    trace: str = ""
    reply: str = ""
    headers: Mapping[str, str] = _EMPTY


class Reply(NamedTuple):
    """What a service answered."""

    payload: bytes
    headers: Mapping[str, str] = _EMPTY


def request_of(message: Msg) -> Request:
    """`message` as its handler sees it."""
    lines = message.headers or _EMPTY
    return Request(message.subject, message.data, lines.get(headers.TRACEPARENT, ""), message.reply, lines)
