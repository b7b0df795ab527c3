"""Remembering deletion markers for as long as they may matter. Pure."""

from typing import Final

from podyard.proto import streams

MEMORY_S: Final = 2.0 * streams.MARKER_TTL_S
"""How long a marker is remembered: it is gone from the stream after half of it."""


class MarkerMemory:
    """Keys in the order in which they were marked. Times are seconds by the stream's clock, growing."""

    def __init__(self) -> None:
        self._marked: dict[str, float] = {}

    def mark(self, key: str, at: float) -> list[str]:
        """`key` got its marker; returns the keys that are forgotten by that."""
        self._marked.pop(key, None)
        self._marked[key] = at
        expired: list[str] = []
        for oldest, marked_at in self._marked.items():
            if marked_at >= at - MEMORY_S:
                break
            expired.append(oldest)
        for oldest in expired:
            del self._marked[oldest]
        return expired

    def unmark(self, key: str) -> bool:
        """`key` lives again; returns whether it had a marker."""
        return self._marked.pop(key, None) is not None
