"""One service as an OS process: started, signalled, watched. Starts again only when somebody says so."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from podyard.cli.lab.child import parse_ready
from podyard.cli.services import SUPERVISED
from podyard.runtime import ports

READY_WITHIN_S: Final = 45.0
"""A start takes 1 s of CPU; many start at once, and others may work on the machine."""

ENDED_WITHIN_S: Final = 15.0
"""Of SIGTERM: services bound their end to 10 s."""

POLL_S: Final = 0.05
"""Another process: there is nothing to wait on."""


class Process:
    """`podyard run <service>`. It ends with this process: its standard input closes then."""

    def __init__(
        self, service: str, instance: str, log: Path, environment: Mapping[str, str], tell: Callable[[str], None]
    ) -> None:
        self.service = service
        self.instance = instance
        self.log = log
        self.python = sys.executable
        """What runs it from its next start on: the release that is installed there."""
        self.starts = 0
        self.port = 0
        self._environment = environment
        self._tell = tell
        self.paused = False
        self.ended_by_itself: list[str] = []
        """Sentences: ends that nobody had asked for."""
        self._to_end = False
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """0: it never started."""
        return self._process.pid if self._process is not None else 0

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it (again); it may not be ready yet."""
        assert not self.alive, f"{self.instance} runs already"
        self.look()
        self._to_end = False
        self.port = ports.free_port()
        self.starts += 1
        self.paused = False
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(self.python, "-m", "podyard.cli", "run", self.service),
                env={
                    **os.environ,
                    **self._environment,
                    SUPERVISED: "1",
                    "PODYARD_INSTANCE": self.instance,
                    "PODYARD_HTTP_HOST": "127.0.0.1",
                    "PODYARD_HTTP_PORT": str(self.port),
                    "PODYARD_LOG_FORMAT": "json",
                },
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._tell(f"{self.instance} starts, pid {self.pid}")

    def look(self) -> None:
        """Note it if it has ended although nobody asked for that."""
        if self._process is not None and self._process.returncode is not None and not self._to_end:
            self._to_end = True
            said = (
                f"{self.instance} pid {self.pid} ended by itself with {self._process.returncode}; its log: {self.log}"
            )
            self.ended_by_itself.append(said)
            self._tell(said)

    def kill(self) -> None:
        """SIGKILL."""
        self._to_end = True
        self._signal(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP."""
        self.paused = True
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.paused = False
        self._signal(signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM."""
        self._to_end = True
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            self._tell(f"{self.instance} pid {self.pid} gets {number.name}")
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def ended(self, within_s: float = ENDED_WITHIN_S) -> int:
        """Wait for its end; its exit code, negative for a signal.

        :raises AssertionError: if it has not ended in time
        """
        assert self._process is not None
        try:
            async with asyncio.timeout(within_s):
                code = await self._process.wait()
        except TimeoutError:
            raise AssertionError(f"{self.instance} has not ended within {within_s} s; log: {self.log}") from None
        self._tell(f"{self.instance} has ended with {code}")
        return code

    async def ready(self, within_s: float = READY_WITHIN_S) -> None:
        """Wait until it says that it is ready.

        :raises AssertionError: if it is not in time, with what it said
        """
        said = "nothing"
        try:
            async with asyncio.timeout(within_s):
                while True:
                    with suppress(OSError):
                        state, reason = parse_ready(await http(self.port, "/readyz"))
                        if state == "ready":
                            return
                        said = reason
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise AssertionError(f"{self.instance} is not ready within {within_s} s: {said}; {self.log}") from None

    def complaints(self) -> Iterator[str]:
        """What it logged as an error, and what is no log line at all."""
        if not self.log.exists():
            return
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                yield f"{self.instance}: {line}"
                continue
            if record.get("level") in ("error", "critical"):
                yield f"{self.instance}: {line[:600]}"


async def http(port: int, path: str) -> bytes:
    """What a service answers, its headers included.

    :raises OSError: if nobody answers
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        async with asyncio.timeout(2):
            return await reader.read()
    finally:
        writer.close()
