"""What is wrong with a configuration file, and what it says."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podyard.cli.render import tables

if TYPE_CHECKING:
    from podyard.configuration import Fault
    from podyard.configuration.unused import Unused

HEADERS: Final = ("WHERE", "WHAT IS WRONG")

_STAGES: Final = {
    "decode": "the text is not a configuration",
    "validate": "values are not allowed",
    "build": "the scheduler cannot be made of it",
}


def faults(name: str, stage: str, found: "Sequence[Fault]") -> RenderableType:
    """A table of all faults; long sentences go on below, since a cut one is of no use."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", show_edge=False)
    made.add_column(HEADERS[0], overflow="fold", ratio=2)
    made.add_column(HEADERS[1], overflow="fold", ratio=3)
    for fault in found:
        made.add_row(Text(fault.field or "the file", style="cyan"), Text(fault.detail))
    return Group(made, Text(""), Text(verdict(name, stage, len(found)), style="red"))


def fault_lines(name: str, stage: str, found: "Sequence[Fault]") -> list[str]:
    """The same for pipes."""
    rows = [(fault.field or "the file", fault.detail) for fault in found]
    return [*tables.plain_lines(HEADERS, rows), "", verdict(name, stage, len(found))]


def verdict(name: str, stage: str, count: int) -> str:
    """One line: how much is wrong, and how far the reading got."""
    return f"{name} is not valid: {count} {'fault' if count == 1 else 'faults'}, {_STAGES[stage]}"


def valid(name: str, effective: Mapping[str, Any], unused: "Sequence[Unused]") -> list[str]:
    """What a valid file says, in short, and what of it has no effect."""
    lines = [f"{name} is valid: {len(effective)} {'profile' if len(effective) == 1 else 'profiles'}"]
    for profile, says in effective.items():
        points = says["plugins"]
        names = {plugin["name"] for plugins in points.values() for plugin in plugins}
        counted = ", ".join(f"{point} {len(points[point])}" for point in ("filter", "score", "postFilter", "bind"))
        lines.append(f"  {profile}: {len(names)} plugins ({counted})")
    return lines + [f"  no effect: {one.field}: {one.reason}" for one in unused]
