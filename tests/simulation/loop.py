"""An event loop in virtual time: one for each simulated process, so that one can be paused or killed while the others go on."""

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

from tests.simulation.clock import Clock

MOST_CALLBACKS = 2_000_000
"""In one go, without time passing: a loop that never rests is a bug."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as anyio needs without sockets and threads."""

    def __init__(self, clock: Clock, failed: Callable[[str], None]) -> None:
        """:param failed: told of exceptions that nobody catches"""
        self._clock = clock
        self._failed = failed
        self._ready: deque[asyncio.Handle] = deque()
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
        self._ready.append(events.Handle(call, (), self))
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
        if self._running:
            return
        self._running = True
        before = events._get_running_loop()
        events._set_running_loop(self)
        count = 0
        try:
            while self._ready and not self.dead:
                handle = self._ready.popleft()
                if not handle._cancelled:
                    handle._run()
                count += 1
                if count > MOST_CALLBACKS:
                    raise RuntimeError("a simulated process never rests")
        finally:
            events._set_running_loop(before)
            self._running = False

    # ---- what asyncio and anyio ask for

    def time(self) -> float:
        return self._clock.now

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = events.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._clock.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = events.TimerHandle(when, callback, args, self, context)

        def run() -> None:
            if not handle._cancelled:
                handle._run()

        def due() -> None:
            if not handle._cancelled:
                self.receive(run)

        self._clock.at(when, due)
        return handle

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

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        del handle
