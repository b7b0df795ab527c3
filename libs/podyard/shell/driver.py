"""Drives a core: the only caller of its `step`, and the one timer that it has.

A core that raises is never told anything again: what it holds may be half changed. Its term ends, and the next one begins with a new core
that lists everything anew (`boundary`).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar

import anyio

M_contra = TypeVar("M_contra", contravariant=True)
E_co = TypeVar("E_co", covariant=True)
M = TypeVar("M")
E = TypeVar("E")

NEVER: Final = float("inf")


class Core(Protocol[M_contra, E_co]):
    """A pure state machine."""

    def step(self, message: M_contra, now: float) -> Sequence[E_co]:
        """Take one message in; returns what is to be done, in this order."""
        ...


class Driver(Generic[M, E]):
    """One core, for one term. Owned by one event loop; `step` is synchronous, so that view and core never disagree at an await."""

    def __init__(
        self,
        core: Core[M, E],
        *,
        now: Callable[[], float],
        carry_out: Callable[[Sequence[E]], None],
        failed: Callable[[M, Exception], None],
        tick: M | None = None,
        wake_at: Callable[[], float | None] = lambda: None,
        floor_s: float = 0.0,
    ) -> None:
        """
        :param now: the steady clock, seconds since 1970, UTC
        :param carry_out: does what the core wants done, in its order; not called with nothing
        :param failed: told once, of the message that the core raised on: ends the term
        :param tick: what the core is told when it is time
        :param wake_at: when it is, on the clock of `now`; None: only a message can change anything
        :param floor_s: the shortest wait: what is due within it is done together
        """
        self.over = False
        """The core is told nothing any more."""
        self._core: Core[Any, Any] = core
        self._now = now
        self._carry_out = carry_out
        self._failed = failed
        self._tick = tick
        self._wake_at = wake_at
        self._floor_s = floor_s
        self._stepping = False
        self._waiting: deque[M] = deque()
        """What came while the core was in a step, or its effects were carried out."""
        self._rung = anyio.Event()
        self._rings_at = NEVER
        self._alarm: asyncio.TimerHandle | None = None

    def step(self, message: M) -> None:
        """Tell the core, and do what it wants done. What comes meanwhile is told afterwards, in its order."""
        if self._stepping:
            self._waiting.append(message)
            return
        self._stepping = True
        try:
            self._tell(message)
            while self._waiting:
                self._tell(self._waiting.popleft())
        finally:
            self._stepping = False

    def _tell(self, message: M) -> None:
        if self.over:
            return
        try:
            effects = self._core.step(message, self._now())
        except Exception as error:  # boundary: a core that raised is not used again
            self.end()
            self._failed(message, error)
            return
        if effects:
            self._carry_out(effects)
        if self._tick is not None:
            self._arm()

    def end(self) -> None:
        """Tell the core nothing any more."""
        self.over = True
        if self._alarm is not None:
            self._alarm.cancel()

    # ---- the timer -----------------------------------------------------------------------------------------------------------

    async def keep_time(self) -> NoReturn:
        """Tick whenever the core wants it, for ever."""
        self._arm()
        while True:
            await self._rung.wait()
            self._rung = anyio.Event()
            self._rings_at = NEVER
            due = self._wake_at()
            if due is not None and due <= self._now() and self._tick is not None:
                self.step(self._tick)
            else:  # timers of uvloop fire up to 1 ms early, and the core may have changed its mind
                self._arm()

    def _arm(self) -> None:
        """See that it rings in time for what the core waits for."""
        due = self._wake_at()
        if due is None or due >= self._rings_at or self.over:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._rings_at = due
        wait_s = max(self._floor_s, due - self._now())
        self._alarm = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def _ring(self) -> None:
        self._rung.set()
