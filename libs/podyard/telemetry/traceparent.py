"""W3C trace context as it travels on the bus: `00-<trace id>-<span id>-<flags>`.

Source: https://www.w3.org/TR/trace-context/. Flags are bits (`03` occurs): only the lowest, sampled, is
looked at.
"""

import random
import re
from typing import Final, NamedTuple

from podyard.proto.traces import LENGTH, SAMPLED, SPAN_AT, flagged, is_sampled

__all__ = ["LENGTH", "SAMPLED", "SpanIds", "child", "flagged", "is_sampled", "new", "new_ids", "parse", "told"]

_PATTERN: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?\Z")
_random = random.SystemRandom()
_fast = random.Random(_random.getrandbits(128))


class SpanIds(NamedTuple):
    """One span's identity."""

    trace_id: int
    span_id: int
    flags: int

    @property
    def sampled(self) -> bool:
        """Whether whoever began the trace wants it kept."""
        return bool(self.flags & SAMPLED)

    def __str__(self) -> str:
        """As a traceparent."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags & 0xFF:02x}"


def parse(text: str) -> SpanIds | None:
    """The ids in a traceparent; `None` for anything that is not one (an empty text, ids of zeros, version
    ff)."""
    match = _PATTERN.match(text) if text else None
    if match is None or text.startswith("ff"):
        return None
    ids = SpanIds(int(match[1], 16), int(match[2], 16), int(match[3], 16))
    return ids if ids.trace_id and ids.span_id else None


def told(text: str) -> dict[str, str]:
    """Fields of a log line that belongs to a span: its ids, as collectors of logs know them; none for what
    is visibly no traceparent."""
    if len(text) != LENGTH:
        return {}
    return {"trace_id": text[3 : SPAN_AT - 1], "span_id": text[SPAN_AT : LENGTH - 3]}


def new_ids() -> tuple[int, int]:
    """Trace id and span id of a new trace; never zero."""
    return _fast.getrandbits(128) or 1, _fast.getrandbits(64) or 1


def new(*, sampled: bool = False) -> str:
    """A new trace and its root span's id."""
    trace_id, span_id = new_ids()
    return f"00-{trace_id:032x}-{span_id:016x}-{'01' if sampled else '00'}"


def child(parent: str) -> str | None:
    """A new span id in the trace of `parent`, with its flags; `None` if that is visibly no traceparent.

    By its outline only, since this runs some times a pod; whoever uses the ids parses them.
    """
    if len(parent) != LENGTH or parent[35] != "-" or parent[52] != "-":
        return None
    return f"{parent[:SPAN_AT]}{_fast.getrandbits(64) or 1:016x}{parent[52:]}"
