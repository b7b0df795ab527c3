"""What one cycle of the descheduler did, or would do: as a value, and as text that fits 80 columns."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from podyard.descheduler.core.cycle import Attempt, CycleRecord, Step
from podyard.descheduler.core.framework import Answer
from podyard.descheduler.core.spread import Share

INDENT: Final = (0, 0, 0, 4)


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """One pod that a plugin wanted to go."""

    namespace: str
    name: str
    uid: str
    from_node: str
    to_node: str
    """Where it is planned to go; empty: nowhere, or nothing comes in its place."""
    profile: str
    plugin: str
    reason: str
    against_the_plan: str = ""
    """Why it should have stayed."""
    stays: str = ""
    """Why it stays; empty: it goes."""
    kept_by: str = ""
    """Who has it stay: `failed` (its budget), `stays` (the plan), or the limit."""


class Percent(msgspec.Struct, frozen=True, kw_only=True):
    """How much of nodes is requested, in percent."""

    least: float
    mean: float
    most: float
    deviation: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One cycle."""

    dry_run: bool
    plan: str
    nodes: int
    moved: tuple[Pod, ...]
    stays: tuple[Pod, ...]
    before: dict[str, Percent]
    after: dict[str, Percent]
    """As planned."""
    skipped: str = ""
    ended: str = ""
    errors: dict[str, str] = {}
    """Why plugins could not do their work, by profile/plugin."""


def outcome(record: CycleRecord, *, dry_run: bool, plan: str) -> Outcome:
    """The record of a cycle as people are told it."""
    pods = [_pod(step, attempt) for step in record.steps for attempt in step.attempts]
    return Outcome(
        dry_run=dry_run,
        plan=plan,
        nodes=record.nodes,
        moved=tuple(one for one in pods if not one.stays),
        stays=tuple(one for one in pods if one.stays),
        before={name: _percent(one) for name, one in record.before.items()},
        after={name: _percent(one) for name, one in record.after.items()},
        skipped=record.skipped,
        ended=record.ended,
        errors={f"{step.profile}/{step.plugin}": step.error for step in record.steps if step.error},
    )


def _pod(step: Step, attempt: Attempt) -> Pod:
    goes = attempt.answer is Answer.EVICTED
    return Pod(
        namespace=attempt.namespace,
        name=attempt.name,
        uid=attempt.uid,
        from_node=attempt.node,
        to_node=attempt.planned_node,
        profile=step.profile,
        plugin=step.plugin,
        reason=attempt.reason,
        against_the_plan=attempt.plan_problem,
        stays=attempt.problem,
        kept_by="" if goes else attempt.answer.value,
    )


def _percent(share: Share) -> Percent:
    return Percent(least=share.least, mean=share.mean, most=share.most, deviation=share.deviation)


def view(found: Outcome) -> RenderableType:
    """Who moves, who stays, and how evenly pods are spread."""
    parts: list[RenderableType] = [_heading(found)]
    if found.skipped:
        parts.append(Text(f"skipped: {found.skipped}", style="yellow"))
    if found.moved:
        parts += [Text(), *_pods(found.moved, "FROM", "TO")]
    if found.stays:
        parts += [Text(), *_pods(found.stays, "STAYS ON", "")]
    parts += [Text(f"{plugin} failed: {error}", style="red") for plugin, error in found.errors.items()]
    if found.ended:
        parts.append(Text(f"the cycle went no further: {found.ended}", style="red"))
    if found.before:
        parts += [Text(), _spread(found)]
    return Group(*parts)


def _heading(found: Outcome) -> Text:
    moved, stays = len(found.moved), len(found.stays)
    text = Text()
    done = "would move (dry run)" if found.dry_run else "moved"
    text.append(f"{_count(moved)} {done}", style="bold green" if moved else "bold")
    text.append(f", {_count(stays)} {'stays' if stays == 1 else 'stay'}" if stays else "")
    text.append(f"; {found.nodes} nodes, plan: {found.plan}", style="dim")
    return text


def _count(pods: int) -> str:
    return f"{pods} pod" if pods == 1 else f"{pods} pods"


def _pods(pods: Iterable[Pod], *columns: str) -> Iterator[RenderableType]:
    """Two lines a pod, and one more for what the plan says against it."""
    pods = tuple(pods)
    widths = [max(len("POD"), *(len(f"{one.namespace}/{one.name}") for one in pods))]
    widths.append(max(len(columns[0]), *(len(one.from_node) for one in pods)))
    head = f"{'POD':<{widths[0]}}  {columns[0]:<{widths[1]}}  {columns[1]}"
    yield Text(head.rstrip(), style="bold")
    for one in pods:
        line = Text(f"{one.namespace}/{one.name:<{widths[0] - len(one.namespace) - 1}}", style="bold")
        line.append(f"  {one.from_node}", style="not bold")
        if not one.stays:
            space = " " * (widths[1] - len(one.from_node) + 2)
            line.append(f"{space}{one.to_node or '-'}", style="not bold green")
        yield line
        yield Padding(
            Text(f"{one.profile}/{one.plugin}: {one.reason or one.plugin}", style="dim"), INDENT, expand=False
        )
        if one.stays:
            yield Padding(Text(f"stays: {one.stays}", style="yellow"), INDENT, expand=False)
        if one.against_the_plan:
            yield Padding(Text(f"against the plan: {one.against_the_plan}", style="yellow"), INDENT, expand=False)


def _spread(found: Outcome) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("REQUESTED OF NODES")
    for column in ("LEAST", "MEAN", "MOST", "DEVIATION"):
        table.add_column(column, justify="right")
    for name, before in found.before.items():
        for when, one in (("before", before), ("as planned", found.after[name])):
            amounts = (one.least, one.mean, one.most)
            table.add_row(f"{name}, {when}", *(f"{amount:.1f} %" for amount in amounts), f"{one.deviation:.1f}")
    return table
