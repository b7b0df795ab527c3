"""A comparison with the reference as a page, in Markdown."""

import textwrap
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Final

from podyard.bench.compare import summary
from podyard.bench.compare.figures import Run
from podyard.bench.compare.rows import MEMORY_GOAL, TIME_GOAL
from podyard.bench.compare.sides import PACED, PODYARD, REFERENCE, SIDES
from podyard.bench.compare.summary import Compared, Summary
from podyard.bench.render.compare import UNKNOWN, checked, cpu, made_on, rate

WIDEST: Final = 110
HEAD: Final = (
    "| workload | kube-scheduler, pods/s | Podyard, pods/s | ratio | by pair | goal | kube-scheduler, µs | Podyard, µs |",
    "|---|---|---|---|---|---|---|---|",
)
TITLE: Final = "# kube-scheduler's benchmark, on both sides"
INTRODUCTION: Final = """\
`make bench-compare` made this page. It builds kube-scheduler's own benchmark (test/integration/scheduler_perf of
Kubernetes) and etcd, and runs its workloads with kube-scheduler and with Podyard in turn, on one machine. Both read
the same files, which are those of the release. Where it says so, both get more pods than the file has, so that
Podyard's run lasts five seconds."""
COMPARED: Final = """\
Pods a second are those of the reference's definition: the mean of samples, one a second, the first dropped. A run of
less than five seconds has too few samples; there both sides are compared by pods divided by the time from the first
create to the last durable binding (*w*). CPU is user and system time of all processes in that time, a pod: of the
reference the benchmark's process, which is client, API server, controllers and scheduler, and etcd; of Podyard all
services, the NATS server and the client. Where the file itself paces the pods, ratio and goal are of CPU (*c*).
In the rows `paced` Podyard's pods are created at the rate that the reference reached, so that both do as much; ratio
and goal are of an attempt's mean time (*a*)."""
REACTIONS: Final = """\
From each thing that the file does (an update, a deletion, an op that creates) to the last binding before the next
one. The reference's times begin when a watch tells of it, Podyard's when the client asks for it. The goal is a
tenth."""
COSTS: Final = f"""\
The goals, for `basic`: {MEMORY_GOAL:g} of the reference's memory, and a tenth of its time for an attempt, in the mean
and at 99 %. What reaches its goal is bold. Where a scheduler is full, an attempt lasts as long as others are under
way: Podyard commits many at once, and so has many under way. `paced` is where both have as much to do."""
NOT_COMPARED: Final = (
    """The reference's client creates pods by an HTTP API with TLS, admission and validation. Podyard's client
    writes admitted pods into the stream, as its api does, without asking it. In the rows `api` it asks the api,
    over NATS without TLS, which admits and writes them; in the rows `all` there are all services besides, and
    virtual nodes that run the pods.""",
    """etcd calls fsync before it acknowledges. nats-server by default does not: it writes to the file system, and
    syncs every two minutes. The rows `synced` are with `sync_interval: always`.""",
    """Where other objects change by the clock, Podyard's interval is shorter by as much as the reference is
    slower, so that as many changes come for each pod.""",
    """The reference keeps no record of its decisions, and sends no traces; Podyard's records and metrics are on,
    and one of a hundred traces is sent to a collector. In the rows `traced` every one is.""",
    """Memory is Go's heap in use on the one side (the process, without etcd), on the other the PSS of all
    processes and the NATS server, without the client.""",
)


def page(rows: Sequence[Summary], runs: Sequence[Run], picture: Path | None) -> str:
    """
    :param picture: as the page links to it
    """
    parts = [TITLE, _filled(INTRODUCTION), *_made(runs), _filled(COMPARED)]
    if picture is not None:
        parts.append(f"![pods a second of kube-scheduler and Podyard, row by row]({picture})")
    parts += ["## Pods a second, and CPU", _table(rows)]
    notes = [_filled(f"`{row.row}`: {note}.", "- ") for row in rows for note in row.notes]
    parts += ["\n".join(notes)] if notes else []
    parts += [_filled(f"{line[0].upper()}{line[1:]}.") for line in checked(runs)]
    if _costs(rows):
        parts += ["## Memory, and how long an attempt takes", _filled(COSTS), _costs(rows)]
    if _reactions(rows):
        parts += ["## From an event to the last binding that it allows", _filled(REACTIONS), _reactions(rows)]
    parts += ["## The workloads", _workloads(rows)]
    parts += ["## What is not the same", "\n".join(_filled(line, "- ") for line in NOT_COMPARED)]
    return "\n\n".join(parts) + "\n"


