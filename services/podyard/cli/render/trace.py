"""A pod's traces as trees."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from podyard.cli.jaeger.model import ROOTLESS, Link, Span, Trace
from podyard.cli.jaeger.pods import PodTraces
from podyard.cli.render import times
from podyard.telemetry.conventions import NAMESPACE, NODE, POD

REJECTED: Final = "podyard.rejected_by."
SERVICE: Final = "podyard-"
NAME_WIDTH: Final = 18
SHOWN: Final = (
    ("podyard.outcome", "{}"),
    ("podyard.bind.result", "{}"),
    ("podyard.bind.cause", "{}"),
    ("podyard.bind.won", "won by {}"),
    (NODE, "on {}"),
    ("podyard.nodes.feasible", "{} fit"),
    ("podyard.gated_by", "by {}"),
    ("podyard.preemption", "{}"),
    ("podyard.preemptor", "for {}"),
    ("podyard.event", "{}"),
    ("podyard.event.object", "of {}"),
    ("podyard.moved", "moved {}"),
    ("podyard.created", "made {}"),
    ("podyard.why", "“{}”"),
    ("podyard.eviction.reason", "{}"),
    ("podyard.phase", "{}"),
    ("podyard.reason", "{}"),
    ("podyard.release", "{}"),
    ("podyard.attempts.not_kept", "{} attempts before it have no trace"),
)
"""Attributes that a line of the tree shows, and how; -o json has all."""
WAITED: Final = (("podyard.parked_s", "parked {}"), ("podyard.backed_off_s", "backed off {}"))
NAMED: Final = 3
"""Objects of a change that a line names."""


def view(pod: PodTraces, link: Callable[[str], str]) -> RenderableType:
    """One tree a trace, oldest first. `link` makes a page's address of a trace id."""
    heading = Text(f"Pod {pod.namespace}/{pod.name}", style="bold")
    count = len(pod.traces)
    heading.append(f"  {count} trace{'' if count == 1 else 's'}", style="dim not bold")
    return Group(heading, *(_Tree(pod, trace).view(link) for trace in pod.traces))


class _Tree:
    """One trace of a pod."""

    def __init__(self, pod: PodTraces, trace: Trace) -> None:
        self._pod = pod
        self._trace = trace
        self._children = trace.children()

    def view(self, link: Callable[[str], str]) -> Tree:
        """From the top."""
        start = self._trace.spans[0].start
        top = Text(f"{times.clock(start)}  ", style="dim")
        top.append(link(self._trace.trace_id), style="not dim underline cyan")
        tree = Tree(top, guide_style="dim")
        for span in self._children.get(ROOTLESS, ()):
            self._add(tree, span, start)
        return tree

    def _add(self, tree: Tree, span: Span, start: float, above: str = "") -> None:
        """Add a span and all below it. `above`: its parent's message, not to be said twice."""
        branch = tree.add(_line(span, start, self._whose(span)))
        said = span.error or str(span.attributes.get("podyard.message", ""))
        if said not in (above, span.attributes.get("podyard.outcome"), ""):
            branch.add(Text(said, style="red" if span.error else "yellow"))
        followed = {Link(self._trace.trace_id, one) for one in self._trace.followed_by(span)}
        for line in _below(span, self._pod.linked, followed):
            branch.add(line)
        for child in self._children.get(span.span_id, ()):
            self._add(branch, child, start, said)

    def _whose(self, span: Span) -> str:
        """The pod that a span is about, if it is another than the one that was asked for."""
        namespace, name = span.attributes.get(NAMESPACE), span.attributes.get(POD)
        if not name or (namespace, name) == (self._pod.namespace, self._pod.name):
            return ""
        return str(name) if namespace == self._pod.namespace else f"{namespace}/{name}"


def _line(span: Span, start: float, whose: str) -> Text:
    text = Text(f"{span.name:<{NAME_WIDTH}} ", style="bold")
    text.append(f"{span.service.removeprefix(SERVICE):<11} ", style="not bold cyan")
    text.append(f"+{_took(span.start - start):<7} {_took(span.duration_s):<7} ", style="not bold dim")
    told = filter(None, (whose, *_told(span)))
    text.append(" ".join(told), style="not bold red" if span.error else "not bold")
    text.rstrip()
    return text


def _took(seconds: float) -> str:
    """With a tenth of a millisecond below ten: a cycle takes less than one."""
    return f"{seconds * 1000:.1f}ms" if 0 < seconds < 0.01 else times.duration(seconds)


def _told(span: Span) -> Iterator[str]:
    for key, words in SHOWN:
        if (value := span.attributes.get(key)) not in (None, ""):
            yield words.format(value)
    for key, words in WAITED:
        if seconds := span.attributes.get(key):
            yield words.format(times.duration(float(seconds)))
    if victims := _listed(span.attributes.get("podyard.victims")):
        yield "preempts " + ", ".join(victims)
    if objects := _listed(span.attributes.get("podyard.objects")):
        yield ", ".join(objects[:NAMED]) + (", ..." if len(objects) > NAMED else "")
    if rejectors := sorted(key.removeprefix(REJECTED) for key in span.attributes if key.startswith(REJECTED)):
        yield "rejected by " + ", ".join(rejectors)


def _listed(value: object) -> list[str]:
    """A list as Jaeger's JSON tells it: as a text that is JSON."""
    if isinstance(value, str):
        try:
            return msgspec.json.decode(value, type=list[str])
        except msgspec.MsgspecError:
            return [value]
    return [str(one) for one in value] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _below(span: Span, linked: Mapping[Link, Span], followed: Collection[Link]) -> Iterator[Text]:
    if woken_by := span.attributes.get("podyard.woken_by.event"):
        plugin = span.attributes.get("podyard.woken_by.plugin")
        reason = span.attributes.get("podyard.woken_by.reason")
        because = f": {reason}" if reason else ""
        by = f", {plugin}'s hint{because}" if plugin else ""
        of = f" of {about}" if (about := span.attributes.get("podyard.woken_by.object")) else ""
        yield Text(f"woken by {woken_by}{of}{by}", style="green")
    for link in span.links:
        if link in followed:
            continue  # it stands above
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
