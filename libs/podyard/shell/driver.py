"""Drives a core: the only caller of its `step`, the one timer that it has, and who carries out what it asks.

A core that raises is never told anything again: what it holds may be half changed. Its term ends, and the
next one begins with a new core that lists everything anew (`boundary`).

A core asks by an effect, and is told the answer by a message, which names what it answers where several may
be open. So it may hold dialogues: generators that yield what is to be asked next, and go on with the answer.
What is under way when the term ends is cancelled, and the generators that wait for it are closed.

Steps are computed on the event loop. A core that computes for long has them computed apart, in a thread: the
process answers meanwhile, and what comes for the core waits.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause

M_contra = TypeVar("M_contra", contravariant=True)
E_co = TypeVar("E_co", covariant=True)
M = TypeVar("M")
E = TypeVar("E")
A = TypeVar("A")

NEVER: Final = float("inf")


class Core(Protocol[M_contra, E_co]):
    """A pure state machine."""

    def step(self, message: M_contra, now: float) -> Sequence[E_co]:
        """Take one message in; returns what is to be done, in this order."""
        ...


async def _asks_nothing(ask: Any) -> Any:
    raise AssertionError(f"this core asks nothing: {ask!r}")


class Driver(Generic[M, E, A]):
    """One core, for one term, which lasts while the driver is entered: `async with driver as tasks`.

    Owned by one event loop; `step` is synchronous, so that view and core never disagree at an await. Where
    steps are computed apart it is not: such a core is told values that nobody changes any more.
    """

    def __init__(
        self,
        core: Core[M, E],
        *,
        now: Callable[[], float],
        carry_out: Callable[[Sequence[E]], None],
        boundary: Boundary,
        cause: Callable[[M], Cause | None],
        answer: Callable[[A], Awaitable[M]] = _asks_nothing,
        close: Callable[[], None] = lambda: None,
        tick: M | None = None,
        wake_at: Callable[[], float | None] = lambda: None,
        floor_s: float = 0.0,
        apart: Callable[[M], bool] | None = None,
    ) -> None:
        """
        :param now: the steady clock, seconds since 1970, UTC
        :param carry_out: does what the core wants done, in its order; not called with nothing
        :param boundary: told of the message that the core raised on
        :param cause: what that message was; None if nobody can say
        :param answer: carries out what was handed to `ask`; its answer is told the core
        :param close: closes the core's dialogues, when the term ends
        :param tick: what the core is told when it is time
        :param wake_at: when it is, on the clock of `now`; None: only a message can change anything
        :param floor_s: the shortest wait: what is due within it is done together
        :param apart: whether the step of a message is computed in a thread; what comes meanwhile is told
            afterwards, and the end of the term waits for the one that is under way. None: no step is
        """
        self.over = False
        """The core is told nothing any more."""
        self.raised = False
        """The term ended because the core raised."""
        self._core: Core[Any, Any] = core
        self._now = now
        self._carry_out = carry_out
        self._boundary = boundary
        self._cause = cause
        self._answer = answer
        self._close = close
        self._tick = tick
        self._wake_at = wake_at
        self._floor_s = floor_s
        self._apart = apart
        self._tasks = anyio.create_task_group()
        self._stepping = False
        self._waiting: deque[M] = deque()
        """What came while the core was in a step, or its effects were carried out."""
        self._computing = False
        """A step is under way in a thread."""
        self._rung = anyio.Event()
        self._rings_at = NEVER
        self._alarm: asyncio.TimerHandle | None = None

    # ---- the term ------------------------------------------------------------------------------------------

    async def __aenter__(self) -> TaskGroup:
        """The term begins; what runs in the group that is returned ends with it."""
        tasks = await self._tasks.__aenter__()
        tasks.start_soon(self._keep_time)
        return tasks

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Waits until the term has ended: until it is cancelled, or `end`."""
        try:
            return await self._tasks.__aexit__(kind, error, trace)
        finally:
            self.end()

    def end(self) -> None:
        """Tell the core nothing any more, and end the term."""
        if self.over:
            return
        self.over = True
        if self._alarm is not None:
            self._alarm.cancel()
        self._tasks.cancel_scope.cancel()
        if not self._computing:
            self._close()

    # ---- the core ------------------------------------------------------------------------------------------

    def step(self, message: M) -> None:
        """Tell the core, and do what it wants done. What comes meanwhile is told afterwards, in its order."""
        self._waiting.append(message)
        if not self._stepping:
            self._tell_all()

    def ask(self, ask: A) -> None:
        """Carry out what the core asks, beside everything else, and tell it the answer."""
        self._tasks.start_soon(self._ask, ask)

    async def _ask(self, ask: A) -> None:
        self.step(await self._answer(ask))

    def _tell_all(self) -> None:
        self._stepping = True
        try:
            while self._waiting and not self.over:
                message = self._waiting.popleft()
                if self._apart is not None and self._apart(message):
                    self._tasks.start_soon(self._tell_apart, message)
                    return
                self._tell(message)
        except BaseException:
            self._stepping = False
            raise
        self._stepping = False

    def _tell(self, message: M) -> None:
        try:
            effects = self._core.step(message, self._now())
        except Exception as error:  # boundary: a core that raised is not used again
            self._raised(message, error)
            return
        self._do(effects)

    async def _tell_apart(self, message: M) -> None:
        try:
            effects = await self._computed(message)
        except Exception as error:  # boundary: as above
            self._raised(message, error)
            return
        if not self.over:
            self._do(effects)
            self._tell_all()

    async def _computed(self, message: M) -> Sequence[E]:
        """A term that ends meanwhile waits for it, and what it wants done is: what was carried out before the
        end is noted."""
        self._computing = True
        effects: Sequence[E] = ()
        try:
            with anyio.CancelScope(shield=True):
                effects = await anyio.to_thread.run_sync(self._core.step, message, self._now())
        finally:
            self._computing = False
            if self.over:
                self._close()
        return effects

    def _raised(self, message: M, error: Exception) -> None:
        self.raised = True
        cause = self._cause(message) or causes.unknown(type(message).__name__)
        self._boundary.raised(cause, error)
        self.end()

    def _do(self, effects: Sequence[E]) -> None:
        if effects:
            self._carry_out(effects)
        if self._tick is not None:
            self._arm()

    # ---- the timer -----------------------------------------------------------------------------------------

    async def _keep_time(self) -> NoReturn:
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
