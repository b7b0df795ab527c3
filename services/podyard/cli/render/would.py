"""What an event would do to a pod, as text with colours."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.cli.render.hints import whose
from podyard.proto.queue_api import WouldReply, WouldVerdict


def view(pod: str, reply: WouldReply) -> RenderableType:
    """Where the pod is and who rejected it, then a verdict an action with every hint's answer."""
    heading = Text(f"Pod {pod}", style="bold")
    heading.append(f"  {reply.pool}", style="yellow")
    rejectors = ", ".join((*reply.unschedulable_plugins, *(f"{plugin} (pending)" for plugin in reply.pending_plugins)))
    if rejectors:
        heading.append(f"  rejected by {rejectors}", style="not bold")
    return Group(heading, *(line for verdict in reply.verdicts for line in _lines(verdict)))


def _lines(verdict: WouldVerdict) -> Iterator[Text]:
    said = Text(f"{verdict.event} ")
    if verdict.moves:
        said.append(f"would wake it: to {verdict.to}", style="green")
    else:
        said.append("would not wake it", style="red")
    if verdict.note:
        said.append(f", {verdict.note}", style="dim")
    yield said
    for hint in verdict.hints:
        line = Text(f"  {whose(hint)} ")
        line.append(hint.answer, style="green" if hint.answer != "QueueSkip" else "red")
        line.append(f": {hint.reason}")
        yield line
