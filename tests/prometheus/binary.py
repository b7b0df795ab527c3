"""Prometheus and promtool as programs: those on PATH, or out of Debian's package, which is unpacked and not
installed: an installed one would be started on this machine.

`PROMETHEUS_DIR` names a folder with both. `python -m tests.prometheus.binary` says where they are.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from podyard.bench.programs import kept

PACKAGE: Final = "prometheus"
NAMES: Final = ("prometheus", "promtool")
LIMIT_S: Final = 300
"""Seconds that a download may take: 30 MB."""
TO_DO: Final = "set PROMETHEUS_DIR to a folder with prometheus and promtool (2.42 or later), or put both on PATH"


class NoPrometheusError(Exception):
    """There is none and none can be had; the text says why and what to do."""


class Programs(NamedTuple):
    """Where they are."""

    prometheus: Path
    promtool: Path


def find() -> Programs:
    """The programs.

    :raises NoPrometheusError: with the reason
    """
    named = os.environ.get("PROMETHEUS_DIR")
    if named:
        found = _in(Path(named))
        if found is None:
            raise NoPrometheusError(f"PROMETHEUS_DIR={named}: there are no programs {' and '.join(NAMES)}")
        return found
    on_path = [shutil.which(name) for name in NAMES]
    if all(on_path):
        return Programs(*(Path(one) for one in on_path if one is not None))
    folder = kept.folder() / "prometheus-debian"
    with kept.one_at_a_time("prometheus"):
        if _in(folder) is None:
            _unpack(folder)
    return Programs(*(folder / name for name in NAMES))


def _in(folder: Path) -> Programs | None:
    found = [folder / name for name in NAMES]
    return Programs(*found) if all(os.access(one, os.X_OK) for one in found) else None


def _unpack(folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NoPrometheusError(f"Prometheus is needed, and this is no Debian to have it from: {TO_DO}")
    if os.geteuid() == 0:
        _do("apt-get", "-q", "update")
    with tempfile.TemporaryDirectory(prefix="podyard-prometheus-") as made:
        _do("apt-get", "-q", "download", PACKAGE, cwd=made)
        [archive] = Path(made).glob("*.deb")
        _do("dpkg-deb", "--extract", str(archive), f"{made}/root")
        folder.mkdir(exist_ok=True)
        for name in NAMES:
            part = folder / f"{name}.part"
            shutil.copy(Path(made, "root/usr/bin", name), part)
            part.rename(folder / name)


def _do(*words: str, cwd: str = "/") -> None:
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoPrometheusError(f"{' '.join(words)} took more than {LIMIT_S} s; {TO_DO}") from error
    if done.returncode:
        raise NoPrometheusError(f"{' '.join(words)} failed; {TO_DO}; or mend this:\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    try:
        print(*find(), sep="\n")
    except NoPrometheusError as error:
        sys.exit(f"error: {error}")
