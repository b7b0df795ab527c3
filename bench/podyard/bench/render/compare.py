"""A comparison with the reference as a table, 80 columns wide."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.bench.compare import summary
from podyard.bench.compare.figures import Run
from podyard.bench.compare.sides import PODYARD, REFERENCE, SIDES
from podyard.bench.compare.summary import Medians, Summary
from podyard.cli.render import tables

UNKNOWN: Final = "-"
MARKS: Final = {
    "w": "w: pods by time from first create to last binding; under 5 s, too few samples",
    "c": "c: the file paces the pods: ratio and goal are of CPU a pod",
    "a": "a: pods come at the reference's rate: ratio and goal are of an attempt's mean time",
}
"""What a ratio is of, where it is not of pods a second."""
MUCH_CORES: Final = 0.1
"""From so many on, that others have, figures are of something else."""


def report(rows: Sequence[Summary], runs: Sequence[Run]) -> RenderableType:
    """All rows, a line for each side that was compared with the reference."""
    if not rows:
        return Text("no runs yet")
    table = tables.figures("WORKLOAD", "PODS/S", "PODYARD", "CPU µs", "PODYARD", "RATIO", "GOAL")
    for row in rows:
        for side in SIDES[1:]:
            if side.name in row.sides or (side == PODYARD and not row.against):
                table.add_row(*_line(row, side.name))
    return Group(
        Text("kube-scheduler and Podyard, medians; CPU: of all processes, a pod", "bold green"),
        table,
        *(Text(line, "dim") for line in legend(rows, runs)),
    )


def legend(rows: Sequence[Summary], runs: Sequence[Run]) -> list[str]:
    """What is to be known of the table, and what was run on what."""
    marks = {found.mark for row in rows for side in row.against if (found := summary.compared(row, side))}
    lines = [line for mark, line in MARKS.items() if mark in marks]
    return [*lines, *checked(runs), *made_on(runs)]


def checked(runs: Sequence[Run]) -> list[str]:
    """What the checker says of Podyard's runs."""
    found = summary.judged(runs)
    if not found.runs:
        return []
    faults = f"{found.violated:,} faults" if found.violated else "no fault"
    return [f"the checker judged {found.judged:,} of {found.bound:,} bindings of {found.runs} runs: {faults}"]


def made_on(runs: Sequence[Run]) -> list[str]:
    """Programs, machine and load."""
    versions: dict[str, str] = {}
    for run in runs:
        versions |= run.versions
    commits = dict.fromkeys(label(run) for run in runs if run.side != REFERENCE.name)
    told = [f"{name} {version.removeprefix('v')}" for name, version in versions.items() if version]
    lines = [", ".join([*told, *(f"Podyard {commit}" for commit in commits)])]
    lines += dict.fromkeys(run.machine.hardware for run in runs)
    return lines + _beside(runs)


def _beside(runs: Sequence[Run]) -> list[str]:
    """What else the machine did."""
    if not runs:
        return []
    loads, others = [run.load for run in runs], [run.others_cores for run in runs]
    busy = f"{min(others):.2f} to {max(others):.2f} cores busy meanwhile"
    lines = [f"load before the runs {min(loads):.1f} to {max(loads):.1f}; others kept {busy}"]
    stolen = max(run.stolen_cores for run in runs)
    if stolen >= MUCH_CORES:
        lines.append(f"the machine's host took up to {stolen:.2f} cores of it")
    if max(others) >= MUCH_CORES:
        lines.append("the machine was not idle: these ratios say little")
    return lines


def label(run: Run) -> str:
    """The commit, with `*` if tracked files differed."""
    return f"{run.commit.hash or '?'}{'*' if run.commit.dirty else ''}"


def _line(row: Summary, side: str) -> tuple[str | Text, ...]:
    against = row.against.get(side)
    whole = against.whole if against else False
    found = summary.compared(row, side)
    mark = f" {found.mark}" if found and found.mark else ""
    shown = f"{found.ratio:.1f}{mark}" if found and found.ratio is not None else UNKNOWN
    style = "" if found is None else "green" if found.reached else "yellow"
    theirs, ours = row.sides.get(REFERENCE.name), row.sides.get(side)
    name = row.row if side == PODYARD.name else f"  {side.removeprefix('podyard-')}"
    return (
        name,
        rate(theirs, whole=whole),
        rate(ours, whole=whole),
        cpu(theirs),
        cpu(ours),
        Text(shown, style),
        f"{found.goal if found else row.goal:g}",
    )


def rate(found: Medians | None, *, whole: bool) -> str:
    """Pods a second."""
    if found is None:
        return UNKNOWN
    value = found.whole_rate if whole else found.pods_per_second
    return UNKNOWN if value is None else f"{value:,.0f}"


def cpu(found: Medians | None) -> str:
    """µs a pod."""
    return UNKNOWN if found is None else f"{found.cpu_us:,.0f}"
