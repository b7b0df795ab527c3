"""The history of measurements as a picture: a column of panels for each machine, an entry a step from left to
right.

Above what was measured, from zero; below a strip for each count, whose own range fills it: there every step
is a change of the program. Needs matplotlib, which the extra `plots` brings.
"""

# pyright: reportUnknownMemberType=false
# (matplotlib says of its functions' further options no types)

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from podyard.bench import comparing
from podyard.bench.performance import Entry

WIDTH_IN: Final = 8.0
"""Inches of a machine's column."""
PANEL_IN: Final = 2.4
"""Inches of a panel's height ..."""
STRIP_IN: Final = 0.6
"""... and of a strip's."""
HEADROOM: Final = 1.05
DPI: Final = 110
MOST_LABELS: Final = 24
"""Commits named below a column; of more, every second, third ... is."""
LEAST_RANGE: Final = 0.02
"""Share of a count that a strip shows at least, so that slack does not look like a leap."""
COUNTS: Final = {
    "stored": "messages stored, per pod",
    "from_server": "messages delivered, per pod",
    "objects": "objects decoded, per pod",
    "effects": "effects of cores, per pod",
    "rows": "rows asked, per pod",
    "calls": "Python calls, seen cycles",
    "rows_again": "rows asked, seen cycles",
}
"""By topic; the sum of its parts is drawn."""


def draw(entries: Sequence[Entry], file: Path) -> None:
    """All machines, the one that was used last at the right.

    :param file: .svg or .png
    :raises OSError: if it cannot be written
    """
    machines = comparing.by_hardware(entries)
    counts = [topic for topic in COUNTS if topic in comparing.topics(entries)]
    heights = [PANEL_IN] * len(PANELS) + [STRIP_IN] * len(counts)
    figure = Figure(figsize=(WIDTH_IN * len(machines), sum(heights) + 1), layout="constrained")
    axes = figure.subplots(len(heights), len(machines), squeeze=False, sharex="col", height_ratios=heights)
    for column, (hardware, found) in enumerate(machines.items()):
        column_axes: list[Axes] = [row[column] for row in axes]
        column_axes[0].set_title(hardware, loc="left", fontweight="bold")
        for place, panel in zip(column_axes, PANELS, strict=False):
            panel(place, found)
            _begin_at_zero(place)
        for place, topic in zip(column_axes[len(PANELS) :], counts, strict=True):
            _strip(place, found, topic)
        _name_steps(column_axes[-1], found)
    figure.savefig(file, dpi=DPI)


def _rates(axes: Axes, entries: Sequence[Entry]) -> None:
    axes.plot([entry.throughput.pods_per_second for entry in entries], marker="o", color="black")
    axes.set_ylabel("pods/s")


def _cpu(axes: Axes, entries: Sequence[Entry]) -> None:
    """Stacked: the top is what a pod costs in all. The dearest process lies at the bottom."""
    last = entries[-1].throughput.cpu_us_per_pod
    names = {name for entry in entries for name in entry.throughput.cpu_us_per_pod}
    below = [0.0] * len(entries)
    for name in sorted(names, key=lambda name: -last.get(name, 0.0)):
        parts = [entry.throughput.cpu_us_per_pod.get(name, 0.0) for entry in entries]
        axes.bar(range(len(entries)), parts, bottom=below, label=name, width=0.7)
        below = [low + part for low, part in zip(below, parts, strict=True)]
    axes.set_ylabel("CPU, µs a pod")
    _explain(axes, upwards=True)


def _cycles(axes: Axes, entries: Sequence[Entry]) -> None:
    for kind in entries[-1].cycle.seen_us:
        axes.plot(_figures([entry.cycle.seen_us for entry in entries], kind), marker="o", label=kind)
    axes.set_ylabel("seen cycle, µs")
    _explain(axes)


PANELS: Final = (_rates, _cpu, _cycles)


def _strip(axes: Axes, entries: Sequence[Entry], topic: str) -> None:
    """One count, its last value in words."""
    found = [comparing.counts_of(entry, topic) for entry in entries]
    sums = [sum(parts.values()) if parts else None for parts in found]
    known = [one for one in sums if one is not None]
    axes.set_yticks([])
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    text = COUNTS[topic]
    if known:
        axes.plot(_gaps(sums), marker=".", color="black", drawstyle="steps-mid")
        spare = max((max(known) - min(known)) * 0.2, max(known) * LEAST_RANGE, sys.float_info.min)
        axes.set_ylim(min(known) - spare, max(known) + spare)
        text = f"{known[-1]:,.5g}  {text}"
    axes.text(1.01, 0.5, text, transform=axes.transAxes, va="center", fontsize="small")


def _begin_at_zero(axes: Axes) -> None:
    axes.set_ylim(0, axes.get_ylim()[1] * HEADROOM)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _explain(axes: Axes, *, upwards: bool = False) -> None:
    """The legend beside the panel; `upwards`: in the order of what is stacked."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        options: dict[str, Any] = {
            "loc": "upper left",
            "bbox_to_anchor": (1.0, 1.0),
            "frameon": False,
            "fontsize": "small",
        }
        axes.legend(handles, labels, reverse=upwards, **options)


def _name_steps(axes: Axes, entries: Sequence[Entry]) -> None:
    step = -(-len(entries) // MOST_LABELS)
    places = range(0, len(entries), step)
    labels = [f"{entries[place].date[:10]}\n{entries[place].label}" for place in places]
    axes.set_xticks(list(places), labels, rotation=45, ha="right", fontsize="small")


def _figures(found: Sequence[Mapping[str, float]], name: str) -> list[float]:
    return _gaps([one.get(name) for one in found])


def _gaps(values: Sequence[float | None]) -> list[float]:
    """What is not known leaves a gap in the line."""
    return [float("nan") if value is None else value for value in values]
