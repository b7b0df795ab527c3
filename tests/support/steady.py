"""Time that a test moves: whatever counts seconds does not depend on how fast the machine is.

time = Steady()
service = make_service(SERVICE, bus, clock=time.clock())
time.passes(0.05)
"""

import time

from podyard.runtime.clock import Clock
from tests.support.waiting import eventually


class Steady:
    """Stands still but for what a test lets pass."""

    def __init__(self) -> None:
        self._began = time.time()
        self.passed_s = 0.0

    def __call__(self) -> float:
        """Seconds since 1970, UTC."""
        return self._began + self.passed_s

    def passes(self, seconds: float) -> None:
        self.passed_s += seconds

    async def has_passed(self, seconds: float) -> None:
        """Wait until somebody has let so much pass from now on."""
        until = self.passed_s + seconds
        await eventually(f"{seconds:g} s that pass", lambda: self.passed_s >= until)

    def clock(self) -> Clock:
        """The clock of a process that goes by it."""
        return Clock(wall=self, steady=self)
