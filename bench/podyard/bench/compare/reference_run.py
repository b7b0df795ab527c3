"""One run of kube-scheduler's benchmark, measured from outside.

The benchmark is one process (client, API server, controllers, scheduler) and etcd, which it starts itself.
It says when its measured part began and ended: CPU time is that between the two.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from podyard.bench.compare import data_items, reference_log, sampling
from podyard.bench.compare.data_items import DataItemsError, Measured
from podyard.bench.compare.figures import SHORT_S, Figures
from podyard.bench.compare.outcome import Outcome, RunError
from podyard.bench.compare.reference_log import Course, ReferenceLogError
from podyard.bench.compare.rows import Row
from podyard.bench.compare.sampling import Sample, Sampler
from podyard.bench.programs import kubernetes, scheduler_perf

BENCHMARK: Final = "BenchmarkPerfScheduling"
PROCESS: Final = "scheduler-perf"
STORE: Final = kubernetes.ETCD
EVERY_S: Final = 0.2
"""Seconds between two looks at the processes."""
LIMIT_S: Final = 2400.0
"""Seconds that a run may take; the benchmark itself gives up after 1,800."""
ENDS_WITHIN_S: Final = 10.0
"""Seconds that it has to end after it was told to."""
TAIL: Final = 2000
"""Characters of its output that an error shows."""


class Programs(NamedTuple):
    """What is run."""

    benchmark: Path
    etcd: Path


def run(programs: Programs, released: Path, configuration: Path, row: Row, log: Path) -> Outcome:
    """
    :param released: folder of the benchmark in the module of the release, from which it is built
    :param configuration: file; its templates are found from its folder
    :param log: file that is written, and left if the run fails
    :raises RunError: with the reason
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=log.parent, prefix=".reference-") as name, ExitStack() as closing:
        folder = Path(name)
        (folder / "bin").mkdir()
        (folder / "bin" / STORE).symlink_to(programs.etcd)
        logged = closing.enter_context(log.open("wb"))
        began = datetime.now(UTC)
        process = subprocess.Popen(
            _command(programs.benchmark, configuration, row, folder),
            cwd=configuration.parent,
            env=environment(os.environ, folder, released),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=logged,
            start_new_session=True,
        )
        told = Told(process)
        closing.callback(told.join, ENDS_WITHIN_S)
        closing.callback(_end, process)
        samples = _follow(process, row)
        told.join(ENDS_WITHIN_S)
        found = sorted(folder.glob(f"{BENCHMARK}*.json"))
        content = found[0].read_bytes() if found else b""
    try:
        measured = data_items.read(content)
        with log.open(encoding="utf-8", errors="replace") as lines:
            course = reference_log.read(told.lines, lines, began.year).of(measured.measured)
        if not course.bound:
            raise ReferenceLogError("no pod was bound in the measured part")
    except (DataItemsError, ReferenceLogError) as error:
        said = "".join(line for _, line in told.lines)
        with log.open("a", encoding="utf-8") as lines:
            lines.write(said)
        raise RunError(f"{row.full_name}: {error}. Its log: {log}\n{said[-TAIL:]}") from error
    log.unlink()
    figures = figures_of(measured, course, samples)
    return Outcome(figures, versions(programs), notes_of(figures), {"measured": measured})


class Told(threading.Thread):
    """Lines of a process' standard output, each with the time when it came."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(daemon=True, name="told")
        self._output = process.stdout
        self.lines: list[tuple[float, str]] = []
        self.start()

    def run(self) -> None:
        """Until it ends."""
        if self._output is None:
            return
        with self._output:
            for line in self._output:
                self.lines.append((time.time(), line.decode("utf-8", "replace")))


def figures_of(measured: Measured, course: Course, samples: list[Sample]) -> Figures:
    """Pure."""
    pods = len(course.bound)
    cpu = sampling.cpu_between(samples, course.began, course.began + course.seconds)
    memory = sampling.most_memory(samples, course.began, course.ended)
    return Figures(
        pods=pods,
        seconds=course.seconds,
        pods_per_second=measured.pods_per_second,
        cpu_us_per_pod={name: spent / pods * 1e6 for name, spent in cpu.items()},
        memory_mib=measured.heap_mib,
        resident_mib=memory,
        attempt_mean_ms=measured.attempt_mean_ms,
        attempt_p99_ms=measured.attempt_p99_ms,
    )


def notes_of(figures: Figures) -> list[str]:
    """What is to be known of a run. Pure."""
    if figures.seconds < SHORT_S:
        return [f"the measured part lasted less than {SHORT_S:g} s"]
    return []


def versions(programs: Programs) -> dict[str, str]:
    """Of kube-scheduler, etcd, and the Go that built the benchmark."""
    known = {"kube-scheduler": kubernetes.VERSION, "etcd": kubernetes.ETCD_VERSION}
    if shutil.which("go"):
        done = subprocess.run(
            ["go", "version", str(programs.benchmark)], capture_output=True, text=True, timeout=60, check=False
        )
        if found := re.search(r"go(\d\S*)", done.stdout.rpartition(":")[2]):
            known["go"] = found[1]
    return known


def pattern(row: Row) -> str:
    """Names the workload alone: each part of a name is matched by itself. Pure."""
    return "/".join(f"^{re.escape(part)}$" for part in (BENCHMARK, *row.full_name.split("/")))


def _command(benchmark: Path, configuration: Path, row: Row, folder: Path) -> list[str]:
    return [
        str(benchmark),
        "-test.run=^$",
        "-test.benchtime=1x",
        "-test.v",
        f"-test.bench={pattern(row)}",
        "-perf-scheduling-label-filter=",
        f"-config={configuration.name}",
        f"-data-items-dir={folder}",
    ]


def environment(of: Mapping[str, str], folder: Path, released: Path) -> dict[str, str]:
    """Its own etcd on the path, times in UTC, its log where it is read, and no checks that only tests have.

    The API server in it looks for files beside its source, whose path a trimmed program only knows below the
    folder that two variables of Bazel name (cmd/kube-apiserver/app/testing/testserver.go, v1.36.2).
    """
    kept = {name: value for name, value in of.items() if name not in ("ARTIFACTS", "KUBE_INTEGRATION_ETCD_URL")}
    module = released.parents[len(Path(scheduler_perf.FOLDER).parts) - 1]
    cache = module.parents[len(Path(kubernetes.MODULE).parts) - 1]
    return {
        **kept,
        "PATH": f"{folder / 'bin'}{os.pathsep}{of.get('PATH', '')}",
        "TMPDIR": str(folder),
        "TZ": "UTC",
        "KUBE_CACHE_MUTATION_DETECTOR": "false",
        "TEST_SRCDIR": str(cache.parent),
        "TEST_WORKSPACE": cache.name,
    }


def _follow(process: "subprocess.Popen[bytes]", row: Row) -> list[Sample]:
    sampler = Sampler(process.pid, (PROCESS, STORE))
    until = time.monotonic() + LIMIT_S
    while process.poll() is None:
        if time.monotonic() > until:
            raise RunError(f"{row.full_name}: kube-scheduler's benchmark has not ended within {LIMIT_S:g} s")
        sampler.look()
        with suppress(subprocess.TimeoutExpired):
            process.wait(EVERY_S)
    return sampler.samples


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends what was started, its etcd too: it is in a session of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDS_WITHIN_S)
