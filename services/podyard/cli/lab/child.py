"""One supervised service process: started, asked whether it is ready, started again when it ends.

It gets its settings by environment, its log goes to a file, and it ends when its standard input closes, so
that none survives `up`, however that ends. It has a session of its own: Ctrl-C reaches `up`, which ends the
services in order.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
from anyio.abc import Process

from podyard.cli.lab import plan
from podyard.cli.lab.plan import Planned
from podyard.cli.services import MAY_END, SUPERVISED
from podyard.runtime import ports, probes

State: TypeAlias = Literal["starting", "ready", "not ready", "ended", "done", "stopping", "stopped"]
PROBE_EVERY_S: Final = 0.5
PROBE_WAITING_S: Final = 0.05
"""How often to ask while it is starting."""
PROBE_LIMIT_S: Final = 2.0


class Child:
    """One service. Owned by the task that runs `supervise`."""

    def __init__(
        self,
        planned: Planned,
        log: Path,
        environment: Mapping[str, str],
        changed: Callable[[], None],
        secure_port: int = 0,
    ) -> None:
        """
        :param changed: called when something that people see has changed
        :param secure_port: of HTTPS; 0: it serves none
        """
        self.service = planned.service
        self.instance = planned.instance
        self.log = log
        self.state: State = "starting"
        self.reason = ""
        self.pid = 0
        self.port = 0
        self.starts = 0
        self._environment = environment
        self._secure_port = secure_port
        self._changed = changed
        self._process: Process | None = None
        self._failures = 0
        self._stopping = False

    @property
    def http(self) -> str:
        """Where it answers /readyz."""
        return f"127.0.0.1:{self.port}"

    async def supervise(self) -> None:
        """Run it, again and again, until cancelled or stopped, or it has done all that it was to do."""
        while not self._stopping:
            started, code = time.monotonic(), 0
            async with anyio.create_task_group() as tasks:
                code = await self._run(tasks)
                tasks.cancel_scope.cancel()
            self._failures = plan.failures_after(self._failures, time.monotonic() - started)
            delay_s = plan.restart_delay_s(self._failures)
            if self._stopping:
                break
            if code == 0 and self.service in MAY_END:
                self._show("done", f"exit code 0; not started again; its log: {self.log}")
                return
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            self._show("ended", f"{how}; starting again in {delay_s:g} s; its log: {self.log}")
            await anyio.sleep(delay_s)
        self._show("stopped", "")

    async def _run(self, tasks: anyio.abc.TaskGroup) -> int:
        """Start it and wait for its end; returns its exit code, negative for a signal."""
        # should another take it before the service does, the service ends and gets the next one
        self.port = ports.free_port()
        self.starts += 1
        with self.log.open("ab") as log:
            self._process = process = await anyio.open_process(
                [sys.executable, "-m", "podyard.cli", "run", self.service],
                env={
                    **self._environment,
                    SUPERVISED: "1",
                    "PODYARD_INSTANCE": self.instance,
                    "PODYARD_HTTP_HOST": "127.0.0.1",
                    "PODYARD_HTTP_PORT": str(self.port),
                    # never that of an options file, which would be one for all of them
                    "PODYARD_SECURE_PORT": str(self._secure_port),
                },
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = process.pid
        self._show("starting", "")
        tasks.start_soon(self._probe)
        try:
            return await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(process)

    async def _end(self, process: Process) -> None:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await process.aclose()
        self._process, self.pid = None, 0

    async def _probe(self) -> None:
        while True:
            state, reason = await _ready(self.port)
            if self._stopping:
                return
            if state == "ready" or self.state != "starting" or reason:
                self._show(state, reason)
            await anyio.sleep(PROBE_EVERY_S if self.state == "ready" else PROBE_WAITING_S)

    def _show(self, state: State, reason: str) -> None:
        if (state, reason) != (self.state, self.reason):
            self.state, self.reason = state, reason
            self._changed()

    def terminate(self) -> None:
        """Ask it to end in order; it is not started again."""
        self._stopping = True
        if self._process is not None:
            self._signal(signal.SIGTERM)
            self._show("stopping", "")

    def kill(self, *, for_good: bool = False) -> None:
        """End it as a crash would; it is started again unless it was to end anyway.

        :param for_good: as if its machine had gone: it is not started again
        """
        self._stopping = self._stopping or for_good
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.pid:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                self.pid = 0


async def _ready(port: int) -> tuple[State, str]:
    """Ask /readyz; no answer is `starting`."""
    try:
        with anyio.fail_after(PROBE_LIMIT_S):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(b"GET /readyz HTTP/1.0\r\n\r\n")
                answer = b""
                try:
                    while True:
                        answer += await stream.receive()
                except anyio.EndOfStream:
                    pass
    except (OSError, TimeoutError, anyio.BrokenResourceError):
        return "starting", ""
    return parse_ready(answer)


def parse_ready(answer: bytes) -> tuple[State, str]:
    """State and reason from the answer of /readyz."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " in head.split(b"\r\n", 1)[0]:
        return "ready", ""
    lines = [
        line[3:].partition(probes.HELP)[0]
        for line in body.decode(errors="replace").splitlines()
        if line.startswith("[-]")
    ]
    return "not ready", "; ".join(line.replace(" failed: ", ": ", 1) for line in lines)
