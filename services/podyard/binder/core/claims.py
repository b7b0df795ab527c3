"""Which decisions of its session a decision counts on, and which of a session's numbers are there: see
`skipping`."""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import msgspec

from podyard.proto.binder_api import BindRequest

MOST_RANGES: Final = 64
"""A claim in more pieces is not looked at: filtering costs less."""


class Claims(msgspec.Struct, frozen=True, gc=False):
    """Numbers of its session that a decision counted as placed and unseen: ranges, both ends included,
    ascending and apart."""

    ranges: tuple[tuple[int, int], ...]
    size: int


def claims_of(request: BindRequest) -> list[Claims | None]:
    """What each decision of a request counted on; `None`: it cannot be told, so nothing may be skipped."""
    ranges = [(one.first, one.last) for one in request.outstanding]
    ordered = all(first <= last for first, last in ranges)
    ordered = ordered and all(a[1] < b[0] for a, b in pairwise(ranges))
    found: list[Claims | None] = []
    for decision in request.decisions:
        number, before = decision.number, ranges[-1][1] if ranges else 0
        ordered = ordered and number > before
        known = (
            ordered and len(ranges) <= MOST_RANGES and not decision.not_assumed and decision.profile in request.digest
        )
        found.append(Claims(tuple(ranges), sum(last - first + 1 for first, last in ranges)) if known else None)
        if ranges and number == before + 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return found


class Numbers:
    """Numbers of one session whose pods are placed, bound after the highest position that was asked about."""

    def __init__(self) -> None:
        self._there: list[int] = []
        """Ascending."""
        self._bound: deque[tuple[int, list[int]]] = deque()
        """Those of them that are durable, by record, ascending."""

    def __len__(self) -> int:
        return len(self._there)

    def add(self, number: int) -> None:
        insort(self._there, number)

    def remove(self, number: int) -> None:
        """Take it out if it is there."""
        at = bisect_left(self._there, number)
        if at < len(self._there) and self._there[at] == number:
            del self._there[at]

    def bound(self, numbers: list[int], position: int) -> None:
        """They are durable. `numbers` ascend."""
        self._bound.append((position, numbers))

    def forget(self, position: int) -> None:
        """Whoever has read up to `position` has seen these: it claims them no more."""
        while self._bound and self._bound[0][0] <= position:
            numbers = self._bound.popleft()[1]
            if self._there[: len(numbers)] == numbers:
                del self._there[: len(numbers)]
            else:
                for number in numbers:
                    self.remove(number)

    def hold_all(self, ranges: Iterable[tuple[int, int]], position: int) -> bool:
        """Whether all of them are placed and came after `position`."""
        if self._bound and self._bound[0][0] <= position:
            self.forget(position)
        there = self._there
        return all(bisect_right(there, last) - bisect_left(there, first) == last - first + 1 for first, last in ranges)
