"""Tables as kubectl prints them: capital headers, columns by blanks, no lines."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

Cell = str | Text


def table(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """A table without lines; cells of `rows` in the order of `headers`. Only the last column gives way on a
    narrow terminal."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", show_edge=False)
    for column, header in enumerate(headers):
        widest = max([len(header), *(len(row[column]) for row in rows)])
        last = column == len(headers) - 1
        made.add_column(header, no_wrap=True, overflow="ellipsis", min_width=None if last else widest)
    for row in rows:
        made.add_row(*row)
    return made


def figures(*headers: str) -> Table:
    """An empty table of what was measured: names on the left, numbers to the right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column, header in enumerate(headers):
        made.add_column(header, justify="right" if column else "left")
    return made


def plain_lines(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """The same for pipes: every column as wide as its widest cell, three blanks between."""
    texts = [list(headers), *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(line[column]) for line in texts) for column in range(len(headers))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in texts]
