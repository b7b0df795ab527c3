"""Markdown as the pages of this repository have it."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

WIDTH: Final = 110
"""Columns of prose; a table's rows and code cannot be broken (tests/unit/docs/test_widths.py)."""


def page(title: str, about: str, parts: Iterable[str]) -> str:
    """A whole page: its title, what it is about, who makes it, and its parts."""
    made = "<!-- made of the code by `make reference`; changes belong there -->"
    return "\n\n".join((f"# {title}", made, narrow(about), *parts)) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; `|` in a cell is escaped, line breaks become blanks."""
    lines = [_row(head), "|" + "---|" * len(head), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def narrow(text: str) -> str:
    """Text whose lines of prose are no wider than they may be."""
    return "\n".join(_narrowed(text.splitlines()))


def _narrowed(lines: Iterable[str]) -> Iterator[str]:
    fenced = False
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        if fenced or len(line) <= WIDTH or line.startswith("|"):
            yield line.rstrip()
        else:
            item = line.lstrip().startswith(("* ", "- "))
            yield from textwrap.wrap(
                line,
                WIDTH,
                subsequent_indent="  " if item else "",
                break_long_words=False,
                break_on_hyphens=False,
            )
