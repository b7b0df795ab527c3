"""An event loop in virtual time: one for each simulated process, so that one can be paused or killed while
the others go on.

Most of a run's time passes through here, so it does less than asyncio's loops: no debug mode, a plain object
for each call.
"""

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from tests.simulation.clock import Clock

MOST_CALLBACKS = 2_000_000
"""In one go, without time passing: a loop that never rests is a bug."""


class Call:
    """What asyncio calls a handle: something to be called soon, or at a time."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context", "_loop", "_when")

    def __init__(
        self,
        loop: "VirtualLoop",
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        context: Context | None,
        when: float = 0.0,
    ) -> None:
        self._loop = loop
        self._callback = callback
        self._args = args
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._when = when

    def cancel(self) -> None:
        """Not to be called any more."""
        self._cancelled = True
        self._callback = _nothing
        self._args = ()

    def cancelled(self) -> bool:
        return self._cancelled

    def when(self) -> float:
        return self._when

    def due(self) -> None:
        """It is time."""
        if not self._cancelled:
            self._loop.receive(self.run)

    def run(self) -> None:
        """Call, unless it was cancelled meanwhile; what it raises is the loop's."""
        if not self._cancelled:
            self._context.run(self._callback, *self._args)


def _nothing() -> None:
    pass


class VirtualLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as anyio needs without sockets and threads."""

    def __init__(self, clock: Clock, failed: Callable[[str], None]) -> None:
        """:param failed: told of exceptions that nobody catches"""
        self._clock = clock
        self._failed = failed
        self._ready: deque[Callable[[], None]] = deque()
        self._running = False
        self.dead = False
        self.paused = False
        self._held: list[Callable[[], None]] = []

    # ---- what the simulator does with it

    def receive(self, call: Callable[[], None]) -> None:
        """Something reaches the process from outside: a message, or its own timer."""
        if self.dead:
            return
        if self.paused:
            self._held.append(call)
            return
        self._ready.append(call)
        if not self._running:
            self._run()

    def pause(self) -> None:
        """SIGSTOP."""
        self.paused = True

    def resume(self) -> None:
        """SIGCONT: what came meanwhile comes now, in its order."""
        self.paused = False
        held, self._held = self._held, []
        for call in held:
            self.receive(call)

    def _run(self) -> None:
        self._running = True
        events._set_running_loop(self)
        ready, count = self._ready, 0
        try:
            while ready and not self.dead:
                call = ready.popleft()
                try:
                    call()
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # boundary: as asyncio's handles
                    self.call_exception_handler({"message": f"exception in {call!r}", "exception": error})
                count += 1
                if count > MOST_CALLBACKS:
                    raise RuntimeError("a simulated process never rests")
        finally:
            events._set_running_loop(None)
            self._running = False

    # ---- what asyncio and anyio ask for

    def time(self) -> float:
        return self._clock.now

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> Call:  # type: ignore[override]
        call = Call(self, callback, args, context)
        self._ready.append(call.run)
        return call

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Call:
        return self.call_at(self._clock.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Call:
        call = Call(self, callback, args, context, when)
        self._clock.at(when, call.due)
        return call

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_task_factory(self) -> None:
        return None

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and not self.dead:
            self._failed(f"{context.get('message')}: {error!r}")
