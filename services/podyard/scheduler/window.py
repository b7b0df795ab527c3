"""How many decisions may be with the binder at once.

Every decision is made on a view that those under way, of all schedulers, have overtaken by the time it is judged. On a cluster with room
that does no harm. The fuller it gets, the more schedulers want the same few nodes, and the more of what is under way is refused: then
this scheduler decides fewer pods ahead of the binder's answers, on fresher views. Nobody is told, nobody waits for anybody: each
scheduler goes by what it is refused itself.
"""

from collections.abc import Iterable
from typing import Final

from podyard.proto.binder_api import BindAnswer

FEWEST: Final = 4
"""Decisions that may be under way however many are refused: of one alone most of the time would be spent waiting."""
HELD_AT: Final = 0.02
"""Conflicts per answer at which the window keeps its size; below it grows, above it shrinks. Less than half of the 5 % that are promised:
when nearly nothing fits any more, the smallest window conflicts more often."""
SHRINKS_BY: Final = 0.5
"""Factor for one conflict."""
GROWS_BY: Final = SHRINKS_BY**-HELD_AT
"""Factor for one other answer: from the smallest window to 256 it takes 300 in a row."""
WORTH_ASKING: Final = 16
"""Decisions for which a request is begun while others are under way: requests cost, and so do small commits."""


class Window:
    """Decisions under way, and how many there may be. Not bound to time: what counts is how many others' decisions one cannot see."""

    def __init__(self, most: int) -> None:
        """:param most: decisions under way at most"""
        self._most = most
        self._size = float(most)
        self._under_way = 0

    @property
    def size(self) -> int:
        """How many may be under way."""
        return int(self._size)

    @property
    def room(self) -> int:
        """How many more pods to decide now; 0 until it is worth a request."""
        left = self.size - self._under_way
        worth = min(WORTH_ASKING, max(1, self.size // 2))
        return left if left >= worth or not self._under_way else 0

    def asked(self, decisions: int) -> None:
        """So many go to the binder."""
        self._under_way += decisions

    def answered(self, answers: Iterable[BindAnswer]) -> None:
        """The binder's answers to some that were asked."""
        for answer in answers:
            self._under_way -= 1
            self._size *= SHRINKS_BY if answer.result == "conflict" else GROWS_BY
            self._size = max(FEWEST, min(self._most, self._size))
