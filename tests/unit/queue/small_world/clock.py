"""Virtual time, and a network that delays, loses and repeats what is sent. Everything random comes from one
seed."""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

START: float = 1_700_000_000.25
SLOWEST_S = 0.03
"""How long a message is under way at most."""

AGAIN_S = 1.0
"""How long whoever asks waits for an answer before the same is asked again."""


class Clock:
    """Carries out what is due, in order of time, then of asking."""

    def __init__(self, seed: int) -> None:
        self.now = START
        self.random = Random(seed)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Carry `act` out when so much time has passed."""
        self._count += 1
        heappush(self._due, (self.now + seconds, self._count, act))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            at, _, act = heappop(self._due)
            self.now = max(self.now, at)
            act()
        self.now = end


class Network:
    """Messages between the parts."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.loss = 0.0
        """Probability that a message is lost; the same again that it comes twice."""

    def send(self, arrive: Callable[[], None]) -> None:
        """A message: it arrives once, twice or never, maybe after a later one."""
        fate = self.clock.random.random()
        if fate < self.loss:
            return
        for _ in range(2 if fate < 2 * self.loss else 1):
            self.clock.after(self.clock.random.uniform(0.0005, SLOWEST_S), arrive)

    def ask(
        self,
        serve: Callable[[Callable[[Any], None]], None],
        answered: Callable[[Any], None],
        lives: Callable[[], bool],
    ) -> None:
        """A request, the same again until it is answered.

        :param serve: what the other side does with it; it is handed how to answer, and need not
        :param answered: called once
        :param lives: whether the one who asks still does
        """
        over: list[bool] = []

        def take(reply: Any) -> None:
            if not over and lives():
                over.append(True)
                answered(reply)

        def attempt() -> None:
            if not over and lives():
                self.send(lambda: serve(lambda reply: self.send(lambda: take(reply))))
                self.clock.after(AGAIN_S, attempt)

        attempt()
