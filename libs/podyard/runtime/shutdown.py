"""An ordered end in bounded time: the first SIGTERM or SIGINT cancels, the second or the clock ends the
process at once."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final

import anyio
from anyio.abc import TaskStatus

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
FORCED_EXIT_CODE: Final = 1


class Deadline:
    """Ends the process when an ordered end takes too long. Works from a thread: it does not need the event
    loop to run."""

    def __init__(self, seconds: float, expired: Callable[[], None]) -> None:
        """:param expired: called first, to log; must not block"""
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._expired = expired

    def start(self) -> None:
        """Begin to count; once."""
        self._timer.start()

    def cancel(self) -> None:
        """The end was in time."""
        self._timer.cancel()

    def _end(self) -> None:
        self._expired()
        os._exit(FORCED_EXIT_CODE)


async def cancel_on_signal(
    scope: anyio.CancelScope,
    stopping: Callable[[str], None],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Wait for a signal, then cancel `scope`; a second signal ends the process. Started once signals are
    listened to.

    :param stopping: called with the signal's name before the cancellation
    """
    with anyio.open_signal_receiver(*SIGNALS) as received:
        task_status.started()
        seen = 0
        async for number in received:
            seen += 1
            if seen > 1:
                os._exit(FORCED_EXIT_CODE)
            stopping(signal.Signals(number).name)
            scope.cancel()
