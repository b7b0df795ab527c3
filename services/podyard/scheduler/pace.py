"""How many pods to schedule in one go, and how many to ask for, by how long cycles and pops take."""

from typing import Final

FEWEST: Final = 16
"""Pods in a slice at least, however slow cycles are."""
MOST: Final = 256
"""Pods in a slice at most: a pop's and a bind request's limit."""
SMOOTHING: Final = 0.1
"""Weight of the last slice in the mean time of a cycle, and of the last pop in the mean time of a pop."""
LONGEST_POP_S: Final = 0.05
"""A pop that took longer was held by the queue because nothing was ready: that tells nothing about the next
one."""


class Pace:
    """How many pods make a slice of the wanted length, and how many to ask for, by the mean times of the last
    cycles and pops."""

    def __init__(self, slice_s: float) -> None:
        self._slice_s = slice_s
        self._cycle_s = slice_s / FEWEST
        self._pop_s = 0.0

    @property
    def pods(self) -> int:
        """Pods in a slice."""
        return self._in(self._slice_s)

    @property
    def wanted(self) -> int:
        """Pods to have in hand: those of a slice, and of the time until the next pop is answered."""
        return self._in(self._slice_s + self._pop_s)

    def _in(self, seconds: float) -> int:
        return max(FEWEST, min(MOST, int(seconds / self._cycle_s)))

    def popped(self, seconds: float) -> None:
        """A pop that gave pods took so long."""
        self._pop_s += SMOOTHING * (min(seconds, LONGEST_POP_S) - self._pop_s)

    def measured(self, pods: int, seconds: float) -> None:
        """A slice of `pods` took so long."""
        self._cycle_s += SMOOTHING * (max(seconds / pods, 1e-6) - self._cycle_s)
