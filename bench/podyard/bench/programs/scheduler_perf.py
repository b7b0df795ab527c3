"""kube-scheduler's own benchmark, as Kubernetes releases it (test/integration/scheduler_perf), as a program:
built once, or the one that `SCHEDULER_PERF_BIN` names. Its workloads are files of the same module.

    python -m podyard.bench.programs.scheduler_perf    the program, and where its workloads are

Kubernetes has a test for each folder of workloads, which all call one function. `reference_test.go` calls it
with the configuration that a flag names.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from podyard.bench.programs import go_programs, kubernetes
from podyard.bench.programs.go_programs import NoProgramError, Program

SOURCE: Final = Path(__file__).with_name("reference_test.go")
FOLDER: Final = "test/integration/scheduler_perf"
"""Of the module: the workloads are in its folders."""
BUILD_S: Final = 7200
"""Seconds that download and build may take: 10 minutes on 2 idle cores."""
PROGRAM: Final = Program(
    name="scheduler-perf",
    title="kube-scheduler's benchmark",
    version=kubernetes.VERSION,
    made_from=(SOURCE.read_text(encoding="utf-8"), kubernetes.VERSION, kubernetes.PARTS, *kubernetes.FLAGS),
    variable="SCHEDULER_PERF_BIN",
    needs="1.26",
    takes="10 to 40 minutes",
    limit_s=BUILD_S,
)


def find() -> Path:
    """The program.

    :raises NoProgramError: with the reason
    """
    return go_programs.find(PROGRAM, os.environ.get(PROGRAM.variable), _build)


def workloads() -> Path:
    """The folder that has the folders of workloads, and their templates.

    :raises NoProgramError: with the reason
    """
    return Path(kubernetes.source(PROGRAM)["Dir"]) / FOLDER


def _build(path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="podyard-scheduler-perf-") as folder:
        kubernetes.write_module(PROGRAM, Path(folder))
        (Path(folder) / SOURCE.name).write_bytes(SOURCE.read_bytes())
        go_programs.go(PROGRAM, "test", *kubernetes.FLAGS, "-c", "-o", str(path), ".", folder=folder)


if __name__ == "__main__":
    try:
        print(find())
        print(workloads())
    except NoProgramError as error:
        sys.exit(f"error: {error}")
