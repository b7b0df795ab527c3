"""What a service writes to its log when somebody sends SIGUSR2, as kube-scheduler does.

Source: kube-scheduler v1.36.2, pkg/scheduler/backend/cache/debugger/{debugger,signal}.go.
"""

import signal
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

import anyio
import structlog
from anyio.abc import TaskStatus

SIGNAL: Final = signal.SIGUSR2


class Dumps:
    """Of one process. The service's event loop adds and removes."""

    def __init__(self) -> None:
        self._dumps: dict[str, Callable[[], Awaitable[None]]] = {}
        self._busy = False

    def add(self, name: str, write: Callable[[], Awaitable[None]]) -> None:
        """Write to the log what `write` writes; in the place of what had that name.

        :param write: bounds what it writes
        """
        self._dumps[name] = write

    def remove(self, name: str) -> None:
        """Nothing of that name any more."""
        self._dumps.pop(name, None)

    async def listen(
        self, log: structlog.stdlib.BoundLogger, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> NoReturn:
        """Wait for signals for ever. One that comes while a dump is written adds none.

        :param task_status: started once signals are listened to
        """
        async with anyio.create_task_group() as tasks:
            with anyio.open_signal_receiver(SIGNAL) as received:
                task_status.started()
                async for _ in received:
                    if not self._busy:
                        self._busy = True
                        tasks.start_soon(self._write_all, log)
        raise AssertionError("signals do not end")

    async def _write_all(self, log: structlog.stdlib.BoundLogger) -> None:
        try:
            if not self._dumps:
                log.info("there is nothing to dump", signal=SIGNAL.name)
            for name, write in list(self._dumps.items()):
                try:
                    await write()
                except Exception as error:  # whatever a dump raises: the service goes on
                    log.error("a dump failed", dump=name, exc_info=error)
        finally:
            self._busy = False
