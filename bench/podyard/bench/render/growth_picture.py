"""Memory of every process over the changes of a run. Needs matplotlib, which the extra `plots` brings."""

# pyright: reportUnknownMemberType=false
# (matplotlib says of its functions' further options no types)

from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from podyard.bench.growth import GrowthResult

SIZE_IN: Final = (9.0, 5.5)
DPI: Final = 110


def draw(run: GrowthResult, file: Path) -> None:
    """One line a process, with its growth over the second half, which is shaded.

    :param file: .svg or .png
    :raises OSError: if it cannot be written
    """
    figure = Figure(figsize=SIZE_IN, layout="constrained")
    axes = figure.subplots()
    changes = [sample.changes / 1000 for sample in run.samples]
    last = run.samples[-1].memory_mb
    for name in sorted(last, key=lambda name: -last[name]):
        label = f"{name}: {run.slopes_mb[name]:+.2f}"
        axes.plot(changes, [sample.memory_mb[name] for sample in run.samples], label=label, linewidth=1.2)
    axes.axvspan(changes[-1] / 2, changes[-1], color="black", alpha=0.04)
    axes.set_xlim(0, changes[-1])
    axes.set_ylim(0, axes.get_ylim()[1])
    axes.set_xlabel(
        f"thousand changes, {run.changes_per_second:,.0f} a second; {run.nodes} nodes, {run.living_pods:,} pods at a time, "
        f"retention divided by {run.retention_divided_by}"
    )
    axes.set_ylabel("resident memory, MB")
    axes.grid(axis="y", alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(title="MB per 100,000 changes, second half", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(file, dpi=DPI)
