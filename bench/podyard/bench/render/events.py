"""Costs of events as tables."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podyard.bench.events import CoreResult
from podyard.bench.storm import StormResult
from podyard.cli.render import tables

NONE_GOAL_US = 50
ONE_GOAL_US = 200
STORM_GOAL_MS = 50


def report(core: CoreResult, storm: StormResult) -> RenderableType:
    """Costs in the core by kind of event, then pops during the storm."""
    head = Text.assemble(
        ("One event", "bold green"),
        f" with {core.parked:,} parked pods, in µs of CPU time (medians); core: finding, asking and moving parked pods (goal "
        f"{NONE_GOAL_US} for an event that concerns none of them, {ONE_GOAL_US} for one). Pods are parked at "
        f"{core.parked_per_s:,} a second. One event that fits all: ",
        (f"{core.all_ms:,.0f} ms", "bold"),
        ".",
    )
    return Group(head, _kinds(core), _storm(storm))


def _kinds(core: CoreResult) -> Table:
    table = tables.figures("EVENT", "WAKES", "RECEIVE", "CLASSIFY", "CORE", "RECORD")
    for cost in core.costs:
        goal = ONE_GOAL_US if cost.wakes else NONE_GOAL_US
        table.add_row(
            cost.event,
            str(cost.wakes),
            f"{cost.receive_us:,.0f}",
            f"{cost.classify_us:,.0f}",
            Text(f"{cost.core_us:,.0f}", "green" if cost.core_us < goal else "yellow"),
            f"{cost.record_us:,.0f}",
        )
    return table


def _storm(storm: StormResult) -> RenderableType:
    good = storm.storm_pop_p99_ms - storm.idle_pop_p99_ms <= STORM_GOAL_MS
    cpu = ", ".join(f"{name} {cores:.2f}" for name, cores in sorted(storm.cpu_cores.items(), key=lambda item: -item[1]))
    return Text.assemble(
        ("Storm", "bold green"),
        f": {storm.updates_per_s:,.0f} node updates a second that fit none of {storm.parked:,} parked pods, through a queue service. "
        "A pop takes ",
        (f"{storm.storm_pop_p99_ms:.1f} ms", "green" if good else "yellow"),
        f" at the 99th percentile (median {storm.storm_pop_p50_ms:.1f}, longest {storm.storm_pop_max_ms:.1f}); in peace "
        f"{storm.idle_pop_p99_ms:.1f} (median {storm.idle_pop_p50_ms:.1f}); goal: at most {STORM_GOAL_MS} more. "
        f"The queue ended {storm.behind_ms:.0f} ms behind and moved {storm.moved} pods. Cores in use: {cpu}",
    )
