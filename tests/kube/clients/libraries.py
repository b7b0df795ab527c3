"""Python with Kubernetes' client libraries, in an environment of its own: `requirements/clients.txt`,
installed once and kept.

    python -m tests.kube.clients.libraries    where its interpreter is
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from podyard.bench.programs import kept

LOCK: Final = Path(__file__).parents[3] / "requirements" / "clients.txt"
NAME: Final = "client-libraries"
INSTALL_S: Final = 600
"""Seconds that making it may take: 20 with what pip keeps of an earlier download."""


def python() -> Path:
    """The interpreter that knows the libraries."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    place = kept.folder() / f"{NAME}-{version}-{kept.digest(LOCK)}"
    with kept.one_at_a_time(NAME):
        if not place.exists():
            _make(place)
    return place / "bin" / "python"


def _make(place: Path) -> None:
    # where it is made is where it stays: its programs name their interpreter. A mark says that it is whole
    part = place.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    sys.stderr.write("installing client libraries of Kubernetes, once\n")
    _run(sys.executable, "-m", "venv", str(part))
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes")
    _run(str(part / "bin" / "python"), *install, "--requirement", str(LOCK))
    part.rename(place)


def _run(*command: str) -> None:
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(command, env=known, check=True, timeout=INSTALL_S)


if __name__ == "__main__":
    print(python())