def _made(runs: Sequence[Run]) -> list[str]:
    days = sorted({run.started[:10] for run in runs})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return [_filled(f"Measured on {when}: {'; '.join(made_on(runs))}.")] if days else []


def _table(rows: Sequence[Summary]) -> str:
    shown = [
        _line(row, side.name, found)
        for row in rows
        for side in SIDES[1:]
        if (found := summary.compared(row, side.name)) is not None
    ]
    return "\n".join((*HEAD, *shown))


def _line(row: Summary, side: str, found: Compared) -> str:
    against = row.against[side]
    theirs, ours = row.sides[REFERENCE.name], row.sides[side]
    mark = f" *{found.mark}*" if found.mark else ""
    shown = UNKNOWN if found.ratio is None else _marked(f"{found.ratio:.1f}", found.reached)
    cells = (
        _named(row, side),
        rate(theirs, whole=against.whole),
        rate(ours, whole=against.whole),
        shown + mark,
        ", ".join(f"{one:.1f}" for one in against.rates),
        f"{found.goal:g}",
        cpu(theirs),
        cpu(ours),
    )
    return f"| {' | '.join(cells)} |"


def _named(row: Summary, side: str) -> str:
    return row.row if side == PODYARD.name else f"{row.row}, {side.removeprefix('podyard-')}"


def _costs(rows: Sequence[Summary]) -> str:
    """Where both sides know of it."""
    lines = [
        "| workload | kube-scheduler: MiB; mean, 99 % of attempts, ms | Podyard | memory, share | attempt, ratios |",
        "|---|---|---|---|---|",
    ]
    head = len(lines)
    for row, side in product(rows, (PODYARD, PACED)):
        against = row.against.get(side.name)
        if against is None or against.memory is None:
            continue
        theirs, ours = row.sides[REFERENCE.name], row.sides[side.name]
        both = [
            "; ".join(
                (_number(found.memory_mib), f"{_number(found.attempt_mean_ms, 2)}, {_number(found.attempt_p99_ms, 2)}")
            )
            for found in (theirs, ours)
        ]
        memory = _marked(f"{against.memory:.2f}", against.memory <= MEMORY_GOAL)
        mean = _times(theirs.attempt_mean_ms, ours.attempt_mean_ms)
        longest = _times(theirs.attempt_p99_ms, ours.attempt_p99_ms)
        lines.append(f"| {_named(row, side.name)} | {both[0]} | {both[1]} | {memory} | {mean}, {longest} |")
    return "\n".join(lines) if len(lines) > head else ""


def _reactions(rows: Sequence[Summary]) -> str:
    """Where both sides know of it."""
    lines = [
        "| workload | kube-scheduler: 50 %, 99 %, ms | Podyard | ratio of the 99 % |",
        "|---|---|---|---|",
    ]
    head = len(lines)
    for row in rows:
        theirs, ours = row.sides.get(REFERENCE.name), row.sides.get(PODYARD.name)
        if theirs is None or ours is None or theirs.reaction_p99_ms is None or not ours.reaction_p99_ms:
            continue
        both = [f"{_number(one.reaction_p50_ms, 1)}, {_number(one.reaction_p99_ms, 1)}" for one in (theirs, ours)]
        ratio = _times(theirs.reaction_p99_ms, ours.reaction_p99_ms)
        lines.append(f"| {row.row} | {both[0]} | {both[1]} | {ratio} |")
    return "\n".join(lines) if len(lines) > head else ""


def _times(theirs: float | None, ours: float | None) -> str:
    """How many times as long the reference took."""
    return _marked(f"{theirs / ours:.1f}", theirs / ours >= TIME_GOAL) if theirs is not None and ours else UNKNOWN


def _marked(ratio: str, reached: bool) -> str:
    return f"**{ratio}**" if reached else ratio


def _number(value: float | None, digits: int = 0) -> str:
    return UNKNOWN if value is None else f"{value:,.{digits}f}"


def _workloads(rows: Sequence[Summary]) -> str:
    lines = ["| workload | as the benchmark names it | more than the file has | runs |", "|---|---|---|---|"]
    for row in rows:
        more = ", ".join(f"{name}: {value:,}" for name, value in row.parameters.items())
        most = max((found.runs for found in row.sides.values()), default=0)
        lines.append(f"| {row.row} | `{row.workload}` | {more} | {most} |")
    return "\n".join(lines)


def _filled(text: str, bullet: str = "") -> str:
    indent = " " * len(bullet)
    return textwrap.fill(
        " ".join(text.split()),
        WIDEST,
        initial_indent=bullet,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
