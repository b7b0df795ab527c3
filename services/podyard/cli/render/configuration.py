"""What is wrong with a configuration file, and what it says."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podyard.cli.render import tables

if TYPE_CHECKING:
    from podyard.cli.configuration_files import Remark
    from podyard.configuration import ConfigurationError

HEADERS: Final = ("WHERE", "WHAT IS WRONG")

_STAGES: Final = {
    "decode": "the text is not a configuration",
    "validate": "values are not allowed",
    "default": "what it leaves out cannot be filled in",
    "build": "profiles or plugins cannot be made of it",
}
_REMARKS: Final = {"unused": "no effect", "doubtful": "cannot be meant so"}


def faults(name: str, error: "ConfigurationError") -> RenderableType:
    """A table of all faults; long sentences go on below, since a cut one is of no use."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", show_edge=False)
    made.add_column(HEADERS[0], overflow="fold", ratio=2)
    made.add_column(HEADERS[1], overflow="fold", ratio=3)
    for fault in (*error.faults, *error.further):
        made.add_row(Text(fault.field or "the file", style="cyan"), Text(fault.detail))
    return Group(made, Text(""), Text(verdict(name, error), style="red"))


def fault_lines(name: str, error: "ConfigurationError") -> list[str]:
    """The same for pipes."""
    rows = [(fault.field or "the file", fault.detail) for fault in (*error.faults, *error.further)]
    return [*tables.plain_lines(HEADERS, rows), "", verdict(name, error)]


def verdict(name: str, error: "ConfigurationError") -> str:
    """One line: how much is wrong, and of what sort, if it is of one."""
    count = len(error.faults) + len(error.further)
    sort = "" if error.further else f", {_STAGES[error.stage]}"
    return f"{name} is not valid: {count} {'fault' if count == 1 else 'faults'}{sort}"


def valid(name: str, summary: Sequence[str], called: str, remarks: "Sequence[Remark]") -> list[str]:
    """What a valid file says, in short, and what is to be said of single fields."""
    first, *more = summary
    lines = [f"{name} is valid: {first}", *(f"  {line}" for line in more)]
    return lines + [f"  {_REMARKS[called]}: {one.field}: {one.reason}" for one in remarks]
