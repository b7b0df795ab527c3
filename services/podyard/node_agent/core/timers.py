"""Things that are due at a time, soonest first."""

import heapq
from typing import Generic, TypeVar

K = TypeVar("K")


class Timers(Generic[K]):
    """At most one due time a key. Setting it again replaces it: older heap entries are skipped when they come
    up."""

    def __init__(self) -> None:
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: object) -> bool:
        return key in self._due

    def set(self, key: K, due: float) -> None:
        """`key` is due at `due` (UTC seconds), and at no other time."""
        self._due[key] = due
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, key))

    def cancel(self, key: K) -> None:
        """`key` is not due any more."""
        self._due.pop(key, None)

    def pop_due(self, now: float) -> list[K]:
        """Take all keys that are due, in the order of their times."""
        found: list[K] = []
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                found.append(key)
        return found

    def next_due(self) -> float | None:
        """When the next key is due; None if none is."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
