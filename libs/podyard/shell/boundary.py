"""What a process remembers of cores that raised, from one term to the next.

The message that a core raised on becomes a dead letter and is set aside. A stored message that is set aside
reaches the next term's view without its payload: it cannot be read, so its object counts as absent, as every
unreadable one does, until it is written again. A request is refused for a while. So others are served
meanwhile. Who raises again and again says so on `/readyz`, and goes on trying.
"""

import asyncio
import time
import traceback
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import anyio
import prometheus_client

from podyard.bus.delivery import Delivery
from podyard.memory.latest import Latest
from podyard.runtime.service import Service
from podyard.shell.causes import Cause
from podyard.shell.set_aside import SetAside

CHECK: Final = "core"
MANY: Final = 3
"""So many ends within `WITHIN_S` make a process not ready."""
WITHIN_S: Final = 60.0
PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Before the next term, by the number of ends within `WITHIN_S`; the last one is short enough for `MANY` of
them."""
REFUSED_S: Final = 300.0
"""How long what was asked for is refused: a pod is tried again after it, as all parked pods are after so
long."""
MOST: Final = 1024
"""Ids that are refused at once; above it the oldest is tried again."""


class Boundary:
    """Of one process. Owned by its event loop."""

    def __init__(self, service: Service[Any]) -> None:
        self._service = service
        self._ends: deque[float] = deque()
        """When, by the monotonic clock: those within `WITHIN_S`."""
        self.aside = SetAside()
        """Stored messages, for the informers of all terms."""
        self._refused = Latest[str, tuple[float, str]](MOST)
        """Until when, by the monotonic clock, and why, by id."""
        self._raised = prometheus_client.Counter(
            "podyard_core_raised",
            "Terms that ended because the core raised: each one is a bug; the message is in dead letters",
            registry=service.metrics,
        )
        aside = prometheus_client.Gauge(
            "podyard_set_aside",
            "Stored messages and requests that are set aside because a core raised on them",
            registry=service.metrics,
        )
        aside.set_function(lambda: len(self.aside) + len(self._refused))

    # ---- a core raised -------------------------------------------------------------------------------------

    def raised(self, cause: Cause, error: Exception) -> None:
        """Set the cause aside, and say so: to the log, in dead letters, and on `/readyz` if it is one of
        many."""
        last_line = traceback.format_exception_only(error)[-1].strip()
        at = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" ({at[0].filename.rpartition('podyard/')[2]}:{at[0].lineno})" if at else ""
        why = f"the core of {self._service.name} raised {last_line}{where}"
        self._raised.inc()
        self._service.log.error(
            "a core raised: its term ends, the message is set aside, all is listed anew",
            cause=cause.name,
            reason=last_line,
            exc_info=error,
        )
        self._service.bus.dead_letter_soon(self._service.name, cause.message, why)
        self._set_aside(cause, why)
        self._count(f"{cause.name}: {why}")

    def _set_aside(self, cause: Cause, why: str) -> None:
        message = cause.message
        if isinstance(message, Delivery):
            self.aside.put(message)
        for one in cause.ids:
            self._refused.keep(one, (time.monotonic() + REFUSED_S, f"set aside: {why}"))

    def _count(self, text: str) -> None:
        self._ends.append(time.monotonic())
        self._forget_old()
        if len(self._ends) >= MANY:
            self._service.health.set_ready(
                CHECK, False, f"{len(self._ends)} terms ended within a minute, last on {text}"
            )
            asyncio.get_running_loop().call_later(WITHIN_S, self._look_again)

    def _look_again(self) -> None:
        self._forget_old()
        if len(self._ends) < MANY:
            self._service.health.remove(CHECK)

    def _forget_old(self) -> None:
        while self._ends and self._ends[0] <= time.monotonic() - WITHIN_S:
            self._ends.popleft()

    async def pause(self) -> None:
        """Before the next term: not at all if no core has raised lately."""
        self._forget_old()
        if self._ends:
            await anyio.sleep(PAUSES_S[min(len(self._ends), len(PAUSES_S)) - 1])

    # ---- what is set aside ---------------------------------------------------------------------------------

    def refusal(self, ids: Iterable[str]) -> str:
        """Why what has one of these ids is refused; empty: it is not."""
        if not self._refused:
            return ""
        for one in ids:
            until, why = self._refused.get(one, (0.0, ""))
            if time.monotonic() < until:
                return why
            self._refused.pop(one, None)
        return ""
