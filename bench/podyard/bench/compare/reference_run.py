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
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from podyard.bench.compare import data_items, reference_changes, reference_log, sampling
from podyard.bench.compare.data_items import DataItemsError
from podyard.bench.compare.figures import Figures
from podyard.bench.compare.outcome import Outcome, RunError
from podyard.bench.compare.reference_changes import Changes, ChangesError
from podyard.bench.compare.reference_log import Bound, Course, ReferenceLogError
from podyard.bench.compare.rows import Row
from podyard.bench.compare.sampling import Sample, Sampler
from podyard.bench.compare.workloads import Measured as Several
from podyard.bench.compare.workloads import Prepared
from podyard.bench.programs import kubernetes, scheduler_perf
from podyard.bench.scheduler_perf.figures import Bound as Commit
from podyard.bench.scheduler_perf.figures import reactions, times_from

BENCHMARK: Final = "BenchmarkPerfScheduling"
PROCESS: Final = "scheduler-perf"
STORE: Final = kubernetes.ETCD
CHANGES: Final = "changes"
"""File that the benchmark's program writes."""
EVERY_S: Final = 0.2
"""Seconds between two looks at the processes."""
LIMIT_S: Final = 2400.0
"""Seconds that a run may take; the benchmark itself gives up after 1,800."""
ENDS_WITHIN_S: Final = 10.0
"""Seconds that it has to end after it was told to."""
LONGEST_NAME: Final = 107 - len("/integration_test_etcd_data0123456789/etcd.sock")
"""Bytes of the name of the folder that etcd's socket lies in: that of a socket may have 107 (unix(7)).
Source: test/integration/framework/etcd.go, v1.36.2."""
LAST: Final = 20
"""Lines of its output that an error shows ..."""
LONGEST: Final = 200
"""... and how many characters of each."""


class Programs(NamedTuple):
    """What is run."""

    benchmark: Path
    etcd: Path


def run(programs: Programs, released: Path, prepared: Prepared, row: Row, log: Path) -> Outcome:
    """
    :param released: folder of the benchmark in the module of the release, from which it is built
    :param log: file that is written, and left if the run fails
    :raises RunError: with the reason
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(dir=log.parent, prefix=".reference-")))
        short = closing.enter_context(short_name(folder))
        (folder / "bin").mkdir()
        (folder / "bin" / STORE).symlink_to(programs.etcd)
        logged = closing.enter_context(log.open("wb"))
        began = datetime.now(UTC)
        process = subprocess.Popen(
            command(programs.benchmark, prepared, row, folder),
            cwd=prepared.configuration.parent,
            env=environment(os.environ, short, released),
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
        changed = _lines(folder / CHANGES)
    try:
        measured = data_items.read(content)
        course = reference_log.read(told.lines, _lines(log), began.year)
        changes = reference_changes.read(changed)
        course = course.of(counting(measured, prepared.measured, changes))
        if not course.bound:
            raise ReferenceLogError("no pod was bound in the measured part")
    except (DataItemsError, ReferenceLogError, ChangesError) as error:
        said = "".join(line for _, line in told.lines)
        with log.open("a", encoding="utf-8") as lines:
            lines.write(said)
        raise RunError(f"{row.full_name}: {error}. Its log: {log}\n{tail(told.lines)}") from error
    log.unlink()
    figures = figures_of(measured, course, samples, changes.events)
    return Outcome(figures, versions(programs), figures.notes(), {"measured": measured})


@contextmanager
def short_name(folder: Path) -> Generator[Path]:
    """A link to a folder that may have a long name, while the block runs: the benchmark makes a socket in the
    folder, by which it reaches etcd.

    :raises RunError: if names of temporary files are too long for a socket
    """
    with tempfile.TemporaryDirectory(prefix="podyard-") as name:
        link = Path(name) / "t"
        if (length := len(os.fsencode(link))) > LONGEST_NAME:
            raise RunError(
                f"the socket of etcd would have too long a name: {link} has {length} bytes, and may have "
                f"{LONGEST_NAME}; set TMPDIR to a folder with a shorter name"
            )
        link.symlink_to(folder)
        yield link


def tail(told: Sequence[tuple[float, str]]) -> str:
    """The last lines, without the end of those that are long: figures of all metrics are one line. Pure."""
    return "\n".join(line.rstrip()[:LONGEST] for _, line in told[-LAST:])


def counting(measured: data_items.Measured, several: Several | None, changes: Changes) -> Callable[[Bound], bool]:
    """Which pods count. Pure.

    :param several: those of several ops; `None`: those of the namespace that the data items name
    """
    if several is None:
        return lambda one: one.namespace == measured.measured
    return lambda one: several.has(one.namespace, changes.labels.get(f"{one.namespace}/{one.name}", {}))


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


def figures_of(
    measured: data_items.Measured, course: Course, samples: list[Sample], events: Sequence[float]
) -> Figures:
    """Pure.

    :param events: of the whole run, seconds since 1970
    """
    pods = len(course.bound)
    cpu = sampling.cpu_between(samples, course.began, course.began + course.seconds)
    within = [at for at in events if course.began <= at <= course.ended]
    reaction = times_from(reactions(within, [Commit(one.at, 1) for one in course.bound]))
    return Figures(
        pods=pods,
        seconds=course.seconds,
        pods_per_second=measured.pods_per_second,
        cpu_us_per_pod={name: spent / pods * 1e6 for name, spent in cpu.items()},
        memory_mib=measured.heap_mib,
        resident_mib=sampling.most_memory(samples, course.began, course.ended),
        attempt_mean_ms=measured.attempt_mean_ms,
        attempt_p99_ms=measured.attempt_p99_ms,
        reaction_p50_ms=reaction and reaction.p50_ms,
        reaction_p99_ms=reaction and reaction.p99_ms,
    )


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []


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


def command(benchmark: Path, prepared: Prepared, row: Row, folder: Path) -> list[str]:
    """Changes are asked for only where they count: to watch them costs the reference something."""
    watched = [f"-changes={folder / CHANGES}"] if prepared.measured is not None else []
    return [
        str(benchmark),
        "-test.run=^$",
        "-test.benchtime=1x",
        "-test.v",
        f"-test.bench={pattern(row)}",
        "-perf-scheduling-label-filter=",
        f"-config={prepared.configuration.name}",
        f"-data-items-dir={folder}",
        *watched,
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
