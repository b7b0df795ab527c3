"""Wheel and sdist as `make release` builds them, and the files in them."""

import os
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Final, NamedTuple

REPOSITORY: Final = Path(__file__).parents[2]
PACKAGE_ROOTS: Final = ("proto", "libs", "services")
"""Folders whose `podyard/` are parts of one namespace package: pyproject.toml's `packages`."""

BUILD_S: Final = 120


class Release(NamedTuple):
    """What one build made."""

    wheel: Path
    sdist: Path


def build(directory: Path) -> Release:
    """`make release` into `directory`, which then holds one wheel and one sdist."""
    # what was said to the make that runs this test is not meant for this one
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "ARGS")}
    done = subprocess.run(
        ["make", "release", f"DIST={directory}"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert done.returncode == 0, f"make release failed:\n{done.stdout}{done.stderr}"
    [wheel] = directory.glob("*.whl")
    [sdist] = directory.glob("*.tar.gz")
    return Release(wheel, sdist)


def files_of_wheel(wheel: Path) -> set[str]:
    """Paths in it, without the `.dist-info` that the build adds."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def sources_of_wheel(wheel: Path) -> dict[str, str]:
    """Its modules' text, by path."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")}


def files_of_sdist(sdist: Path) -> set[str]:
    """Paths in it, below the one folder `podyard-VERSION` that it has."""
    with tarfile.open(sdist) as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
    assert {name.partition("/")[0] for name in names} == {sdist.name.removesuffix(".tar.gz")}
    return {name.partition("/")[2] for name in names}


def tracked(*folders: str) -> set[str]:
    """Paths of the repository's files below `folders`, as git knows them."""
    done = subprocess.run(["git", "ls-files", "-z", *folders], cwd=REPOSITORY, capture_output=True, check=True)
    return {name for name in done.stdout.decode().split("\0") if name}
