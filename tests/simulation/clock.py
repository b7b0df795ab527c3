"""Virtual time: one heap of events, one random source; nothing else decides what happens next."""

import heapq
import itertools
from collections.abc import Callable
from random import Random

START = 1_700_000_000.0
"""Seconds since 1970, UTC, when every simulation begins."""


class Clock:
    """The events to come. Equal times keep the order in which they were asked for."""

    def __init__(self, seed: int) -> None:
        self.now = START
        self.seed = seed
        self.random = Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._ticket = itertools.count()

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self.now - START

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Call at a time; one that is past means now."""
        heapq.heappush(self._events, (max(self.now, when), next(self._ticket), call))

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        """Call after a delay."""
        self.at(self.now + delay_s, call)

    def run(self, until: float) -> None:
        """Let everything happen up to `until`, seconds since the beginning."""
        end = START + until
        events, pop = self._events, heapq.heappop
        while events and events[0][0] <= end:
            self.now, _, call = pop(events)
            call()
        self.now = end


class ServerTimers:
    """The clock as the server in memory wants it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        self._clock.later(delay_s, call)
