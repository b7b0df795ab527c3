"""What a measurement was made on, and of which commit."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Final

import msgspec

from podyard.bus.embedded import server_binary

CPU_INFO: Final = Path("/proc/cpuinfo")
WITHIN_S: Final = 10.0
"""Seconds for a program that only tells its version or state."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of one machine can be compared: same cores, same model."""

    cores: int
    """That this process may use."""
    cpu: str
    """Model, as the kernel names it."""
    python: str
    """Version, as `3.11.7`."""
    nats_server: str
    """Version, as `2.15.1`; "": not known."""

    @property
    def hardware(self) -> str:
        """What must be equal for seconds to be compared; versions may differ, their change is one of those
        measured."""
        return f"{self.cores} cores, {self.cpu}" if self.cores > 1 else f"1 core, {self.cpu}"


class Commit(msgspec.Struct, frozen=True):
    """State of a checkout. `hash` is short; "": not known. `dirty`: tracked files differ from it."""

    hash: str = ""
    dirty: bool = False


def this_machine() -> Machine:
    """The one that this process runs on."""
    version = _answer([str(server_binary()), "--version"])
    return Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        cpu=_model(),
        python=platform.python_version(),
        nats_server=version.rpartition("v")[2],
    )


def commit_of(directory: Path, besides: Path) -> Commit:
    """The commit that is checked out in `directory`.

    :param besides: a file whose changes do not count: the history that is written after each measurement
    """
    git = ["git", "-C", str(directory)]
    found = _answer([*git, "rev-parse", "--short", "HEAD"])
    if not found:
        return Commit()
    top = Path(_answer([*git, "rev-parse", "--show-toplevel"]))
    changed = _answer([*git, "diff", "--name-only", "HEAD"]).splitlines()
    return Commit(found, any((top / name).resolve() != besides for name in changed))


def _model() -> str:
    """The first processor's model."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def _answer(command: list[str]) -> str:
    """What a program prints; "" if it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=WITHIN_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
