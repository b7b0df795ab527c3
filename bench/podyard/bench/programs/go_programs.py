"""Programs of others, each built once with the Go tool chain out of the Go module proxy, and kept."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from podyard.bench.programs import kept


class NoProgramError(Exception):
    """There is no such program and none can be made; the text says why and what to do."""


class Program(NamedTuple):
    """What is wanted, and what is said where it cannot be had."""

    name: str
    """Of the file."""
    title: str
    version: str
    made_from: tuple[str, ...]
    """What its bytes depend on: another content is another program."""
    variable: str
    """Names a program of one's own."""
    needs: str
    """The oldest Go that builds it."""
    takes: str
    """How long that takes, for people."""
    limit_s: float
    """Seconds that one call of Go may take."""

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return kept.folder() / f"{self.name}-{self.version}-{kept.digest(*self.made_from)}"


def find(program: Program, named: str | None, build: Callable[[Path], None]) -> Path:
    """The program: the one of one's own, the one that is kept, or one that is built now.

    :param named: the path of one's own
    :param build: writes the program to the path it is given
    :raises NoProgramError: with the reason
    """
    if named:
        if not os.access(named, os.X_OK):
            raise NoProgramError(f"{program.variable}: there is no program {named}")
        return Path(named)
    with kept.one_at_a_time(program.name):
        if not program.path.exists():
            _make(program, build)
    return program.path


def _make(program: Program, build: Callable[[Path], None]) -> None:
    if shutil.which("go") is None:
        raise NoProgramError(
            f"{program.title} is needed: set {program.variable}, or install Go {program.needs} or later to build it once"
        )
    sys.stderr.write(f"building {program.title} {program.version} with Go, once: {program.takes} on 2 cores\n")
    part = program.path.with_suffix(".part")
    build(part)
    part.rename(program.path)


def go(program: Program, *words: str, folder: str | Path = "/") -> str:
    """What `go` prints, run in a folder that is in no module of ours.

    :raises NoProgramError: it failed or took too long
    """
    try:
        done = subprocess.run(
            ["go", *words], cwd=folder, capture_output=True, text=True, timeout=program.limit_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoProgramError(
            f"go {words[0]} took more than {program.limit_s:g} s; set {program.variable} to a {program.title} that is there"
        ) from error
    if done.returncode:
        raise NoProgramError(
            f"go {' '.join(words)} failed; set {program.variable}, or mend this:\n{done.stderr[-2000:]}"
        )
    return done.stdout
