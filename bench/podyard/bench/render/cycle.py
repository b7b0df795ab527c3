"""Costs of scheduling cycles as tables."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podyard.bench.cycles import CycleResult, SizeCost
from podyard.cli.render import tables

FIRST_GOAL_US = 1000
SEEN_GOAL_US = 100


def report(result: CycleResult) -> RenderableType:
    """Costs by kind of pod, then by size of the cluster."""
    head = Text.assemble(
        ("One cycle", "bold green"),
        f" for one pod against {result.nodes:,} nodes of three zones with {result.pods:,} placed pods, in µs (medians). "
        f"first: nothing is shared with an earlier pod (goal {FIRST_GOAL_US:,}); seen: its signature was seen, and the "
        f"pod before it assumed (goal {SEEN_GOAL_US:,}).",
    )
    parts: list[RenderableType] = [head, _kinds(result)]
    if len(result.curve) > 1:
        parts += [Text("By size of the cluster: first / seen", "bold"), _curve(result.curve)]
    return Group(*parts)


def _kinds(result: CycleResult) -> Table:
    table = tables.figures("POD", "FIRST", "SEEN", "ASSUME")
    for kind, cost in result.kinds.items():
        first = Text(f"{cost.first_us:,.0f}", "green" if cost.first_us < FIRST_GOAL_US else "yellow")
        seen = Text(f"{cost.seen_us:,.0f}", "green" if cost.seen_us < SEEN_GOAL_US else "yellow")
        table.add_row(kind, first, seen, f"{cost.assume_us:,.0f}")
    return table


def _curve(curve: tuple[SizeCost, ...]) -> Table:
    table = tables.figures("POD", *(f"{one.nodes:,} NODES" for one in curve))
    for kind in curve[0].kinds:
        costs = [one.kinds[kind] for one in curve]
        table.add_row(kind, *(f"{cost.first_us:,.0f} / {cost.seen_us:,.0f}" for cost in costs))
    return table
