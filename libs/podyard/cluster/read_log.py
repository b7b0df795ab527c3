"""Which messages a reader has read lately: whether another one, who names the last message that he had read,
has read the same. Pure."""

from array import array
from bisect import bisect_left
from typing import Final

KEPT: Final = 65_536
"""Messages that are remembered at most, of 16 bytes: seconds of them at the design's rate."""


class ReadLog:
    """Sequences, ascending, and when the server stored them. Noting one costs O(1), a question O(log n).

    A sequence alone names no message: a stream that is made again, or loses its last messages with its
    server, gives the same numbers to others. It does not give them the same times.
    """

    def __init__(self) -> None:
        self._sequences = array("q")
        self._times = array("d")

    def __len__(self) -> int:
        return len(self._sequences)

    def clear(self) -> None:
        """A listing begins: nothing that was read before says anything of what is there now."""
        del self._sequences[:], self._times[:]

    def note(self, sequence: int, stored_at: float) -> None:
        """A message was read, the last one so far."""
        if len(self._sequences) == KEPT:
            del self._sequences[: KEPT // 2], self._times[: KEPT // 2]
        self._sequences.append(sequence)
        self._times.append(stored_at)

    def holds(self, sequence: int, stored_at: float) -> bool:
        """Whether that message was read; False for one that is forgotten."""
        at = bisect_left(self._sequences, sequence)
        return at < len(self._sequences) and self._sequences[at] == sequence and self._times[at] == stored_at
