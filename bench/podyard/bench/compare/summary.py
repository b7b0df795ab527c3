"""What the runs of a row come to: medians of each side, and their ratios. Pure."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

import msgspec

from podyard.bench.compare.figures import Figures, Run
from podyard.bench.compare.rows import CPU_GOAL, TIME_GOAL, Row
from podyard.bench.compare.sides import PACED, REFERENCE

SAME_PODS: Final = 0.01
"""Share by which the pods of both sides may differ before it is told: where objects change by the clock, some
of those are pods."""


class Medians(msgspec.Struct, frozen=True, kw_only=True):
    """Of one side's runs of a row, each figure by itself; `None`: not known."""

    runs: int
    pods: float
    seconds: float
    pods_per_second: float | None
    """By samples of a second; `None`: a run of it was too short for them to count."""
    whole_rate: float
    """From the first create to the last binding."""
    cpu_us: float
    cpu_us_per_pod: dict[str, float]
    memory_mib: float | None
    attempt_mean_ms: float | None
    attempt_p99_ms: float | None
    reaction_p50_ms: float | None
    reaction_p99_ms: float | None


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """A side against the reference."""

    rate: float
    """Pods a second, as a multiple of the reference's."""
    rates: list[float]
    """The same of each pair."""
    whole: bool
    """Whether the rates are those from the first create to the last binding, for want of samples."""
    cpu: float | None
    """The reference's CPU a pod, as a multiple of the side's."""
    memory: float | None
    """The side's memory, as a share of the reference's."""
    attempt: float | None
    """The reference's mean time of an attempt, as a multiple of the side's."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    row: str
    workload: str
    parameters: dict[str, int]
    goal: float
    """Of the ratio that `of_cpu` names."""
    of_cpu: bool
    """The file paces the pods: CPU is what is compared."""
    sides: dict[str, Medians]
    against: dict[str, Against]
    """By side, where it and the reference have runs."""
    notes: list[str]


def summarise(row: Row, runs: Sequence[Run]) -> Summary:
    """
    :param runs: of the row, of any sides
    """
    by_side: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.pair):
        by_side.setdefault(run.side, []).append(run)
    sides = {name: _medians([run.figures for run in found]) for name, found in by_side.items()}
    reference = by_side.get(REFERENCE.name, [])
    against = {
        name: _against(reference, found) for name, found in by_side.items() if reference and name != REFERENCE.name
    }
    noted: dict[str, list[str]] = {}
    for run in runs:
        for note in run.notes:
            noted.setdefault(note, []).append(run.side)
    notes = [f"{', '.join(dict.fromkeys(names))}: {note}" for note, names in noted.items()]
    notes += _pods_differ(sides)
    return Summary(
        row=row.name,
        workload=row.full_name,
        parameters=dict(row.more),
        goal=row.goal or CPU_GOAL,
        of_cpu=not row.goal,
        sides=sides,
        against=against,
        notes=notes,
    )


class Judged(NamedTuple):
    """What the checker says of all runs that it was asked of."""

    runs: int
    bound: int
    judged: int
    """Bindings that were judged by every rule."""
    violated: int


def judged(runs: Sequence[Run]) -> Judged:
    """Of Podyard's runs."""
    found = [run.said["streams"] for run in runs if run.said.get("streams")]
    return Judged(len(found), *(sum(one[name] for one in found) for name in ("bound", "judged", "violated")))


def _pods_differ(sides: Mapping[str, Medians]) -> list[str]:
    theirs = sides.get(REFERENCE.name)
    return [
        f"{name}: {found.pods:,.0f} pods were bound in the measured part, of the reference {theirs.pods:,.0f}"
        for name, found in sides.items()
        if theirs and abs(found.pods - theirs.pods) > SAME_PODS * theirs.pods
    ]


def _medians(found: Sequence[Figures]) -> Medians:
    processes = sorted({name for figures in found for name in figures.cpu_us_per_pod})
    rates = [figures.pods_per_second for figures in found if not figures.short and figures.pods_per_second is not None]
    return Medians(
        runs=len(found),
        pods=median(figures.pods for figures in found),
        seconds=median(figures.seconds for figures in found),
        pods_per_second=median(rates) if len(rates) == len(found) else None,
        whole_rate=median(figures.whole_rate for figures in found),
        cpu_us=median(figures.cpu_us for figures in found),
        cpu_us_per_pod={name: median(figures.cpu_us_per_pod.get(name, 0.0) for figures in found) for name in processes},
        memory_mib=_known(found, lambda figures: figures.memory_mib),
        attempt_mean_ms=_known(found, lambda figures: figures.attempt_mean_ms),
        attempt_p99_ms=_known(found, lambda figures: figures.attempt_p99_ms),
        reaction_p50_ms=_known(found, lambda figures: figures.reaction_p50_ms),
        reaction_p99_ms=_known(found, lambda figures: figures.reaction_p99_ms),
    )


def _known(found: Sequence[Figures], value: Callable[[Figures], float | None]) -> float | None:
    known = [one for one in map(value, found) if one is not None]
    return median(known) if known else None


def _against(reference: Sequence[Run], found: Sequence[Run]) -> Against:
    theirs, ours = (_medians([run.figures for run in runs]) for runs in (reference, found))
    whole = theirs.pods_per_second is None or ours.pods_per_second is None
    pairs = {run.pair: run.figures for run in reference}
    return Against(
        rate=_ratio(_rate(ours, whole=whole), _rate(theirs, whole=whole)) or 0.0,
        rates=[
            _ratio(_rate(run.figures, whole=whole), _rate(pairs[run.pair], whole=whole)) or 0.0
            for run in found
            if run.pair in pairs
        ],
        whole=whole,
        cpu=_ratio(theirs.cpu_us, ours.cpu_us),
        memory=_ratio(ours.memory_mib, theirs.memory_mib),
        attempt=_ratio(theirs.attempt_mean_ms, ours.attempt_mean_ms),
    )


def _rate(figures: Figures | Medians, *, whole: bool) -> float:
    return figures.whole_rate if whole else figures.pods_per_second or 0.0


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


class Compared(NamedTuple):
    """The ratio by which a side of a row is judged."""

    ratio: float | None
    """The reference's figure as a multiple of the side's, of rates the other way round."""
    goal: float
    mark: str
    """What is compared: "" pods a second; "w" those from the first create to the last binding; "c" CPU a pod;
    "a" the mean time of an attempt."""

    @property
    def reached(self) -> bool:
        """Whether it reaches the goal."""
        return self.ratio is not None and self.ratio >= self.goal


def compared(summary: Summary, side: str) -> Compared | None:
    """What of a side counts; `None`: it has not been compared."""
    against = summary.against.get(side)
    if against is None:
        return None
    if side == PACED.name:
        return Compared(against.attempt, TIME_GOAL, "a")
    if summary.of_cpu:
        return Compared(against.cpu, summary.goal, "c")
    return Compared(against.rate, summary.goal, "w" if against.whole else "")


def by_row(rows: Sequence[Row], runs: Mapping[str, Sequence[Run]]) -> list[Summary]:
    """Of all rows that have runs."""
    return [summarise(row, runs[row.name]) for row in rows if runs.get(row.name)]
