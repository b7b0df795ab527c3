"""A pod's traces as trees."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from podyard.cli.jaeger.model import ROOTLESS, Link, Span, Trace
from podyard.cli.jaeger.pods import PodTraces
from podyard.cli.render import times
from podyard.telemetry.conventions import NODE

REJECTED: Final = "podyard.rejected_by."
SERVICE: Final = "podyard-"
NAME_WIDTH: Final = 18
SHOWN: Final = (
    ("podyard.outcome", "{}"),
    (NODE, "on {}"),
    ("podyard.nodes.feasible", "{} fit"),
    ("podyard.event", "{}"),
    ("podyard.moved", "moved {}"),
    ("podyard.why", "“{}”"),
    ("podyard.eviction.reason", "{}"),
)
"""Attributes that a line of the tree shows, and how; -o json has all."""


def view(pod: PodTraces, link: Callable[[str], str]) -> RenderableType:
    """One tree a trace, oldest first. `link` makes a page's address of a trace id."""
    heading = Text(f"Pod {pod.namespace}/{pod.name}", style="bold")
    count = len(pod.traces)
    heading.append(f"  {count} trace{'' if count == 1 else 's'}", style="dim not bold")
    return Group(heading, *(_tree(trace, pod.linked, link) for trace in pod.traces))


def _tree(trace: Trace, linked: Mapping[Link, Span], link: Callable[[str], str]) -> Tree:
    start = trace.spans[0].start
    top = Text(f"{times.clock(start)}  ", style="dim")
    top.append(link(trace.trace_id), style="not dim underline cyan")
    tree = Tree(top, guide_style="dim")
    children = trace.children()
    for span in children.get(ROOTLESS, ()):
        _add(tree, span, children, linked, start)
    return tree


def _add(
    tree: Tree,
    span: Span,
    children: Mapping[str, Sequence[Span]],
    linked: Mapping[Link, Span],
    start: float,
    above: str = "",
) -> None:
    """Add a span and all below it. `above`: its parent's error, not to be said twice."""
    branch = tree.add(_line(span, start))
    if span.error not in (above, span.attributes.get("podyard.outcome"), ""):
        branch.add(Text(span.error, style="red"))
    for line in _below(span, linked):
        branch.add(line)
    for child in children.get(span.span_id, ()):
        _add(branch, child, children, linked, start, span.error)


def _line(span: Span, start: float) -> Text:
    text = Text(f"{span.name:<{NAME_WIDTH}} ", style="bold")
    text.append(f"{span.service.removeprefix(SERVICE):<11} ", style="not bold cyan")
    text.append(f"+{_took(span.start - start):<7} {_took(span.duration_s):<7} ", style="not bold dim")
    text.append(" ".join(_told(span)), style="not bold red" if span.error else "not bold")
    text.rstrip()
    return text


def _took(seconds: float) -> str:
    """With a tenth of a millisecond below ten: a cycle takes less than one."""
    return f"{seconds * 1000:.1f}ms" if 0 < seconds < 0.01 else times.duration(seconds)


def _told(span: Span) -> Iterator[str]:
    for key, words in SHOWN:
        if (value := span.attributes.get(key)) not in (None, ""):
            yield words.format(value)
    if rejectors := sorted(key.removeprefix(REJECTED) for key in span.attributes if key.startswith(REJECTED)):
        yield "rejected by " + ", ".join(rejectors)


def _below(span: Span, linked: Mapping[Link, Span]) -> Iterator[Text]:
    if woken_by := span.attributes.get("podyard.woken_by.event"):
        plugin = span.attributes.get("podyard.woken_by.plugin")
        reason = span.attributes.get("podyard.woken_by.reason")
        because = f": {reason}" if reason else ""
        by = f", {plugin}'s hint{because}" if plugin else ""
        yield Text(f"woken by {woken_by}{by}", style="green")
    for link in span.links:
        yield Text(f"came from {_named(link, linked.get(link))}", style="magenta")
    for event in span.events:
        yield Text(f"{event.name} {_event(event.attributes)}".strip(), style="dim")


def _named(link: Link, span: Span | None) -> str:
    if span is None:
        return f"a span that Jaeger does not have, trace {link.trace_id}"
    details = f": {told}" if (told := " ".join(_told(span))) else ""
    return f"{span.name} ({span.service.removeprefix(SERVICE)}{details}), trace {link.trace_id}"


def _event(attributes: Mapping[str, Any]) -> str:
    return " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in sorted(attributes.items()))
