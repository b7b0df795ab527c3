"""A run of `bench agent` as a table."""

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.bench.agent import AgentResult
from podyard.cli.render import tables
from podyard.node_agent.core.eviction.manager import MONITORING_INTERVAL_S

GOAL_MIB: Final = 600
GOAL_CORES: Final = 0.5


def report(result: AgentResult) -> RenderableType:
    """What the process cost, and whether it kept up."""
    head = Text.assemble(
        ("One agent", "bold green"),
        f" plays {result.nodes:,} nodes and {result.pods:,} pods; all of them ran after {result.begins_s:,.1f} s "
        f"({result.begins_cpu_s:,.1f} s of CPU).",
    )
    table = tables.figures("", "FOUND", "GOAL")
    for name, found, goal, unit in (
        ("memory, idle", result.pss_mib, GOAL_MIB, "MiB"),
        ("cores, idle", result.idle_cores, GOAL_CORES, ""),
        (f"memory, all looked at, {result.pressed:,} under pressure", result.pressed_pss_mib, GOAL_MIB, "MiB"),
        ("cores, the same", result.pressed_cores, 0.0, ""),
        ("CPU of a round over all", result.round_cpu_s, MONITORING_INTERVAL_S, "s"),
        ("all looked at, all pressure told after", result.notices_s, MONITORING_INTERVAL_S, "s"),
    ):
        style = "" if not goal else "green" if found <= goal else "yellow"
        told = f"{found:,.3f}" if "cores" in name else f"{found:,.1f}"
        table.add_row(name, Text(f"{told} {unit}".strip(), style), f"{goal:g} {unit}".strip() if goal else "")
    return Group(head, table)
