"""A request and its reply, and messages that expect none."""

from collections.abc import Mapping
from typing import NamedTuple

from podyard.bus import _heads
from podyard.proto import headers

_EMPTY: Mapping[str, str] = {}


class Request(NamedTuple):
    """What somebody asks a service. `reply` is empty if no answer is wanted; `trace` is the caller's
    traceparent or empty."""

    subject: str
    payload: bytes
    trace: str = ""
    reply: str = ""
    headers: Mapping[str, str] = _EMPTY


class Reply(NamedTuple):
    """What a service answered."""

    payload: bytes
    headers: Mapping[str, str] = _EMPTY


def request_of(subject: str, reply: str, payload: bytes, head: bytes) -> Request:
    """A received message as its handler sees it."""
    lines = _heads.parse(head) if head else _EMPTY
    return Request(subject, payload, lines.get(headers.TRACEPARENT, ""), reply, lines)
