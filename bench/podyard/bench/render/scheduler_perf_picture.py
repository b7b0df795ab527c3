"""Throughput over time of runs of the reference's benchmark, drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from podyard.bench.scheduler_perf.result import Result

WIDTH: Final = 9.0
HEIGHT: Final = 4.5


def draw(results: Sequence[tuple[str, Result]], picture: Path) -> None:
    """Pods bound in each second, a line for each run.

    :raises OSError: the file cannot be written
    """
    figure: Any = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.subplots()
    for name, result in results:
        bound = result.bound_in_second
        axes.step(range(len(bound)), bound, where="post", label=f"{result.case} ({name})")
    axes.set_xlabel("seconds since the first create")
    axes.set_ylabel("pods bound in the second")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    figure.savefig(picture)
