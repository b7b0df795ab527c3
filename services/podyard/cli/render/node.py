"""A node and what is on it, as text with colours."""

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.cli.render import tables
from podyard.cli.render.workload import below
from podyard.telling.node_story import KeptOff, NodeStory

MOST_PODS: Final = 20
"""Pods that are shown unless all are asked for."""
LEAST_REQUESTS: Final = 24
"""Columns for what a pod requests."""
_ROOM: Final = ("RESOURCE", "REQUESTED", "ALLOCATABLE", "SHARE")
_PODS: Final = ("NAMESPACE", "NAME", "STATUS", "PRIORITY", "REQUESTS")


def view(story: NodeStory, width: int, *, every: bool = False) -> RenderableType:
    """Heading, how full it is, its pods, and why those that wait do not go there.

    :param width: columns of the terminal
    :param every: all pods, however many there are
    """
    heading = Text(f"Node {story.name}", style="bold")
    heading.append(f"  {story.state}", style="not bold green" if story.state == "Ready" else "not bold yellow")
    heading.append(f", {_count(len(story.pods), 'pod')}", style="not bold")
    lines: list[RenderableType] = [heading]
    if story.taints:
        lines.append(below(f"taints {', '.join(story.taints)}", 2, "yellow"))
    rows = [[one.resource, one.requested, one.allocatable, _share(one.percent)] for one in story.room]
    if rows:
        lines.append(tables.table(_ROOM, rows))
    if story.pods:
        lines += list(_pods(story, width, every=every))
    if story.nominated:
        lines.append(below(f"room is kept for {', '.join(story.nominated)}", 0, "yellow"))
    lines += list(_waiting(story))
    return Group(*lines)


def _share(percent: int | None) -> str:
    return "" if percent is None else f"{percent}%"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _pods(story: NodeStory, width: int, *, every: bool) -> Iterator[RenderableType]:
    yield Text("\npods on it", style="bold")
    shown = story.pods if every else story.pods[:MOST_PODS]
    rows = [[one.namespace, one.name, one.status, str(one.priority), one.requests or "nothing"] for one in shown]
    less = [_PODS.index("PRIORITY"), _PODS.index("NAMESPACE")]
    fitted = tables.fitted(_PODS, rows, width, less=less, name=_PODS.index("NAME"), least=LEAST_REQUESTS)
    yield tables.table(fitted.headers, fitted.rows)
    if len(shown) < len(story.pods):
        yield Text(f"... and {len(story.pods) - len(shown):,} more, which request less cpu: --all", style="dim")


def _waiting(story: NodeStory) -> Iterator[RenderableType]:
    if not story.waiting:
        yield Text("\nno pod waits", style="dim")
        return
    some = f"; the {story.looked_at:,} most important of them" if story.looked_at < story.waiting else ""
    yield Text(
        f"\nwhy {_count(story.waiting, 'waiting pod')} {'does' if story.waiting == 1 else 'do'} not go there{some}",
        style="bold",
    )
    for one in story.kept_off:
        yield below(_kept_off(one), 2)


def _kept_off(one: KeptOff) -> Text:
    text = Text(f"{one.pods:,}  ", style="bold")
    text.append(one.why, style="not bold")
    more = ", ..." if one.pods > len(one.examples) else ""
    text.append(f"  ({', '.join(one.examples)}{more})", style="not bold dim")
    return text
