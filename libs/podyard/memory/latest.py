"""What was used last, so many of it."""

import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Latest(OrderedDict[K, V]):
    """A dictionary in the order of use: those not used the longest time go first.

    Reading does not count as use: `found = latest.get(key)`, and `latest.use(key)` if that was not `None`,
    which makes it the one used last. Without `use` the one kept first goes first. Whoever bounds it otherwise
    than by number drops with `pop_oldest` when it has to; for a bound in bytes there is `Kept`.
    """

    __slots__ = ("most",)

    if TYPE_CHECKING:

        def use(self, key: K, /) -> None:
            """Make an entry the one used last; a KeyError if there is none."""
            ...

    else:
        use = OrderedDict.move_to_end

    def __init__(self, most: int = sys.maxsize) -> None:
        """
        :param most: so many entries stay at most
        """
        self.most = most

    def keep(self, key: K, value: V) -> list[V]:
        """Keep a value as the one used last, in the place of an older one of its key; returns those that went
        for it."""
        self[key] = value
        self.move_to_end(key)
        gone: list[V] = []
        while len(self) > self.most:
            gone.append(self.popitem(last=False)[1])
        return gone

    def oldest(self) -> tuple[K, V]:
        """The entry that was not used the longest time; a StopIteration if there is none."""
        return next(iter(self.items()))

    def pop_oldest(self) -> tuple[K, V]:
        """Forget the entry that was not used the longest time; a KeyError if there is none."""
        return self.popitem(last=False)
