"""Jaeger v2 as a program: `JAEGER_BIN`, or built once with the Go tool chain.

`go install` refuses the module for its replace line; building it in the module cache works. That build has a
placeholder in place of Jaeger's pages; everything else is what the official image runs.
`python -m tests.jaeger.binary` makes it and says where it is.
"""

import json
import os
import sys
from pathlib import Path
from typing import Final

from podyard.bench.programs import go_programs
from podyard.bench.programs.go_programs import NoProgramError, Program

MODULE: Final = "github.com/jaegertracing/jaeger"
VERSION: Final = "v1.76.0"
"""The module's version of Jaeger 2.13.0, the image in .env."""

FLAGS: Final = ("-trimpath", "-ldflags=-s -w")
JAEGER: Final = Program(
    name="jaeger",
    title="Jaeger",
    version=VERSION,
    made_from=(MODULE, VERSION, *FLAGS),
    variable="JAEGER_BIN",
    needs="1.24.6",
    takes="4 to 14 minutes",
    limit_s=1500,
)


def find() -> Path:
    """The program.

    :raises NoProgramError: with the reason
    """
    return go_programs.find(JAEGER, os.environ.get(JAEGER.variable), _build)


def _build(path: Path) -> None:
    found = json.loads(go_programs.go(JAEGER, "mod", "download", "-json", f"{MODULE}@{VERSION}"))
    go_programs.go(JAEGER, "build", "-C", found["Dir"], *FLAGS, "-o", str(path), "./cmd/jaeger")


if __name__ == "__main__":
    try:
        print(find())
    except NoProgramError as error:
        sys.exit(f"error: {error}")
