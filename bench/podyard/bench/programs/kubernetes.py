"""kubectl, and the programs of a control plane and its store, as Kubernetes and etcd release them: built once
each with the Go tool chain, or out of the folder that `KUBERNETES_BIN_DIR` names.

The go.mod of the module k8s.io/kubernetes points to folders that are not in the module. A module that puts
the released modules in their place builds every program of it.

    python -m podyard.bench.programs.kubernetes            kubectl, and where it is
    python -m podyard.bench.programs.kubernetes NAME...    others
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from podyard.bench.programs import go_programs
from podyard.bench.programs.go_programs import NoProgramError, Program

MODULE: Final = "k8s.io/kubernetes"
VERSION: Final = "v1.36.2"
PARTS: Final = "v0.36.2"
"""Version of the modules that make up a release: k8s.io/api and others."""
ETCD_VERSION: Final = "v3.6.8"
"""The one that the release is made with: its go.mod."""

KUBECTL: Final = "kubectl"
ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
CONTROLLER_MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
PACKAGES: Final = {
    KUBECTL: f"{MODULE}/cmd/kubectl",
    ETCD: "go.etcd.io/etcd/server/v3",
    API_SERVER: f"{MODULE}/cmd/kube-apiserver",
    CONTROLLER_MANAGER: f"{MODULE}/cmd/kube-controller-manager",
    SCHEDULER: f"{MODULE}/cmd/kube-scheduler",
}

FOLDER_VARIABLE: Final = "KUBERNETES_BIN_DIR"
TOLD: Final = "k8s.io/component-base/version."
SET: Final = {"gitVersion": VERSION, "gitMajor": "1", "gitMinor": "36"}
"""What a program says of its version, which it does not know otherwise."""
FLAGS: Final = (
    "-mod=mod",
    "-trimpath",
    "-ldflags=-s -w " + " ".join(f"-X {TOLD}{name}={value}" for name, value in SET.items()),
)
BUILD_S: Final = 3600
"""Seconds that download and build may take: kubectl 3 minutes on 2 idle cores, all five 10."""
REPLACED: Final = re.compile(r"^\s*(?:replace )?(k8s\.io/\S+) => \./staging/src/", re.MULTILINE)


def find(name: str) -> Path:
    """The program of that name, one of `PACKAGES`.

    :raises NoProgramError: with the reason
    """
    package = PACKAGES[name]
    program = Program(
        name=name,
        title=name,
        version=ETCD_VERSION if name == ETCD else VERSION,
        made_from=(package, VERSION, PARTS, ETCD_VERSION, *FLAGS),
        variable=FOLDER_VARIABLE,
        needs="1.26",
        takes="3 to 20 minutes",
        limit_s=BUILD_S,
    )
    folder = os.environ.get(FOLDER_VARIABLE)
    return go_programs.find(program, folder and str(Path(folder) / name), lambda path: _build(program, package, path))


def _build(program: Program, package: str, path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="podyard-kubernetes-") as folder:
        write_module(program, Path(folder))
        go_programs.go(program, "build", *FLAGS, "-o", str(path), package, folder=folder)


def write_module(program: Program, folder: Path) -> None:
    """A go.mod with which programs of the release can be built in that folder.

    :raises NoProgramError: with the reason
    """
    released = Path(source(program)["GoMod"]).read_text(encoding="utf-8")
    (folder / "go.mod").write_text(module(released), encoding="utf-8")


def source(program: Program) -> Mapping[str, str]:
    """What Go says of the release's module, which it fetches if it is not there: `Dir`, `GoMod`, `Version`.

    :raises NoProgramError: with the reason
    """
    return json.loads(go_programs.go(program, "mod", "download", "-json", f"{MODULE}@{VERSION}"))


def module(released: str) -> str:
    """The go.mod that builds it.

    :param released: the one of the release
    """
    replaced = [f"replace {name} => {name} {PARTS}" for name in REPLACED.findall(released)]
    required = [f"require {MODULE} {VERSION}", f"require {PACKAGES[ETCD]} {ETCD_VERSION}"]
    return "\n".join(("module reference", "go 1.26", *required, *replaced, ""))


if __name__ == "__main__":
    try:
        for wanted in sys.argv[1:] or [KUBECTL]:
            if wanted not in PACKAGES:
                sys.exit(f"error: {wanted} is none of {', '.join(PACKAGES)}")
            print(find(wanted), flush=True)
    except NoProgramError as error:
        sys.exit(f"error: {error}")
