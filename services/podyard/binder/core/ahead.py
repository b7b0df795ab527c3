"""Decisions that were made at positions which the view has not reached: they wait until it has, or until they
have waited too long.

What waits costs nothing: when the view moves, only those are looked at that it has reached. Walked through at
each look, as many as may wait would keep the binder from renewing its lease.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from podyard.binder.core.pending import Pending

SPARE: Final = 64
"""Entries of the heap that may be outdated beside as many as are current."""


class Ahead:
    """Invariant: `_by_position` holds every entry of `entries`, and not many that have left it."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], tuple[int, int, Pending]] = {}
        """By the decision's key, in order of arrival: position, number of the arrival, decision. For others
        to look at."""
        self._by_position: list[tuple[int, int, Pending]] = []
        self._arrivals = 0

    def add(self, pending: Pending) -> None:
        """It waits for the view."""
        self._arrivals += 1
        entry = self.entries[pending.key] = (pending.decision.position, self._arrivals, pending)
        heappush(self._by_position, entry)

    def reached(self, position: int) -> list[Pending]:
        """Those that the view has reached, in order of arrival; they wait no more."""
        found: list[tuple[int, int, Pending]] = []
        while self._by_position and self._by_position[0][0] <= position:
            entry = heappop(self._by_position)
            if self.entries.get(entry[2].key) is entry:
                del self.entries[entry[2].key]
                found.append(entry)
        return [pending for _, _, pending in sorted(found, key=lambda entry: entry[1])]

    def received_before(self, limit: float) -> list[Pending]:
        """Those that came at `limit` or earlier (seconds since 1970, UTC), in order of arrival; they wait no
        more."""
        found: list[Pending] = []
        for _, _, pending in self.entries.values():
            if pending.received_at > limit:
                break
            found.append(pending)
        for pending in found:
            del self.entries[pending.key]
        if len(self._by_position) > 2 * len(self.entries) + SPARE:
            self._by_position = list(self.entries.values())
            heapify(self._by_position)
        return found
