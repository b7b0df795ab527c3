"""Pods a second by the number of schedulers, drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from podyard.bench.scheduler_perf.result import Result

WIDTH: Final = 9.0
HEIGHT: Final = 5.0


def draw(results: Sequence[Result], picture: Path) -> None:
    """A line for each case; dashed, where as many schedulers would be full that cost what they cost alone.

    :raises OSError: the file cannot be written
    """
    figure: Any = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.subplots()
    for case in dict.fromkeys(result.case for result in results):
        runs = sorted((one for one in results if one.case == case), key=lambda one: one.schedulers)
        [line] = axes.plot([one.schedulers for one in runs], [one.rate for one in runs], marker="o", label=case)
        alone = [one.pods_per_second / one.instances for one in runs[0].full if one.process == "scheduler"]
        if alone:
            axes.plot(
                [one.schedulers for one in runs],
                [one.schedulers * alone[0] for one in runs],
                linestyle="--",
                linewidth=1.0,
                color=line.get_color(),
                label="its schedulers full",
            )
    machine = results[0].machine
    axes.set_xlabel(f"schedulers; {machine.cores} cores, {machine.cpu}")
    axes.set_ylabel("pods/s")
    axes.set_xticks(sorted({one.schedulers for one in results}))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    figure.savefig(picture)
