"""One entry of the history: what all benchmarks found of one commit on one machine."""

from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from podyard.bench.basic import BasicResult
from podyard.bench.cycles import CycleResult
from podyard.bench.events import CoreResult
from podyard.bench.machine import Commit, Machine
from podyard.bench.storm import StormResult
from podyard.objects.times import rfc3339


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """`bench basic`. Each figure is its own median over the runs."""

    nodes: int
    pods: int
    runs: int
    pods_per_second: float
    """From the first create to the last durable commit."""
    cpu_us_per_pod: dict[str, float]
    """CPU time (user and system), microseconds, by process: the NATS server and the benchmark's client among
    them."""
    pods_per_commit: float
    stored_per_pod: float
    """Messages stored in CLUSTER."""
    to_server_per_pod: float
    """Messages that the NATS server received, all kinds."""
    from_server_per_pod: float
    """Messages that it delivered, replies and acknowledgements included."""

    @property
    def cpu_us(self) -> float:
        """Of all processes, microseconds a pod."""
        return sum(self.cpu_us_per_pod.values())


class Cycles(msgspec.Struct, frozen=True, kw_only=True):
    """`bench cycle`: medians, CPU microseconds, by kind of pod."""

    nodes: int
    first_us: dict[str, float]
    """Nothing is shared with an earlier pod."""
    seen_us: dict[str, float]
    """An equal pod was scheduled before."""


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """`bench events`: medians, of the dearest kind."""

    parked: int
    """Pods."""
    none_us: float
    """An event that concerns no parked pod, CPU microseconds of the queue's core."""
    one_us: float
    """One that concerns one."""
    all_ms: float
    """One that moves all, CPU milliseconds."""
    storm_pop_p99_ms: float
    """A pop in a storm of node updates, 99th percentile, milliseconds as its caller waits."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of docs/performance.json. A later version adds fields with defaults."""

    commit: str
    """Short hash; "": not known."""
    dirty: bool
    """Whether tracked files differed from the commit."""
    date: str
    """UTC, as `2026-11-22T12:00:00Z`, when the measuring ended."""
    machine: Machine
    throughput: Throughput
    cycle: Cycles
    events: Events
    counts: dict[str, float] = {}
    """What no load can blur, as `python -m tests.counts --json` tells it: `objects.queue` (per pod),
    `calls.plain` (per cycle)."""

    @property
    def label(self) -> str:
        """The commit, with `*` if the tree was dirty."""
        return f"{self.commit or '?'}{'*' if self.dirty else ''}"


def entry(
    commit: Commit,
    machine: Machine,
    now: float,
    runs: Sequence[BasicResult],
    cycles: CycleResult,
    core: CoreResult,
    storm: StormResult,
    counts: Mapping[str, float],
) -> Entry:
    """
    :param now: seconds since 1970, UTC
    :param runs: of equal loads, at least one
    """
    return Entry(
        commit=commit.hash,
        dirty=commit.dirty,
        date=rfc3339(now),
        machine=machine,
        throughput=_throughput(runs),
        cycle=Cycles(
            nodes=cycles.nodes,
            first_us={kind: cost.first_us for kind, cost in cycles.kinds.items()},
            seen_us={kind: cost.seen_us for kind, cost in cycles.kinds.items()},
        ),
        events=Events(
            parked=core.parked,
            none_us=core.none_us,
            one_us=core.one_us,
            all_ms=core.all_ms,
            storm_pop_p99_ms=storm.storm_pop_p99_ms,
        ),
        counts=dict(counts),
    )


def _throughput(runs: Sequence[BasicResult]) -> Throughput:
    first = runs[0]
    processes = sorted({name for run in runs for name in run.cpu_us_per_pod})
    return Throughput(
        nodes=first.nodes,
        pods=first.pods,
        runs=len(runs),
        pods_per_second=median(run.pods_per_second_average for run in runs),
        cpu_us_per_pod={name: median(run.cpu_us_per_pod.get(name, 0.0) for run in runs) for name in processes},
        pods_per_commit=median(run.pods_per_commit for run in runs),
        stored_per_pod=median(run.messages_stored_per_pod for run in runs),
        to_server_per_pod=median(run.messages_to_server_per_pod for run in runs),
        from_server_per_pod=median(run.messages_from_server_per_pod for run in runs),
    )
