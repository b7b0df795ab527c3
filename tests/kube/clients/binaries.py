"""helm and k9s, built once each with the Go tool chain out of their modules, or the ones that `HELM_BIN` and
`K9S_BIN` name.

    python -m tests.kube.clients.binaries    both, and where they are
"""

import json
import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from podyard.bench.programs import go_programs
from podyard.bench.programs.go_programs import NoProgramError, Program

BUILD_S: Final = 3600
"""Seconds that download and build may take: helm 2 minutes on 2 idle cores, k9s 5."""


class Source(NamedTuple):
    """Of a program: a package of a module."""

    module: str
    version: str
    package: str
    tells: str
    """The variable that holds the version it says it has."""
    variable: str
    needs: str

    def flags(self) -> tuple[str, ...]:
        return "-trimpath", f"-ldflags=-s -w -X {self.module}/{self.tells}={self.version}"


HELM: Final = "helm"
K9S: Final = "k9s"
SOURCES: Final = {
    HELM: Source("helm.sh/helm/v4", "v4.3.1", "./cmd/helm", "internal/version.version", "HELM_BIN", "1.26"),
    K9S: Source("github.com/derailed/k9s", "v0.50.18", ".", "cmd.version", "K9S_BIN", "1.25.1"),
}


def find(name: str) -> Path:
    """The program of that name, one of `SOURCES`.

    :raises NoProgramError: with the reason
    """
    source = SOURCES[name]
    program = Program(
        name=name,
        title=name,
        version=source.version,
        made_from=(*source, *source.flags()),
        variable=source.variable,
        needs=source.needs,
        takes="2 to 20 minutes",
        limit_s=BUILD_S,
    )
    return go_programs.find(program, os.environ.get(source.variable), lambda path: _build(program, source, path))


def _build(program: Program, source: Source, path: Path) -> None:
    found = json.loads(go_programs.go(program, "mod", "download", "-json", f"{source.module}@{source.version}"))
    go_programs.go(program, "build", "-C", found["Dir"], *source.flags(), "-o", str(path), source.package)


if __name__ == "__main__":
    try:
        for wanted in SOURCES:
            print(find(wanted), flush=True)
    except NoProgramError as error:
        sys.exit(f"error: {error}")
