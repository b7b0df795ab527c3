"""Replays of a recording, beside each other, as a table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podyard.bench.replay.curves import Level
from podyard.bench.replay.result import LATE_MS, Outcome, Replay, Setting
from podyard.bench.replay.waits import Waits
from podyard.cli.render import tables

WIDEST_NAME: Final = 18
DAY_S: Final = 86_400
SHORT_LIVES: Final = 10
"""Lifetimes below so many waiting times: pods end before anybody could have bound them."""
DEFAULTS: Final = "defaults"
NAMED: Final = 5
TENTHS_BELOW_MS: Final = 100.0


def names(outcome: Outcome) -> list[str]:
    """What the runs are called: their files, without the folder where that tells them apart."""
    stems = [Path(run.config).stem or DEFAULTS for run in outcome.runs]
    return stems if len(set(stems)) == len(stems) else [run.config or DEFAULTS for run in outcome.runs]


def report(outcome: Outcome) -> RenderableType:
    """All of it; a column for each run."""
    called = names(outcome)
    parts: list[RenderableType] = [_head(outcome.trace)]
    parts += [Text(line, "bold red") for line in faults(outcome)]
    parts += [Text(line, "yellow") for line in _cautions(outcome)]
    parts.append(_table(outcome, called))
    return Group(*parts)


def faults(outcome: Outcome) -> list[str]:
    """What makes the figures of a run others than those of the plan."""
    found: list[str] = []
    for name, run in zip(names(outcome), outcome.runs, strict=True):
        if not run.kept_up:
            found.append(
                f"{name}: THE MACHINE DID NOT KEEP UP. One in a hundred creations and deletions was "
                f"{run.late.p99_ms:,.0f} ms late or more ({LATE_MS:.0f} are allowed): these are figures of a slower "
                "replay. Ask for a smaller --speedup."
            )
        if run.curves.overloaded:
            found.append(f"{name}: nodes held more than they have: {', '.join(run.curves.overloaded[:NAMED])}")
    return found


def _head(trace: Setting) -> Text:
    then = trace.recorded_wait
    lives = "pods stay" if trace.pods_stay else "pods end as they did"
    thinned = f", one node in {trace.one_node_in} of each kind" if trace.one_node_in > 1 else ""
    return Text.assemble(
        (f"{trace.format}: {trace.pods:,} pods on {trace.nodes:,} nodes with {trace.gpus:,} GPUs", "bold"),
        f"\ndays {trace.begins_s / DAY_S:.1f} to {trace.ends_s / DAY_S:.1f}, {trace.speedup:,.10g} times as fast: "
        f"{trace.planned_s:,.0f} s; {lives}{thinned}",
        f"\nThen {trace.never_scheduled:,} were never scheduled",
        f"; the others waited {then.p50_ms / 1e3:,.0f} s (p50), {then.p99_ms / 1e3:,.0f} s (p99)" if then else "",
    )


def _cautions(outcome: Outcome) -> list[str]:
    trace = outcome.trace
    slowest = max((run.wait.p50_ms for run in outcome.runs if run.wait), default=0.0)
    if trace.pods_stay or trace.lifetime_p50_ms >= SHORT_LIVES * slowest:
        return []
    told = (
        f"Half of the pods are to live no longer than {trace.lifetime_p50_ms:,.1f} ms here, and to be bound takes "
        f"{slowest:,.1f} ms (p50): many end first. A smaller --speedup gives them the time."
    )
    return [told]


def _table(outcome: Outcome, called: Sequence[str]) -> Table:
    table = tables.figures("", *(tables.without_middle(name, WIDEST_NAME) for name in called))
    runs = outcome.runs
    for name, cells in _rows(outcome.trace, runs):
        if cells is None:
            table.add_row(Text(name, "bold"))
        else:
            table.add_row(Text(name), *cells)
    return table


def _rows(trace: Setting, runs: Sequence[Replay]) -> Iterator[tuple[str, list[str] | None]]:
    """Names and cells; a heading has none."""

    def each(name: str, cell: Callable[[Replay], str]) -> tuple[str, list[str]]:
        return f"  {name}", [cell(run) for run in runs]

    yield "PODS", None
    yield each("bound", lambda run: f"{run.bound:,}")
    yield each(f"  of {trace.never_scheduled:,} never scheduled then", lambda run: f"{run.never_scheduled_bound:,}")
    yield each("never bound", lambda run: f"{run.never_bound:,}")
    for why in _keys(run.never_bound_by for run in runs):
        yield each(f"  {why}", lambda run, why=why: f"{run.never_bound_by.get(why, 0):,}")
    yield "USED, %: MEAN / PEAK / END", None
    yield each("GPU", lambda run: _levels(run.curves.gpu))
    yield each("CPU", lambda run: _levels(run.curves.cpu))
    yield each("memory", lambda run: _levels(run.curves.memory))
    yield "FRAGMENTED, %: MEAN / PEAK / END", None
    yield each("of free GPUs", lambda run: _levels(run.curves.fragmented))
    yield each("of all GPUs", lambda run: _levels(run.curves.fragmented_of_all))
    yield each("pods that no device had room for", lambda run: f"{run.curves.split:,}")
    yield "WAITING, ms: p50 / p90 / p99", None
    yield each("all", lambda run: _wait(run.wait))
    for name in _keys(run.wait_by_qos for run in runs):
        yield each(name, lambda run, name=name: _wait(run.wait_by_qos.get(name)))
    for name in _keys(run.wait_by_gpu for run in runs):
        yield each(name, lambda run, name=name: _wait(run.wait_by_gpu.get(name)))
    yield each("mean of all", lambda run: "-" if run.wait is None else _ms(run.wait.mean_ms))
    yield each("pods waiting, most", lambda run: f"{run.curves.waiting.peak:,.0f}")
    yield "THE REPLAY", None
    yield each("took, s", lambda run: f"{run.seconds:,.1f}")
    yield each("late, ms: p50 / p99 / most", _late)
    yield each("CPU a pod, µs", lambda run: f"{run.cpu_us_per_pod:,.0f}")
    for name in _keys(run.cpu_us_per_pod_by_process for run in runs):
        yield each(f"  {name}", lambda run, name=name: f"{run.cpu_us_per_pod_by_process.get(name, 0):,.0f}")


def _keys(mappings: Iterator[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for one in mappings for name in one))


def _levels(level: Level) -> str:
    return f"{level.mean * 100:.1f} / {level.peak * 100:.1f} / {level.end * 100:.1f}"


def _wait(waits: Waits | None) -> str:
    return "-" if waits is None else " / ".join(_ms(one) for one in (waits.p50_ms, waits.p90_ms, waits.p99_ms))


def _late(run: Replay) -> str:
    return " / ".join(_ms(one) for one in (run.late.p50_ms, run.late.p99_ms, run.late.most_ms))


def _ms(value: float) -> str:
    return f"{value:,.1f}" if value < TENTHS_BELOW_MS else f"{value:,.0f}"
