"""Decisions that were made at positions which the view has not reached: they wait until it has, or until they have waited too long.

What waits costs nothing: when the view moves, only those are looked at that it has reached. Walked through at each look, as many as may
wait would keep the binder from renewing its lease.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from podyard.binder.core.intake import Open

SPARE: Final = 64
"""Entries of the heap that may be outdated beside as many as are current."""


class Ahead:
    """Invariant: `_by_position` holds every entry of `_entries`, and not many that have left it."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], tuple[int, int, Open]] = {}
        """By the decision's key, in order of arrival: position, number of the arrival, decision."""
        self._by_position: list[tuple[int, int, Open]] = []
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, held: Open) -> None:
        """It waits for the view."""
        self._arrivals += 1
        entry = self._entries[held.key] = (held.decision.position, self._arrivals, held)
        heappush(self._by_position, entry)

    def reached(self, position: int) -> list[Open]:
        """Those that the view has reached, in order of arrival; they wait no more."""
        found: list[tuple[int, int, Open]] = []
        while self._by_position and self._by_position[0][0] <= position:
            entry = heappop(self._by_position)
            if self._entries.get(entry[2].key) is entry:
                del self._entries[entry[2].key]
                found.append(entry)
        return [held for _, _, held in sorted(found, key=lambda entry: entry[1])]

    def received_before(self, limit: float) -> list[Open]:
        """Those that came at `limit` or earlier (seconds since 1970, UTC), in order of arrival; they wait no more."""
        found: list[Open] = []
        for _, _, held in self._entries.values():
            if held.received_at > limit:
                break
            found.append(held)
        for held in found:
            del self._entries[held.key]
        if len(self._by_position) > 2 * len(self._entries) + SPARE:
            self._by_position = list(self._entries.values())
            heapify(self._by_position)
        return found
