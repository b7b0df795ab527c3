"""Remembering deletion markers for as long as they may matter, and no more of them than memory is given.
Pure."""

from typing import Final, NamedTuple

from podyard.proto import streams

TIMES: Final = 2.0
"""A marker is remembered so many times as long as it is kept in the stream: a late reader of it still finds
it known."""

MEMORY_BYTES: Final = 64 * 1024 * 1024
"""What one memory may take: some 150,000 deleted objects. Above it the oldest are forgotten early: the next
version of such an object counts as one with a gap before it (every hint is asked as if all had changed), and
a writer's first compare-and-set of it fails and reads."""

ENTRY_BYTES: Final = 400
"""What a marker takes besides its key's letters, and what its keepers hold under the same key (CPython 3.11
to 3.13: 230 to 380)."""


class Marker(NamedTuple):
    """What is remembered of one."""

    until: float
    """When it is forgotten, seconds by the stream's clock."""
    sequence: int


class MarkerMemory:
    """Keys in the order in which they were marked. Times are seconds by the stream's clock, growing.

    :param most_bytes: what the memory may take
    """

    def __init__(self, most_bytes: int = MEMORY_BYTES) -> None:
        self._most_bytes = most_bytes
        self._marked: dict[str, Marker] = {}
        self.bytes = 0
        """What it takes now, about."""

    def __len__(self) -> int:
        return len(self._marked)

    def mark(self, key: str, at: float, ttl_s: int = streams.MARKER_TTL_S, sequence: int = 0) -> list[str]:
        """`key` got its marker; returns the keys that are forgotten by that.

        :param ttl_s: how long the stream keeps the marker
        """
        self.unmark(key)
        self._marked[key] = Marker(at + TIMES * ttl_s, sequence)
        self.bytes += _cost(key)
        expired: list[str] = []
        left = self.bytes
        for oldest, marker in self._marked.items():
            if marker.until >= at and left <= self._most_bytes:
                break
            expired.append(oldest)
            left -= _cost(oldest)
        for oldest in expired:
            self.unmark(oldest)
        return expired

    def unmark(self, key: str) -> bool:
        """`key` lives again; returns whether it had a marker."""
        if self._marked.pop(key, None) is None:
            return False
        self.bytes -= _cost(key)
        return True

    def sequence(self, key: str) -> int | None:
        """Of the key's marker; None if it has none that is remembered."""
        marker = self._marked.get(key)
        return None if marker is None else marker.sequence


def _cost(key: str) -> int:
    return ENTRY_BYTES + len(key)
