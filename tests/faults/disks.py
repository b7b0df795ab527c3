"""What a disk can do to a nats-server: lose the end of a file, be full, refuse to say that something is
written.

Tests that need root, mount or strace are skipped where these are missing, with the reason.
"""

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import pytest

from podyard.bus import EmbeddedServer

ATTACHED_WITHIN_S: Final = 20.0
POLL_S: Final = 0.05


def newest_block(server: EmbeddedServer, stream: str) -> Path:
    """The file that the stream's last messages are in."""
    blocks = server.store_dir.glob(f"jetstream/*/streams/{stream}/msgs/*.blk")
    return max(blocks, key=lambda path: int(path.stem))


def cut_newest_block(server: EmbeddedServer, stream: str, *, share: float) -> int:
    """Lose the end of the stream's newest block, as a disk does that had not written it; the server must be
    down.

    :param share: of the block, from 0 to 1
    :return: bytes cut
    """
    assert server.pid == 0, "the server runs"
    block = newest_block(server, stream)
    size = block.stat().st_size
    lost = max(1, int(size * share))
    os.truncate(block, size - lost)
    return lost


def forget_index(server: EmbeddedServer, stream: str) -> None:
    """Remove what a server noted of a stream beside its blocks, as operators are told to after a disk lost
    something (docs/guarantees.md): it then goes by the blocks alone. The server must be down.
    """
    assert server.pid == 0, "the server runs"
    for path in server.store_dir.glob(f"jetstream/*/streams/{stream}/msgs/index.db"):
        path.unlink()


@contextmanager
def small_disk(directory: Path, *, mebibytes: int) -> Generator[Path]:
    """A file system of its own with so much room, for as long as the block runs."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a tmpfs needs root and the program mount")
    directory.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "podyard-faults", str(directory)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted: {mounted.stderr.decode().strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(directory: Path) -> Path:
    """Take all room that is left on the file system of `directory`; remove the file that is returned to give
    it back."""
    taken = directory / "taken"
    with taken.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(65_536)):
                pass
        except OSError:
            pass
    return taken


@asynccontextmanager
async def failing_fsync(server: EmbeddedServer) -> AsyncGenerator[None]:
    """Every fsync of the server fails with EIO while the block runs."""
    strace = shutil.which("strace")
    if strace is None or os.geteuid() != 0:
        pytest.skip("letting fsync fail needs root and the program strace (Debian package strace)")
    said = server.store_dir / "strace.log"
    command = [strace, "-f", "-p", str(server.pid), "-o", str(said), "-e", "trace=fsync,fdatasync"]
    inject = ["-e", "inject=fsync:error=EIO", "-e", "inject=fdatasync:error=EIO"]
    process = await anyio.open_process([*command, *inject], stdin=None, stdout=subprocess.DEVNULL)
    try:
        await _attached(process, server.pid)
        yield
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
            await process.wait()
            await process.aclose()


async def _attached(process: anyio.abc.Process, pid: int) -> None:
    """Wait until strace has every thread of the server."""
    with anyio.move_on_after(ATTACHED_WITHIN_S):
        while process.returncode is None:
            if _is_traced(pid):
                return
            await anyio.sleep(POLL_S)
    said = await process.stderr.receive() if process.stderr is not None else b""
    pytest.skip(f"strace cannot attach here: {said.decode(errors='replace').strip()}")


def _is_traced(pid: int) -> bool:
    """Whether every thread of a process is; those that are just ending do not count."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            status = (task / "status").read_text(encoding="ascii")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if "TracerPid:\t0\n" in status:
            return False
    return True
