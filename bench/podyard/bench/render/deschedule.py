"""A run of `bench deschedule` as a table."""

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podyard.bench.deschedule import DescheduleResult
from podyard.cli.render import tables

GOAL_S: Final = 5.0
GOAL_MIB: Final = 1024


def report(result: DescheduleResult) -> RenderableType:
    """What the cycle cost, then each plugin's share of it."""
    head = Text.assemble(
        ("One cycle", "bold green"),
        f" over {result.nodes:,} nodes and {result.pods:,} pods, all plugins, nodeFit on: "
        f"{result.evicted:,} pods would go.",
    )
    return Group(head, _costs(result), Text(), _shares(result))


def _costs(result: DescheduleResult) -> Table:
    table = tables.figures("", "SECONDS", "GOAL")
    for name, seconds, goal in (
        ("from start to end", result.wall_s, f"{GOAL_S:g}"),
        ("CPU", result.cpu_s, ""),
        ("CPU, the next cycle", result.again_cpu_s, ""),
        ("longest without a pause", result.longest_step_s, ""),
        (f"CPU, a plan of {result.planned:,} moves more", result.plan_cpu_s, f"{GOAL_S:g}"),
    ):
        style = "" if not goal else "green" if seconds < GOAL_S else "yellow"
        table.add_row(name, Text(f"{seconds:,.2f}", style), goal)
    memory = Text(f"{result.memory_mib:,.0f} MiB", "green" if result.memory_mib < GOAL_MIB else "yellow")
    table.add_row("memory of this process", memory, f"{GOAL_MIB:,} MiB")
    return table


def _shares(result: DescheduleResult) -> Table:
    table = tables.figures("PLUGIN", "CPU SECONDS", "SHARE", "EVICTED")
    for one in result.shares:
        share = one.cpu_s / result.cpu_s if result.cpu_s else 0.0
        table.add_row(one.plugin, f"{one.cpu_s:,.3f}", f"{share:.0%}", f"{one.evicted:,}" if one.evicted else "-")
    return table
