"""A run of several schedulers, while it goes on and as tables afterwards."""

from collections.abc import Iterable
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.bench import contention
from podyard.bench.contention import ContentionResult, SchedulerFigures
from podyard.bench.render.progress import Bar
from podyard.cli.render import tables

GOAL: Final = 0.05
"""Conflicts per decision that Podyard promises to stay below."""
ALIKE: Final = 0.01
"""By how much the number of bound pods may differ from one scheduler's."""
NAMED: Final = 5
SCHEDULERS: Final = (
    "SCHEDULER",
    "STARTS",
    "DECISIONS",
    "SHARE",
    "CONFLICTS",
    "RATE",
    "RETRIED",
    "GIVEN UP",
    "CONFLICTS BY CAUSE",
)


def show(bar: Bar, now: contention.Progress) -> None:
    """The run has gone on."""
    told = f"{now.bound:,} bound, {now.parked:,} parked, {_share(now.conflicts, now.decisions)} conflicts"
    if now.killed:
        told += f", killed {' and '.join(now.killed)}"
    bar.show(now.bound + now.parked, now.pods, told)


def report(run: ContentionResult, alone: ContentionResult | None) -> RenderableType:
    """What came of it; `alone` is the run of one scheduler on the same pods."""
    parts: list[RenderableType] = [
        _head(run),
        _conflicts(run),
        tables.table(SCHEDULERS, [_row(one) for one in run.schedulers]),
        _cost(run),
        _left(run),
    ]
    if run.killed:
        parts.append(Text(f"Killed midway: {' and '.join(run.killed)}."))
    if alone is not None:
        parts.append(_compared(run, alone))
    return Group(*parts)


def _head(run: ContentionResult) -> Text:
    return Text.assemble(
        (f"{run.end.cpu_filled:.1%} of the CPU filled", "bold green"),
        f"  {run.end.bound:,} of {run.pods:,} pods ({run.pods_apart:,} keep apart) bound on {run.nodes:,} nodes in {run.seconds:.1f} s "
        f"({run.pods_per_second_average:,.0f} pods/s); all bound or parked after {run.seconds_to_rest:.1f} s.",
    )


def _conflicts(run: ContentionResult) -> Text:
    return Text.assemble(
        (f"{run.conflict_rate:.2%}", _judged(run.conflict_rate < GOAL)),
        f" of {run.decisions:,} decisions conflicted (goal: below {GOAL:.0%}): {_counts(run.conflicts_by_cause)}; {run.retries:,} retried.",
    )


def _cost(run: ContentionResult) -> Text:
    dearest = sorted(run.cpu_us_per_pod.items(), key=lambda item: -item[1])
    told = ", ".join(f"{name} {used:,.0f}" for name, used in dearest)
    return Text(f"{sum(run.cpu_us_per_pod.values()):,.0f} us of CPU a pod: {told}.")


def _row(one: SchedulerFigures) -> list[str | Text]:
    return [
        one.instance,
        str(one.starts),
        f"{one.decisions:,}",
        f"{one.share:.0%}",
        f"{one.conflicts:,}",
        Text(f"{one.conflict_rate:.1%}", _judged(one.conflict_rate < GOAL)),
        f"{one.retries:,}",
        f"{one.given_up:,}",
        _counts(one.conflicts_by_cause),
    ]


def _left(run: ContentionResult) -> Text:
    end = run.end
    faults = [
        f"{len(end.fitting)} of them fit a node: {_some(f'{pod} on {node}' for pod, node in end.fitting.items())}"
        if end.fitting
        else "",
        f"{len(run.unexplained)} are not parked with a reason: {_some(run.unexplained)}" if run.unexplained else "",
        f"{len(end.overloaded)} nodes are overloaded: {_some(end.overloaded)}" if end.overloaded else "",
        f"{len(end.too_close)} nodes break anti-affinity: {_some(end.too_close)}" if end.too_close else "",
    ]
    told = "; ".join(filter(None, faults))
    good = "none of them fits any node, each is parked with a reason."
    return Text.assemble(f"{end.unbound:,} pods are left: ", (told or good, _judged(not told)))


def _compared(run: ContentionResult, alone: ContentionResult) -> Text:
    apart = (run.end.bound - alone.end.bound) / max(1, alone.end.bound)
    return Text.assemble(
        "One scheduler ",
        f"bound {alone.end.bound:,} of the same pods ({alone.end.cpu_filled:.1%} of the CPU) in {alone.seconds:.1f} s: ",
        (f"{apart:+.2%}", _judged(abs(apart) <= ALIKE)),
        f" with several (goal: within {ALIKE:.0%}).",
    )


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{cause or 'unnamed'} {number:,}" for cause, number in counts.items()) or "-"


def _some(names: Iterable[str]) -> str:
    told = list(names)
    return ", ".join(told[:NAMED]) + (", ..." if len(told) > NAMED else "")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "no"


def _judged(good: bool) -> str:
    return "green" if good else "bold red"
