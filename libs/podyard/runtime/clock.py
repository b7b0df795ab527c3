"""The steady clock of a process: UTC at its start, from then on steady time, drawn slowly towards the wall
clock.

Whatever is stamped, waits or ages goes by it; nothing else asks the wall clock. That one may be set by hours,
forth or back: by a person, by the first answer of a time server, by a host that woke its guest. On the steady
clock no deadline passes early for that, and none is put off: a second of it takes between 0.95 and 1.05
seconds whatever happens (`SLEW`). A clock that was set by an hour is caught up with in 20 hours; a process
that is started again takes the wall clock's time at once.

So two processes may differ by as much as their wall clocks were set. How old a foreign time is (a
heartbeat's, a deletion's) counts, where somebody acts on it, from when it was received.
"""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

SLEW: Final = 0.05
"""How much faster or slower than steady time the clock runs at most, as a share of it."""
LOOK_EVERY_S: Final = 1.0
"""How often the wall clock is looked at, if anybody asks for the time."""


class _Line(NamedTuple):
    """Along which the clock runs until the next look. Replaced as a whole, so that any thread may read it."""

    since: float
    """Steady time of the last look."""
    at: float
    """The clock then."""
    rate: float
    """Its seconds to a second of steady time, up to `until`."""
    until: float
    """Steady time of the next look."""


class Clock:
    """Seconds since 1970, UTC, that never go back and never jump."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        """
        :param wall: seconds since 1970, UTC; may jump
        :param steady: seconds since any moment; may not
        """
        self._wall = wall
        self._steady = steady
        since = steady()
        self._line = _Line(since, wall(), 1.0, since + LOOK_EVERY_S)

    def now(self) -> float:
        """The time; any thread may ask."""
        since, at, rate, until = self._line
        steady = self._steady()
        if steady < until:
            return at + (steady - since) * rate
        return self._look(steady)

    def behind_s(self) -> float:
        """By how much the wall clock is ahead; below 0: it is behind."""
        return self._wall() - self.now()

    def _look(self, steady: float) -> float:
        """Look at the wall clock: the time now, and a rate that draws nearer.

        Nobody has asked since `until`, so that what has passed since then may be corrected, too.
        """
        since, at, rate, until = self._line
        unseen = steady - until
        plain = at + (until - since) * rate + unseen
        behind = self._wall() - plain
        made_up = _within(behind, SLEW * unseen)
        now = plain + made_up
        rate = 1.0 + _within(behind - made_up, SLEW * LOOK_EVERY_S) / LOOK_EVERY_S
        self._line = _Line(steady, now, rate, steady + LOOK_EVERY_S)
        return now


def _within(amount: float, most: float) -> float:
    """`amount`, or the nearest that is no further from 0 than `most`."""
    return max(-most, min(most, amount))


PROCESS: Final = Clock()
"""This process' clock. A service asks the one that it is given (`Service.clock`): a simulated process has its
own."""
now: Final = PROCESS.now
