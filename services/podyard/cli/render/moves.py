"""What the descheduler moved, as text with colours."""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from podyard.cli.render import times
from podyard.proto.moves import MoveRecord
from podyard.telling.moves import MoveStory, Opposed

INDENT: Final = "              "
STYLES: Final = {"running": "green", "back": "yellow", "pending": "red", "refused": "red", "moving": ""}


def view(story: MoveStory) -> RenderableType:
    """Heading, the moves in time order, and which plugins undo each other's."""
    text = Text(f"{story.kind} {story.namespace}/{story.name}", style="bold")
    refused = sum(one.outcome == "refused" for one in story.moves)
    moved = len(story.moves) - refused
    counts = f"{moved} {'move' if moved == 1 else 'moves'}" + (f", {refused} refused" if refused else "")
    text.append(f"  {counts}", style="not bold")
    lines = [text]
    for one in story.moves:
        lines += list(_move(one))
    lines += list(opposed(story.opposed))
    if not story.moves:
        lines.append(Text("  the descheduler has moved nothing of it in the last week", style="dim"))
    return Group(*lines)


def opposed(pairs: Iterable[Opposed]) -> Iterator[Text]:
    """Which plugins undo each other's moves."""
    for pair in pairs:
        told = f"two plugins undo each other's moves: {pair.plugin} took back what {pair.undoes} had moved"
        yield Text(f"{told}, {pair.times} times" if pair.times > 1 else told, style="bold yellow")


def section(moves: Iterable[MoveRecord]) -> Iterator[Text]:
    """The moves below a pod's story."""
    yield Text("Moves by the descheduler", style="bold")
    for one in moves:
        yield from _move(one)


def _move(move: MoveRecord) -> Iterator[Text]:
    stays = move.outcome == "refused"
    text = Text(f"{times.clock(move.at):<12}  ", style="dim")
    text.append(f"{move.pod}", style="not dim bold")
    text.append(f" stays on {move.from_node}" if stays else f" evicted from {move.from_node}", style="not dim")
    yield text
    yield Text(f"{INDENT}by {move.profile}/{move.plugin}: {move.reason}", style="dim")
    if move.planned_node:
        yield Text(f"{INDENT}{'would go' if stays else 'planned to go'} to {move.planned_node}", style="dim")
    if move.plan_problem:
        yield Text(f"{INDENT}against the plan: {move.plan_problem}", style="yellow")
    yield Text(f"{INDENT}{_outcome(move)}", style=STYLES[move.outcome])
    if move.undoes:
        yield Text(f"{INDENT}undoes the move of {move.undoes}", style="bold yellow")


def _outcome(move: MoveRecord) -> str:
    match move.outcome:
        case "refused":
            return f"refused: {move.problem}"
        case "running":
            return f"runs on {move.to_node} as {move.to_pod}"
        case "back":
            return f"back on {move.to_node} as {move.to_pod}"
        case "pending":
            return f"{move.to_pod} came in its place and has no node yet"
        case "moving":
            if move.to_pod:
                return f"{move.to_pod} starts on {move.to_node}"
            return f"nothing was in its place when last looked at, {times.clock(move.known_at)}"
