"""A run of `bench kube` as a table."""

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.bench.kube import PAGE, KubeResult
from podyard.cli.render import tables

GOAL_CORES: Final = 1.0
GOAL_LIST_S: Final = 0.5
GOAL_GROWTH: Final = 0.05
"""Of memory, from the first time that all pages were read to the last: what a page takes goes with it."""


def report(result: KubeResult) -> RenderableType:
    """What lists, watches and pages cost."""
    table = tables.figures("", "FOUND", "GOAL")
    told = f"{result.watchers:,} watchers of all pods, {result.changes_a_second:,.0f} changes a second"
    first, last = result.pages_mib[0], result.pages_mib[-1]
    for name, found, goal, unit in (
        (f"list of {result.pods:,} pods, first", result.list_first_s, GOAL_LIST_S, "s"),
        ("the same again", result.list_s, GOAL_LIST_S, "s"),
        ("the same as a table", result.table_s, GOAL_LIST_S, "s"),
        (told, result.watch_cores, GOAL_CORES, "cores"),
        ("all told after the last change", result.behind_ms / 1000, 0.0, "s"),
        (f"pages of {PAGE}, {result.many:,} pods in all", result.pages_s, 0.0, "s"),
        ("memory before", result.before_mib, 0.0, "MiB"),
        ("after all pages, once", first, 0.0, "MiB"),
        (f"after all pages, {len(result.pages_mib)} times", last, round(first * (1 + GOAL_GROWTH)), "MiB"),
    ):
        style = "" if not goal else "green" if found <= goal else "yellow"
        digits = 1 if unit == "MiB" else 3
        table.add_row(name, Text(f"{found:,.{digits}f} {unit}", style), f"{goal:g} {unit}" if goal else "")
    cpu = Text(
        f"CPU of the service: {result.list_cpu_s:.3f} s a list, {result.table_cpu_s:.3f} s a table; "
        f"watched for {result.watched_s:g} s."
    )
    return Group(Text("The Kubernetes API", "bold green"), table, cpu)
