"""A bare virtual environment, far from the checkout, with the runtime lock and one archive of Podyard in
it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.release.archives import REPOSITORY

RUNTIME_LOCK: Final = REPOSITORY / "requirements" / "runtime.txt"
BUILD_LOCK: Final = REPOSITORY / "requirements" / "build.txt"
INSTALL_S: Final = 300
"""Seconds that a package index may take: 30 with what pip keeps of an earlier download."""

RUN_S: Final = 90


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


class Bare:
    """What somebody has who installed Podyard and nothing else."""

    def __init__(self, directory: Path) -> None:
        """Make the environment in `directory`, and a home and a working directory beside it."""
        self.place = directory / "environment"
        self.home = directory / "home"
        self.home.mkdir()
        run([sys.executable, "-m", "venv", str(self.place)], cwd=directory, environment=os.environ)

    def install(self, archive: Path) -> None:
        """The runtime lock, then `archive` and nothing else; each file that comes from the index is checked
        against its hashes.

        pip builds an sdist as for everybody: in an environment of its own that goes afterwards, with the back
        end that pyproject.toml names. The index is closed to it; it finds the locked back end in a folder.
        """
        back_end = self.home.with_name("back-end")
        self._pip("install", "--require-hashes", "--requirement", str(RUNTIME_LOCK))
        self._pip("download", "--require-hashes", "--requirement", str(BUILD_LOCK), "--dest", str(back_end))
        self._pip("install", "--no-deps", "--no-index", "--find-links", str(back_end), str(archive))

    def _pip(self, verb: str, *words: str) -> None:
        # pip's own settings stay, with the way to the package index
        known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        command = [str(self.place / "bin" / "python"), "-m", "pip", verb, "--quiet", *words]
        run(command, cwd=self.home, environment=known, within_s=INSTALL_S)

    def podyard(self, *words: str) -> Done:
        """`podyard <words>` as a login shell would find it."""
        return self._run("podyard", *words)

    def kubectl_plugin(self, *words: str) -> Done:
        """What `kubectl podyard <words>` runs."""
        return self._run("kubectl-podyard", *words)

    def python(self, code: str, *arguments: str) -> str:
        """What `code` prints in this environment's interpreter."""
        done = self._run("python", "-c", code, *arguments)
        assert done.code == 0, done.out + done.err
        return done.out

    def _run(self, program: str, *words: str) -> Done:
        clean = {
            "PATH": f"{self.place / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }
        command = [str(self.place / "bin" / program), *words]
        done = subprocess.run(
            command, cwd=self.home, env=clean, capture_output=True, text=True, timeout=RUN_S, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)


def run(command: list[str], *, cwd: Path, environment: Mapping[str, str], within_s: float = RUN_S) -> str:
    """Run a command that must not fail; what it printed.

    :raises AssertionError: if it failed, with all that it said
    """
    done = subprocess.run(
        command, cwd=cwd, env=dict(environment), capture_output=True, text=True, timeout=within_s, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"
    return done.stdout
