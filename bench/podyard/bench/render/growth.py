"""A run of `bench growth`: while it goes on, and as a table."""

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.bench.growth import GrowthResult, Sample
from podyard.bench.render.progress import Bar
from podyard.cli.render import tables

GOAL_MB: Final = 1.0
"""Growth per 100,000 changes that Podyard promises to stay below."""
COLUMNS: Final = ("PROCESS", "FIRST MB", "MIDWAY MB", "LAST MB", "MOST MB", "MB PER 100,000 CHANGES")


def show(bar: Bar, sample: Sample, changes: int) -> None:
    """The run of so many changes has gone on."""
    told = ", ".join(f"{name} {size:.0f}" for name, size in sample.memory_mb.items())
    rate = sample.changes / max(sample.at_s, 1)
    bar.show(sample.changes, changes, f"{rate:,.0f}/s; MB: {told}")


def report(run: GrowthResult) -> RenderableType:
    """What came of it."""
    worst = max(run.slopes_mb.values())
    return Group(
        Text.assemble(
            (f"{worst:+.2f} MB per 100,000 changes", _judged(worst)),
            f" at most, over the second half (goal: below {GOAL_MB:g}).",
        ),
        Text(
            f"{run.changes:,} changes stored, {run.played:,} of them played by the benchmark, in {run.seconds:,.0f} s "
            f"({run.changes_per_second:,.0f} changes/s), "
            f"{run.nodes} nodes, {run.living_pods:,} pods at a time; retention divided by {run.retention_divided_by}."
        ),
        tables.table(COLUMNS, [_row(run, name) for name in run.slopes_mb]),
    )


def _row(run: GrowthResult, name: str) -> list[str | Text]:
    sizes = [sample.memory_mb[name] for sample in run.samples]
    slope = run.slopes_mb[name]
    midway = next(one.memory_mb[name] for one in run.samples if one.changes >= run.changes / 2)
    told = [f"{size:,.1f}" for size in (sizes[0], midway, sizes[-1], max(sizes))]
    return [name, *told, Text(f"{slope:+.2f}", _judged(slope))]


def _judged(slope: float) -> str:
    return "green" if slope < GOAL_MB else "bold red"
