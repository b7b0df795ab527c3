"""How many decisions may be with the binder at once.

Every decision is made on a view that those under way, of all schedulers, have overtaken by the time it is
judged. On a cluster with room that does no harm. The fuller it gets, the more schedulers want the same few
nodes, and the more of what is under way is refused: then this scheduler decides fewer pods ahead of the
binder's answers, on fresher views. Nobody is told, nobody waits for anybody: each scheduler goes by what it
is refused itself. By then much is under way already, so in a small cluster it is less from the beginning.
"""

from collections.abc import Iterable
from typing import Final

from podyard.proto.binder_api import BindAnswer

FEWEST: Final = 2
"""Decisions that may be under way however many are refused: while one is judged, the next is made. Where
nearly nothing fits any more, the smallest window decides how many conflict: measured on 300 nodes filled to
99.9 %, 4.6 % with 2 and 6.8 % with 4."""
HELD_AT: Final = 0.02
"""Conflicts per answer at which the window keeps its size; below it grows, above it shrinks. Less than half
of the 5 % that are promised: when nearly nothing fits any more, the smallest window conflicts more often."""
SHRINKS_BY: Final = 0.5
"""Factor for one conflict."""
GROWS_BY: Final = SHRINKS_BY**-HELD_AT
"""Factor for one other answer: from the smallest window to 512 it takes 400 in a row."""
NODES_A_DECISION: Final = 4
"""So many nodes, at least, for each decision under way. Measured on 100 nodes filled to 97 % by three
schedulers: 3 % of decisions conflict, 12 % with 256 under way."""
WORTH_ASKING: Final = 16
"""Decisions for which a request is begun while others are under way: requests cost, and so do small
commits."""


class Window:
    """Decisions under way, and how many there may be. Not bound to time: what counts is how many others'
    decisions one cannot see."""

    def __init__(self, most: int) -> None:
        """:param most: decisions under way at most"""
        self._most = most
        self._size = float(most)
        self._by_nodes = most
        self._under_way = 0

    @property
    def size(self) -> int:
        """How many may be under way."""
        return min(int(self._size), self._by_nodes)

    @property
    def room(self) -> int:
        """How many more pods to decide now; 0 until it is worth a request."""
        left = self.size - self._under_way
        worth = min(WORTH_ASKING, max(1, self.size // 2))
        return left if left >= worth or not self._under_way else 0

    def spread_over(self, nodes: int) -> None:
        """The cluster has so many nodes."""
        self._by_nodes = max(WORTH_ASKING, nodes // NODES_A_DECISION)

    def asked(self, decisions: int) -> None:
        """So many go to the binder."""
        self._under_way += decisions

    def answered(self, answers: Iterable[BindAnswer]) -> None:
        """The binder's answers to some that were asked."""
        for answer in answers:
            self._under_way -= 1
            self._size *= SHRINKS_BY if answer.result == "conflict" else GROWS_BY
            self._size = max(FEWEST, min(self._most, self._size))
