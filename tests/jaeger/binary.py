"""Jaeger v2 as a program: `JAEGER_BIN`, or built once with the Go tool chain.

`go install` refuses the module for its replace line; building it in the module cache works. That build has a
placeholder in place of Jaeger's pages; everything else is what the official image runs.
`python -m tests.jaeger.binary` makes it and says where it is.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support import kept

MODULE: Final = "github.com/jaegertracing/jaeger"
VERSION: Final = "v1.76.0"
"""The module's version of Jaeger 2.13.0, the image in .env."""

FLAGS: Final = ("-trimpath", "-ldflags=-s -w")
BUILD_S: Final = 1500
"""Seconds that download and build may take: 4 to 8 minutes on 2 idle cores."""


class NoJaegerError(Exception):
    """There is no Jaeger and none can be made; the text says why and what to do."""


def find() -> Path:
    """The program.

    :raises NoJaegerError: with the reason
    """
    named = os.environ.get("JAEGER_BIN")
    if named:
        if not os.access(named, os.X_OK):
            raise NoJaegerError(f"JAEGER_BIN={named}: there is no program there")
        return Path(named)
    wanted = kept.folder() / f"jaeger-{VERSION}-{kept.digest(MODULE, VERSION, *FLAGS)}"
    with kept.one_at_a_time("jaeger"):
        if not wanted.exists():
            _build(wanted)
    return wanted


def _build(wanted: Path) -> None:
    if shutil.which("go") is None:
        raise NoJaegerError(
            "Jaeger is needed: set JAEGER_BIN to a Jaeger 2.13 or later, or install Go 1.24.6 or later to build it once"
        )
    sys.stderr.write(f"building Jaeger {VERSION} with Go, once: 4 to 14 minutes on 2 cores\n")
    found = json.loads(_go("mod", "download", "-json", f"{MODULE}@{VERSION}"))
    part = wanted.with_suffix(".part")
    _go("build", "-C", found["Dir"], *FLAGS, "-o", str(part), "./cmd/jaeger")
    part.rename(wanted)


def _go(*words: str) -> str:
    """Run `go` away from any module of ours."""
    try:
        done = subprocess.run(["go", *words], cwd="/", capture_output=True, text=True, timeout=BUILD_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoJaegerError(
            f"go {words[0]} took more than {BUILD_S} s; set JAEGER_BIN to a Jaeger that is there"
        ) from error
    if done.returncode:
        raise NoJaegerError(f"go {' '.join(words)} failed; set JAEGER_BIN, or mend this:\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    try:
        print(find())
    except NoJaegerError as error:
        sys.exit(f"error: {error}")
