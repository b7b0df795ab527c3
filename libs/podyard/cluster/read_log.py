"""Which message a reader has read last, and which it has read lately: so it knows whether another reader, who
names his last message, has read the same. Pure."""

from array import array
from bisect import bisect_left
from typing import Final

KEPT: Final = 65_536
"""Messages that are remembered at most, of 16 bytes: seconds of them at the design's rate."""


class ReadLog:
    """The messages that made one state: sequences, ascending, and when the server stored them. Noting a
    message costs O(1), a question O(log n).

    A sequence alone names no message: a stream that is made again, or loses its last messages with its
    server, gives the same numbers to others. It does not give them the same times.
    """

    def __init__(self, *, remembers: bool) -> None:
        """:param remembers: more than the last message"""
        self.last = 0
        """CLUSTER sequence of the last message that was read; 0: none yet."""
        self.last_at = 0.0
        """When the server stored that message, seconds since 1970, UTC."""
        self._remembers = remembers
        self._sequences = array("q")
        self._times = array("d")

    def __len__(self) -> int:
        return len(self._sequences)

    def note(self, sequence: int, stored_at: float) -> None:
        """A message was read; one that is repeated counts once."""
        if sequence <= self.last:
            return
        self.last, self.last_at = sequence, stored_at
        if not self._remembers:
            return
        if len(self._sequences) == KEPT:
            del self._sequences[: KEPT // 2], self._times[: KEPT // 2]
        self._sequences.append(sequence)
        self._times.append(stored_at)

    def holds(self, sequence: int, stored_at: float) -> bool:
        """Whether that message was read; False for one that is forgotten."""
        at = bisect_left(self._sequences, sequence)
        return at < len(self._sequences) and self._sequences[at] == sequence and self._times[at] == stored_at
