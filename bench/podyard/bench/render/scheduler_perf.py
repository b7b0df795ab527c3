"""A run of the reference's benchmark, and several of them beside each other, as tables."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podyard.bench.collector import USUAL
from podyard.bench.scheduler_perf.config import Case
from podyard.bench.scheduler_perf.figures import Times
from podyard.bench.scheduler_perf.result import Result, Streams
from podyard.cli.render import tables

SHOWN: Final = 3
"""Faults; `-o json` has more."""


def report(result: Result) -> RenderableType:
    """One run."""
    average = result.pods_per_second_average
    head = Text.assemble(
        (result.case, "bold"),
        "\n",
        (f"{average:,.1f} pods/s" if average is not None else "no sample of a second", "bold green"),
        f"  {result.pods_bound:,} pods bound in {result.seconds:.2f} s: {result.pods_per_second_durable:,.1f} pods/s",
    )
    parts: list[RenderableType] = [head]
    if not result.long_enough:
        parts.append(Text("It lasted less than 5 s: its average is not to be compared. Ask for more pods.", "yellow"))
    if result.checked:
        parts.append(Text(f"Check: {result.checked}", "bold red"))
    if result.streams is not None:
        parts += _judged(result.streams)
    parts += [_costs(result), Text(_messages(result)), *_full(result)]
    if result.churn is not None:
        churn = result.churn
        parts.append(
            Text(
                f"churn: {churn.rounds} rounds, {churn.created} objects created, {churn.deleted} deleted; "
                f"paced by {churn.paced_by}"
            )
        )
    if result.pace:
        parts.append(Text(f"pods were created at {result.pace:g} a second"))
    parts.append(_times(result))
    return Group(*parts)


def _judged(found: Streams) -> list[RenderableType]:
    """What the checker says."""
    parts: list[RenderableType] = [
        Text(f"The checker found {found.violated:,} faults:", "bold red")
        if found.violated
        else Text(f"The checker judged {found.judged:,} of {found.bound:,} bindings by every rule: no fault.")
    ]
    parts += [Text(f"  {text}", "red") for text in found.violations[:SHOWN]]
    parts += [Text(f"  not {count:,}: {reason}", "dim") for reason, count in found.unjudged.items()]
    return parts


def _costs(result: Result) -> Table:
    table = tables.figures("PROCESS", "CPU s", "µs/pod", "PSS MiB")
    for name, seconds in sorted(result.cpu_seconds.items(), key=lambda item: -item[1]):
        cost, size = result.cpu_us_per_pod_by_process[name], result.pss_mib_by_process.get(name, 0.0)
        table.add_row(name, f"{seconds:.2f}", f"{cost:.0f}", f"{size:.0f}")
    total = sum(result.cpu_seconds.values())
    table.add_row("all", f"{total:.2f}", f"{result.cpu_us_per_pod:.0f}", f"{result.pss_mib:.0f}*", style="bold")
    return table


def _full(result: Result) -> list[RenderableType]:
    """Which service is full at which rate."""
    if not result.full:
        return []
    rows = [
        (one.process, f"{one.instances}", f"{one.cpu_us_per_pod:.0f}", f"{one.pods_per_second:,.0f}", one.more_by)
        for one in result.full
    ]
    table = tables.table(("FULL FIRST", "NUMBER", "µs/pod", "PODS/S", "MORE BY"), rows)
    cores = f"The {result.machine.cores} cores of this machine are full at {result.machine_full:,.0f} pods/s."
    return [table, Text(cores)]


def by_schedulers(results: Sequence[Result]) -> RenderableType:
    """The same case with several numbers of schedulers."""
    table = tables.figures("CASE", "SCHEDULERS", "PODS/S", "µs/pod", "CONFLICTS", "FULL FIRST")
    for one in results:
        first = one.full[0] if one.full else None
        table.add_row(
            one.case,
            f"{one.schedulers}",
            f"{one.rate:,.0f}",
            f"{one.cpu_us_per_pod:,.0f}",
            f"{one.conflicts / one.pods_bound:.1%}" if one.pods_bound else "-",
            f"{first.process}, {first.pods_per_second:,.0f}" if first else "-",
        )
    return table


def _messages(result: Result) -> str:
    return (
        f"* without the client. Messages per pod: {result.messages_stored_per_pod:.2f} stored,\n"
        f"{_known(result.messages_to_server_per_pod)} to the server, "
        f"{_known(result.messages_from_server_per_pod)} from it; "
        f"{result.commits} commits, {result.conflicts} conflicts, {result.released} pods ended.\n"
        f"Traces: {_share(result.tracing)} kept, {result.spans_sent_per_pod:.2f} spans per pod sent, "
        f"{result.spans_lost_per_pod:.2f} lost"
    )


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.0%}"


def _known(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _times(result: Result) -> Table:
    table = tables.figures("MILLISECONDS", "MEAN", "50 %", "99 %", "COUNT")
    rows: tuple[tuple[str, Times | None], ...] = (
        ("attempt", result.attempt),
        ("end to end", result.end_to_end),
        ("event to last binding", result.reaction),
    )
    for name, times in rows:
        if times is not None:
            table.add_row(
                name, f"{times.mean_ms:.2f}", f"{times.p50_ms:.2f}", f"{times.p99_ms:.2f}", f"{times.count:,}"
            )
    return table


def listed(cases: Sequence[Case], why_not: dict[str, str]) -> RenderableType:
    """Cases and workloads of a file; those that cannot be run are dim, with the reason."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("CASE/WORKLOAD", overflow="fold")
    table.add_column("", overflow="fold")
    for case in cases:
        for workload in case.workloads:
            name = f"{case.name}/{workload.name}"
            refused = why_not.get(name, "")
            table.add_row(name, refused, style="dim" if refused else None)
    return table


def comparison(results: Sequence[tuple[str, Result]]) -> RenderableType:
    """Runs beside each other, by case, with the file that each is kept in."""
    table = tables.figures("CASE", "PODS/S", "DURABLE", "BOUND", "µs/pod", "PSS", "99 % ms")
    for name, result in sorted(results, key=lambda item: (item[1].case, item[1].at)):
        average = result.pods_per_second_average
        table.add_row(
            f"{result.case}\n  {name}: {result.stack}{_form(result)}",
            "-" if average is None else f"{average:,.1f}{'' if result.long_enough else '!'}",
            f"{result.pods_per_second_durable:,.1f}",
            f"{result.pods_bound:,}",
            f"{result.cpu_us_per_pod:,.0f}",
            f"{result.pss_mib:,.0f}",
            "-" if result.attempt is None else f"{result.attempt.p99_ms:.1f}",
        )
    short = any(not result.long_enough for _, result in results)
    return Group(table, Text("! lasted less than 5 s", "dim")) if short else table


def _form(result: Result) -> str:
    """How a run differs from the usual one."""
    several = f", {result.schedulers} schedulers" if result.schedulers > 1 else ""
    traced = f", {result.tracing:.0%} traced" if result.tracing not in (None, USUAL) else ""
    paced = f", {result.pace:g} pods/s created" if result.pace else ""
    return f"{', fsync' if result.synchronous else ''}{traced}{several}{paced}"
