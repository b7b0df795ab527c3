"""When a watch may send: at once as long as few do, in turn when many do."""

from typing import Final

SENDS_A_SECOND: Final = 2000
"""Of all watches together, each of which costs up to 0.2 ms. What one is told before its turn goes together:
a hundred watches of what changes 500 times a second would send 50,000 times, each time one line."""
SENDS_AT_ONCE: Final = 100
"""After a time in which nobody sent. A controller that waits for what it has written just now hears of it."""
GATHER_S: Final = 0.1
"""The longest wait for a turn."""


class Turns:
    """The sends of all watches on one clock.

    Each of them moves forward, by its share of a second, the time up to which all sends are accounted for;
    who comes when that lies more than `SENDS_AT_ONCE` sends ahead waits until it does not (a token bucket).
    """

    def __init__(self) -> None:
        self._accounted = 0.0

    def take(self, now: float) -> float:
        """The next turn, as a time in seconds on the caller's clock: `now`, or up to `GATHER_S` later."""
        self._accounted = max(self._accounted, now) + 1 / SENDS_A_SECOND
        turn = self._accounted - SENDS_AT_ONCE / SENDS_A_SECOND
        if turn > now + GATHER_S:
            self._accounted -= turn - now - GATHER_S
            turn = now + GATHER_S
        return max(turn, now)
