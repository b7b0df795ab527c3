"""Replays of a recording, drawn: use, fragments and waiting over the time of the recording. Needs matplotlib,
which the extra `plots` brings."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (matplotlib says of its functions' further options no types)

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from podyard.bench.render.replay import DAY_S, names
from podyard.bench.replay.result import Outcome, Replay

SIZE_IN: Final = (11.0, 7.5)
DPI: Final = 110
SALT: Final = "podyard"
"""With it, and without a date, the same results make the same picture."""
COLOURS: Final = ("tab:blue", "tab:orange", "tab:green", "tab:purple")
Style: TypeAlias = Literal["-", "--", ":"]
STYLES: Final[dict[str, Style]] = {"GPU": "-", "CPU": "--", "memory": ":"}
LEAST_MS: Final = 0.1
PER_CENT: Final = 100.0


def draw(outcome: Outcome, file: Path) -> None:
    """A panel for each, a colour for each run.

    :param file: .svg or .png
    :raises OSError: if it cannot be written
    """
    called = names(outcome)
    figure = Figure(figsize=SIZE_IN, layout="constrained")
    (used, fragments), (waiting, waits) = figure.subplots(2, 2)
    for axes in (used, fragments, waiting):
        axes.set_xlabel("day of the recording")
    _used(used, outcome.runs)
    _over_time(fragments, outcome.runs, "fragmented", PER_CENT)
    _title(fragments, "free GPUs that requests cannot use")
    fragments.set_ylabel("% of the free")
    fragments.set_ylim(0, PER_CENT)
    _over_time(waiting, outcome.runs, "waiting", 1.0)
    _title(waiting, "pods waiting")
    waiting.set_ylabel("pods")
    waiting.set_ylim(bottom=0)
    _waits(waits, outcome.runs)
    for axes in (used, fragments, waiting, waits):
        _plain(axes)
    lines = [Line2D([], [], color=colour) for colour in COLOURS[: len(called)]]
    trace = outcome.trace
    lives = "pods stay" if trace.pods_stay else "pods end as they did"
    figure.suptitle(
        f"{trace.format}: {trace.pods:,} pods, {trace.nodes:,} nodes, {trace.gpus:,} GPUs; "
        f"{trace.speedup:,.10g} times as fast; {lives}",
        fontsize="medium",
    )
    figure.legend(lines, called, frameon=False, loc="outside lower center", ncols=len(called))
    with rc_context({"svg.hashsalt": SALT}):
        figure.savefig(file, dpi=DPI, metadata={"Date": None} if file.suffix == ".svg" else None)


def _used(axes: Axes, runs: Sequence[Replay]) -> None:
    for name, style in STYLES.items():
        _over_time(axes, runs, name.lower(), PER_CENT, style)
    lines = [Line2D([], [], color="0.3", linestyle=style) for style in STYLES.values()]
    axes.legend(lines, list(STYLES), frameon=False, loc="upper left")
    _title(axes, "requested by bound pods")
    axes.set_ylabel("% of allocatable")
    axes.set_ylim(bottom=0)


def _over_time(axes: Axes, runs: Sequence[Replay], name: str, factor: float, style: Style = "-") -> None:
    for run, colour in zip(runs, COLOURS, strict=False):
        days = [point.recorded_s / DAY_S for point in run.curves.points]
        values = [getattr(point, name) * factor for point in run.curves.points]
        axes.step(days, values, where="post", color=colour, linestyle=style, linewidth=1.2)


def _waits(axes: Axes, runs: Sequence[Replay]) -> None:
    """How many of the bound pods had waited no longer."""
    for run, colour in zip(runs, COLOURS, strict=False):
        shown = [max(LEAST_MS, wait) for wait in run.wait_percentiles_ms]
        axes.step(shown, range(1, len(shown) + 1), where="post", color=colour, linewidth=1.2)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(_number))
    axes.xaxis.set_minor_formatter(NullFormatter())
    _title(axes, "waiting, from create to durable binding")
    axes.set_xlabel("at most so many ms of the replay")
    axes.set_ylabel("% of the bound pods")
    axes.set_ylim(0, PER_CENT)


def _number(value: float, _place: int | None) -> str:
    return f"{value:,.10g}"


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize="medium")


def _plain(axes: Axes) -> None:
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
