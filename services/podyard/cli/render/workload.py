"""How a workload's pods are, as text with colours."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from podyard.cli.render import moves, times
from podyard.telling.entries import Told
from podyard.telling.waiting import Cause
from podyard.telling.workload import WorkloadStory


def view(story: WorkloadStory) -> RenderableType:
    """Heading, what its pods wait for, why some are not made, and what the descheduler moved."""
    heading = Text(f"{story.kind} {story.namespace}/{story.name}", style="bold")
    heading.append(f"  {story.state}", style="not bold yellow" if story.waiting else "not bold green")
    lines: list[RenderableType] = [heading]
    if story.pods and story.waiting:
        lines.append(below(f"{story.running} run, {story.starting} start, {story.waiting} wait", 2, "dim"))
    for cause in story.causes:
        lines += list(_cause(cause))
    if story.warnings:
        lines.append(Text("what was said about it", style="bold"))
        lines += [_told(one) for one in story.warnings]
        lines += [below(f"what would help: {one}", 4, "green") for one in story.help]
    if story.moves:
        lines += list(moves.section(story.moves))
        lines += list(moves.opposed(story.opposed))
    return Group(*lines)


def below(text: str | Text, indent: int, style: str = "") -> Padding:
    """A paragraph that keeps its indent where a narrow terminal breaks it."""
    return Padding(Text(text, style=style) if isinstance(text, str) else text, (0, 0, 0, indent), expand=False)


def _cause(cause: Cause) -> Iterator[RenderableType]:
    head = Text(f"{cause.pods:,} for {cause.awaits}", style="bold")
    named = ", ".join(name.partition("/")[2] for name in cause.examples)
    more = ", ..." if cause.pods > len(cause.examples) else ""
    head.append(f"  {named}{more}", style="not bold dim")
    yield head
    if cause.plugin or cause.reason:
        text = Text(cause.plugin, style="cyan")
        text.append(f"{': ' if cause.plugin else ''}{cause.reason}", style="default")
        if cause.nodes:
            text.append(f"  ({cause.nodes:,} of {cause.nodes_total:,} nodes)", style="dim")
        yield below(text, 4)
    if cause.detail:
        nearest = f"nearest is {cause.nearest}: " if cause.nearest else ""
        yield below(f"{nearest}{cause.detail}", 4, "yellow")
    if cause.help:
        yield below(f"what would help: {cause.help}", 4, "green")


def _told(one: Told) -> Padding:
    text = Text(f"{times.clock(one.at):<12}  ", style="dim")
    text.append(one.reason, style="not dim bold")
    repeated = f"  ({one.times} times, last)" if one.times > 1 else ""
    text.append(f": {one.message}{repeated}", style="not dim not bold")
    return below(text, 0)
