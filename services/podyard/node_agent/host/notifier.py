"""Says when memory of the node runs short between two looks.

Version 1 counts usage against thresholds, and tells an eventfd when one is crossed, upwards or downwards.
Version 2 has no such thing: there the kernel tells when tasks waited for memory too long (PSI), which is
later.

Sources: kubernetes v1.36.2, pkg/kubelet/eviction/memory_threshold_notifier_others.go and
threshold_notifier_linux.go; the kernel's Documentation/accounting/psi.rst.
"""

import os
import select
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import anyio

from podyard.node_agent.host import machine
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.groups import Memory
from podyard.node_agent.host.hierarchies import MEMORY, Hierarchy

REFRESH_S: Final = 10.0
"""How often thresholds follow the page cache. Source: notifierRefreshInterval."""
SPACING_S: Final = 1.0
"""Usage that swings around a threshold is told at most so often."""
STALL_US: Final = 100_000
WINDOW_US: Final = 2_000_000
"""Without CAP_SYS_RESOURCE a window is a multiple of 2 s."""


class Notifier:
    """Watches one node. Owned by the task that waits; `watch` is called from the same event loop."""

    def __init__(self, hierarchy: Hierarchy, node: str = "", *, proc: Path = machine.PROC) -> None:
        """
        :param node: the cgroup whose limit is the node's capacity; "": the machine
        :raises HostError: if the kernel tells nobody
        """
        self._events = select.epoll()
        """Readable when something is told: what it holds may be replaced while somebody waits."""
        self._told: int | None = None
        self._marks: tuple[int, ...] = ()
        self._left: tuple[int, ...] = ()
        self._watched_at = -REFRESH_S
        self._next_at = 0.0
        self._by_usage = hierarchy.version == 1
        self._directory = hierarchy.directory(MEMORY, node)
        if self._by_usage:
            self._file = self._directory / "cgroup.event_control"
            self._check_usage()
        else:
            self._file = self._directory / "memory.pressure" if node else proc / "pressure/memory"
            self._watch_pressure()

    def watch(self, memory: Memory, left: Iterable[int]) -> None:
        """What was read of the node, and how much must be left: told when less is. With PSI nothing is needed
        of it.

        :param left: bytes, of each threshold for memory
        :raises HostError: if it cannot be told any more
        """
        if not self._by_usage:
            return
        wanted = tuple(sorted(set(left)))
        marks = usage_marks(memory, wanted)
        now = time.monotonic()
        if wanted == self._left and (marks == self._marks or now - self._watched_at < REFRESH_S):
            return
        told = self._register(marks)
        self._replace(told, select.EPOLLIN)
        self._left, self._marks, self._watched_at = wanted, marks, now

    async def wait(self) -> str:
        """Wait until somebody should look; returns why.

        :raises HostError: if nobody would say any more
        """
        await anyio.sleep(max(self._next_at - time.monotonic(), 0))
        while True:
            await anyio.wait_readable(self._events.fileno())
            if not self._file.exists():
                raise HostError(f"{self._file} has gone: nobody tells when memory runs short")
            if self._taken():
                self._next_at = time.monotonic() + SPACING_S
                return (
                    f"memory of the node crossed a threshold ({self._directory})"
                    if self._by_usage
                    else (
                        f"tasks waited for memory for more than {STALL_US / 1e6:g} s in {WINDOW_US / 1e6:g} s ({self._file})"
                    )
                )

    def close(self) -> None:
        """Nobody waits any more."""
        self._events.close()
        if self._told is not None:
            os.close(self._told)
            self._told = None

    def _taken(self) -> bool:
        """Whether something was told. What was told is told no more."""
        if not self._by_usage:
            return True  # the kernel forgets it as soon as it was seen
        if self._told is None:
            return False
        try:
            os.eventfd_read(self._told)
        except BlockingIOError:
            return False
        return True

    def _replace(self, told: int, kind: int) -> None:
        if self._told is not None:
            self._events.unregister(self._told)
            os.close(self._told)
        self._told = told
        self._events.register(told, kind)

    # ---- version 1 -----------------------------------------------------------------------------------------

    def _check_usage(self) -> None:
        if not os.access(self._file, os.W_OK):
            raise HostError(f"{self._file} is not there, or may not be written: run as root")

    def _register(self, marks: Iterable[int]) -> int:
        told = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            usage = os.open(self._directory / "memory.usage_in_bytes", os.O_RDONLY | os.O_CLOEXEC)
            try:
                control = os.open(self._file, os.O_WRONLY | os.O_CLOEXEC)
                try:
                    for mark in marks:
                        os.write(control, f"{told} {usage} {mark}".encode())
                finally:
                    os.close(control)
            finally:
                os.close(usage)
        except OSError as error:
            os.close(told)
            raise HostError(f"{self._file} takes no threshold: {error.strerror}") from error
        return told

    # ---- version 2 -----------------------------------------------------------------------------------------

    def _watch_pressure(self) -> None:
        try:
            told = os.open(self._file, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(told, f"some {STALL_US} {WINDOW_US}\0".encode())
            except OSError:
                os.close(told)
                raise
        except OSError as error:
            raise HostError(
                f"{self._file} cannot be watched: {error.strerror}; the kernel needs CONFIG_PSI, and the boot "
                "parameter psi=1 if it is off by default"
            ) from error
        self._replace(told, select.EPOLLPRI)


def usage_marks(memory: Memory, left: Iterable[int]) -> tuple[int, ...]:
    """The usage in bytes at which the working set leaves so little: capacity less what must be left, and the
    cached pages that do not count."""
    return tuple(max((memory.capacity or 0) - one + memory.inactive_file, 0) for one in left)
