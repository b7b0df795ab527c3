"""One run, as it is shown and kept."""

from typing import Final

import msgspec

from podyard.bench import meters
from podyard.bench.checking.checker import Checker
from podyard.bench.machine import Commit, Machine
from podyard.bench.meters import CLIENT, ServerCounts
from podyard.bench.scheduler_perf import capacity, figures, histograms
from podyard.bench.scheduler_perf.capacity import Full
from podyard.bench.scheduler_perf.executing import Measured
from podyard.bench.scheduler_perf.figures import LONG_ENOUGH_S, Throughput, Times

SHOWN: Final = 20
"""Violations that a result lists."""


class Churned(msgspec.Struct, frozen=True, kw_only=True):
    """What was done by churn while the measured part lasted."""

    rounds: int = 0
    created: int = 0
    """Objects that were created beside the measured pods."""
    deleted: int = 0
    paced_by: str = "the clock"


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """What the checker of the simulation says of what CLUSTER holds after the run."""

    violations: tuple[str, ...]
    """The first of them; empty: none."""
    violated: int
    commits: int
    bound: int
    released: int
    judged: int
    """Bindings that were judged by every rule, as things were when the binder decided."""
    unjudged: dict[str, int]
    """Others, by the reason: of these uniqueness and room alone were judged."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the measured part. CPU, memory and messages are of the processes that run it."""

    case: str
    """NAME/WORKLOAD of the file."""
    pods_per_second_average: float | None
    """Mean of samples of a second, as the reference defines it; None: there was no sample."""
    long_enough: bool
    """Whether it lasted 5 s: else that mean is of few samples, and is not to be compared."""
    pods_per_second_durable: float
    """Pods bound, by the time from the first create to the last durable commit."""
    pods_bound: int
    seconds: float
    """From the first create, or where the file begins to measure, to the last durable commit."""
    throughput: Throughput | None
    bound_in_second: tuple[int, ...]
    attempt: Times | None
    """Of attempts that placed a pod, as schedulers tell."""
    end_to_end: Times | None
    """From the first time that a pod was ready to its binding, as the queue tells."""
    reaction: Times | None
    """From an event of the file (an update, a deletion, an object) to the last binding before the next one;
    None: nothing is measured across events."""
    commits: int
    cpu_us_per_pod: float
    """Of all processes, the client's included."""
    cpu_us_per_pod_by_process: dict[str, float]
    cpu_seconds: dict[str, float]
    pss_mib: float
    """Without the client."""
    pss_mib_by_process: dict[str, float]
    messages_stored_per_pod: float
    messages_to_server_per_pod: float | None
    """None: on a stack that ran already nobody can ask."""
    messages_from_server_per_pod: float | None
    conflicts: int
    released: int
    """Pods that ended: victims, and what the file deletes."""
    churn: Churned | None
    stack: str
    """`headline`, `api`, `all`, or `running`: one that was not started for it."""
    services: tuple[str, ...]
    synchronous: bool
    """Whether the NATS server calls fsync before it acknowledges."""
    gates_without_effect: tuple[str, ...]
    checked: str
    """What was found wrong with what was stored; "": nothing; in parentheses: why it was not looked at."""
    load_before: float
    """Of the machine, over a minute, before the run."""
    at: float
    machine: Machine
    commit: Commit
    streams: Streams | None = None
    """None: the checker was not asked."""
    tracing: float | None = None
    """Share of the traces that were kept, from 0 to 1; None: as the stack that ran has it."""
    spans_sent_per_pod: float = 0.0
    """That services handed to a collector meanwhile; each does so twice a second."""
    spans_lost_per_pod: float = 0.0
    full: tuple[Full, ...] = ()
    """Which service is full at which rate, the first one first."""
    pace: float = 0.0
    """At which pods were created, a second; 0: as fast as they were stored."""
    machine_full: float = 0.0
    """Pods a second at which the machine's cores are full with all of it, the client included."""

    @property
    def rate(self) -> float:
        """Pods a second: the reference's definition, where the run was long enough for it."""
        average = self.pods_per_second_average
        return average if average is not None and self.long_enough else self.pods_per_second_durable

    @property
    def schedulers(self) -> int:
        """How many there were."""
        return sum(name.startswith("scheduler-") for name in self.services)

    @property
    def wrong(self) -> bool:
        """Whether something was found that must not be."""
        left = bool(self.checked) and not self.checked.startswith("(")
        return left or (self.streams is not None and self.streams.violated > 0)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was made with and on."""

    case: str
    stack: str
    services: tuple[str, ...]
    synchronous: bool
    tracing: float | None
    churns: bool
    equal_churn: float
    pace: float
    gates_without_effect: tuple[str, ...]
    checked: str
    streams: Streams | None
    load_before: float
    at: float
    machine: Machine
    commit: Commit


def streams(checker: Checker) -> Streams:
    """What a checker has found."""
    return Streams(
        violations=tuple(checker.violations[:SHOWN]),
        violated=len(checker.violations),
        commits=checker.commits,
        bound=checker.bound,
        released=checker.released,
        judged=checker.judged,
        unjudged=dict(checker.unjudged),
    )


def of(found: Measured, setting: Setting) -> Result:
    """The figures of one measured part."""
    before, after = found.before, found.after
    bound = sum(one.count for one in found.bound)
    seconds = found.bound[-1].at - found.started if found.bound else 0.0
    rates = figures.throughput(figures.samples(found.bound, found.started, found.stopped))
    cpu = meters.difference(after.cpu, before.cpu)
    cost = {name: round(_each(used, bound) * 1e6, 1) for name, used in cpu.items()}
    told = (before.told, after.told)
    to_server, from_server = _messages(after.server, before.server, bound)
    return Result(
        case=setting.case,
        pods_per_second_average=rates.average if rates else None,
        long_enough=seconds >= LONG_ENOUGH_S,
        pods_per_second_durable=round(bound / seconds, 1) if seconds else 0.0,
        pods_bound=bound,
        seconds=round(seconds, 3),
        throughput=rates,
        bound_in_second=figures.per_second(found.bound, found.started),
        attempt=histograms.between(*told, histograms.ATTEMPT),
        end_to_end=histograms.between(*told, histograms.END_TO_END),
        reaction=figures.times_from(figures.reactions(found.events, found.bound)),
        commits=after.commits - before.commits,
        cpu_us_per_pod=round(_each(sum(cpu.values()), bound) * 1e6, 1),
        cpu_us_per_pod_by_process=cost,
        cpu_seconds={name: round(used, 2) for name, used in cpu.items()},
        pss_mib=round(sum(size for name, size in found.memory.items() if name != CLIENT), 1),
        pss_mib_by_process={name: round(size, 1) for name, size in found.memory.items()},
        messages_stored_per_pod=round(_each(after.stored - before.stored, bound), 3),
        messages_to_server_per_pod=to_server,
        messages_from_server_per_pod=from_server,
        conflicts=int(_counted(found, histograms.CONFLICTS)),
        released=after.released - before.released,
        churn=Churned(
            rounds=after.rounds - before.rounds,
            created=after.created - before.created - bound,
            deleted=after.deleted - before.deleted,
            paced_by=f"pods bound, as at {setting.equal_churn:g} pods/s" if setting.equal_churn else "the clock",
        )
        if setting.churns
        else None,
        stack=setting.stack,
        services=setting.services,
        synchronous=setting.synchronous,
        gates_without_effect=setting.gates_without_effect,
        checked=setting.checked,
        load_before=round(setting.load_before, 2),
        at=setting.at,
        machine=setting.machine,
        commit=setting.commit,
        streams=setting.streams,
        tracing=setting.tracing,
        pace=setting.pace,
        full=capacity.full(cost),
        machine_full=capacity.machine(cost, setting.machine.cores),
        spans_sent_per_pod=round(_each(_counted(found, histograms.SPANS_SENT), bound), 3),
        spans_lost_per_pod=round(_each(_counted(found, histograms.SPANS_LOST), bound), 3),
    )


def _messages(after: ServerCounts | None, before: ServerCounts | None, pods: int) -> tuple[float | None, float | None]:
    if after is None or before is None:
        return None, None
    counts = (after.in_msgs - before.in_msgs, after.out_msgs - before.out_msgs)
    to_server, from_server = (round(_each(count, pods), 3) for count in counts)
    return to_server, from_server


def _each(amount: float, pods: int) -> float:
    return amount / pods if pods else 0.0


def _counted(found: Measured, name: str) -> float:
    """What was added to a counter."""
    after, before = found.after.told.counters, found.before.told.counters
    return after.get(name, 0.0) - before.get(name, 0.0)
