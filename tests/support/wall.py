"""A machine's wall clock that tests set.

wall = Wall()
service = make_service(SERVICE, bus, clock=wall.clock())
wall.ahead_s = -3600.0
"""

import time

from podyard.runtime.clock import Clock


class Wall:
    """The real one, set by as much as tests say."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s

    def clock(self) -> Clock:
        """The steady clock of a process that begins now."""
        return Clock(wall=self)
