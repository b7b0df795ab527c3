"""What was used last, as much of it as so many bytes hold.

Libraries have such caches (cachetools.LRUCache with getsizeof), but their hits run through two to four Python
functions, 0.5 to 1 µs; here a hit is two calls of the dictionary's own methods, 0.1 µs, and scheduling cycles
make dozens.
"""

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from podyard.memory.latest import Latest

K = TypeVar("K")
V = TypeVar("V")

ENTRY_BYTES: Final = 192
"""What an entry takes besides its key and value: three dictionary slots, a link, a whole number (CPython 3.11
to 3.13: 110 to 180)."""


class Kept(Generic[K, V]):
    """Values by key; whoever keeps one says what it takes, and those not used the longest time go first.

    `get` and `use` are methods of the dictionary itself: `found = kept.get(key)`, and `kept.use(key)` if that
    was not `None`, which makes it the one used last. Without `use` the one kept first goes first.
    """

    __slots__ = ("_costs", "_entries", "_fewest", "bytes", "get", "most_bytes", "use")

    def __init__(self, most_bytes: int, *, fewest: int = 0) -> None:
        """
        :param most_bytes: of all entries together
        :param fewest: so many entries stay whatever they take
        """
        self.most_bytes = most_bytes
        self.bytes = 0
        """What the entries take together, as they were said to."""
        self._fewest = fewest
        self._entries = Latest[K, V]()
        self._costs: dict[K, int] = {}
        self.get: Callable[[K], V | None] = self._entries.get
        """The value, `None` if there is none."""
        self.use: Callable[[K], None] = self._entries.use
        """Make an entry the one used last; a KeyError if there is none."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """Keys, the one that goes first first."""
        return iter(self._entries)

    def keep(self, key: K, value: V, cost: int = 0) -> list[V]:
        """Keep a value as the one used last, in the place of an older one of its key; returns those that went
        for it.

        A value that is larger than all that may be kept is not kept: it is among those returned.

        :param cost: bytes that key and value take besides `ENTRY_BYTES`
        """
        if key in self._costs:
            self.pop(key)
        cost += ENTRY_BYTES
        self._entries[key], self._costs[key] = value, cost
        self.bytes += cost
        gone: list[V] = []
        while self.bytes > self.most_bytes and len(self._entries) > self._fewest:
            oldest, evicted = self._entries.pop_oldest()
            self.bytes -= self._costs.pop(oldest)
            gone.append(evicted)
        return gone

    def pop(self, key: K) -> V | None:
        """Forget a key; its value, `None` if there is none."""
        cost = self._costs.pop(key, None)
        if cost is None:
            return None
        self.bytes -= cost
        return self._entries.pop(key)

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self._costs.clear()
        self.bytes = 0
