"""A comparison with the reference as a picture: pods a second of both, and by which factor they differ. Needs
matplotlib, which the extra `plots` brings."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (matplotlib says of its functions' further options no types)

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from podyard.bench.compare import summary
from podyard.bench.compare.sides import PODYARD, REFERENCE
from podyard.bench.compare.summary import Summary

WIDTH_IN: Final = 11.0
ROW_IN: Final = 0.42
"""Inches of a row's height ..."""
HEAD_IN: Final = 1.2
"""... and of what stands above and below."""
DPI: Final = 110
SALT: Final = "podyard"
"""With it, and without a date, the same results make the same picture."""
COLOURS: Final = {REFERENCE.name: "0.6", PODYARD.name: "tab:blue"}
BAR: Final = 0.36


def draw(rows: Sequence[Summary], file: Path) -> None:
    """Rows that have been compared, in their order from above.

    :param file: .svg or .png
    :raises OSError: if it cannot be written
    """
    shown = [row for row in rows if PODYARD.name in row.against]
    figure = Figure(figsize=(WIDTH_IN, HEAD_IN + ROW_IN * max(len(shown), 1)), layout="constrained")
    rates, ratios = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    _rates(rates, shown)
    _ratios(ratios, shown)
    rates.set_yticks(range(len(shown)), [row.row for row in shown])
    rates.invert_yaxis()
    with rc_context({"svg.hashsalt": SALT}):
        figure.savefig(file, dpi=DPI, metadata={"Date": None} if file.suffix == ".svg" else None)


def _rates(axes: Axes, rows: Sequence[Summary]) -> None:
    """Pods a second of both."""
    for place, side in ((-BAR / 2, REFERENCE), (BAR / 2, PODYARD)):
        figures = [_rate(row, side.name) for row in rows]
        axes.barh([at + place for at in range(len(rows))], figures, BAR, color=COLOURS[side.name], label=side.title)
        for at, figure in enumerate(figures):
            axes.annotate(
                f"{figure:,.0f}",
                (figure, at + place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
    axes.set_xscale("log")
    axes.set_xlabel("pods a second (medians)")
    axes.margins(x=0.12)
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    _plain(axes)


def _ratios(axes: Axes, rows: Sequence[Summary]) -> None:
    """Every pair is a dot, the goal a line."""
    for at, row in enumerate(rows):
        against, found = row.against[PODYARD.name], summary.compared(row, PODYARD.name)
        ratio = (found.ratio if found else None) or 0.0
        axes.barh(at, ratio, BAR * 1.4, color=COLOURS[PODYARD.name], alpha=0.4 if row.of_cpu else 0.8)
        if not row.of_cpu:
            axes.plot(against.rates, [at] * len(against.rates), ".", color="black", markersize=4)
        axes.plot([row.goal, row.goal], [at - BAR, at + BAR], color="tab:red", linewidth=1.6)
    axes.set_xlabel("ratio (pale: of CPU a pod); red: the goal")
    axes.set_xlim(left=0)
    _plain(axes)


def _rate(row: Summary, side: str) -> float:
    found = row.sides[side]
    if row.against[PODYARD.name].whole or found.pods_per_second is None:
        return found.whole_rate
    return found.pods_per_second


def _plain(axes: Axes) -> None:
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
