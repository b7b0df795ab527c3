"""The tables of docs/metrics.md: `python -m tests.support.metrics_page` writes them anew from the code."""

import re
from pathlib import Path
from typing import Final

from tests.support import reference_metrics, shown_metrics
from tests.support.shown_metrics import Shown

PAGE: Final = Path(__file__).parents[2] / "docs" / "metrics.md"
_TABLE: Final = re.compile(r"(<!-- metrics of (?P<of>[a-z_ ]+) -->\n\n)(?P<rows>(?:\|.*\n)*)")
_ABSENT: Final = re.compile(r"^\| `(\w+)` \| ([\w -]+) \| (.+) \|$", re.MULTILINE)
_SECTION: Final = "## What the reference shows and Podyard does not\n"
_HEAD: Final = ("| name | type | labels | what it says |", "|---|---|---|---|")


def tables() -> dict[str, str]:
    """Rows by what stands in the table's comment."""
    return {of: "\n".join((*_HEAD, *map(_row, found))) + "\n" for of, found in shown_metrics.shown().items()}


def _row(one: Shown) -> str:
    labels = ", ".join(f"`{label}`" for label in one.labels)
    return f"| `{one.name}` | {one.type} | {labels} | {one.help.replace('|', '/').rstrip('.')} |"


def in_page(text: str) -> dict[str, str]:
    """The tables that the page has."""
    return {found["of"]: found["rows"] for found in _TABLE.finditer(text)}


def absent(text: str) -> dict[str, tuple[str, str]]:
    """Families of the reference that are not shown here: name, then program and reason."""
    section = text.partition(_SECTION)[2]
    return {name: (program, reason) for name, program, reason in _ABSENT.findall(section)}


def main() -> None:
    """Write the tables."""
    new = tables()
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda found: found[1] + new[found["of"]], text), encoding="utf-8")


def reference() -> dict[str, tuple[str, reference_metrics.Family]]:
    """Families of the reference by name, with the program that shows them."""
    found = reference_metrics.programs().values()
    return {family.name: (each.program, family) for each in found for family in each.families}


if __name__ == "__main__":
    main()
