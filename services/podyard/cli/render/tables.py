"""Tables as kubectl prints them: capital headers, columns by blanks, no lines."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.table import Table
from rich.text import Text

Cell = str | Text

GAP: Final = 3
"""Blanks between columns."""
SHORTEST_NAME: Final = 20
"""Columns that are left of a name, or all of it."""


def table(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """A table without lines; cells of `rows` in the order of `headers`. Only the last column gives way on a
    narrow terminal."""
    made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", show_edge=False)
    for column, header in enumerate(headers):
        widest = max([len(header), *(len(row[column]) for row in rows)])
        last = column == len(headers) - 1
        made.add_column(header, no_wrap=True, overflow="ellipsis", min_width=None if last else widest)
    for row in rows:
        # as text: what people named may look like markup, `[example.com/gate]`
        made.add_row(*[Text(cell) if isinstance(cell, str) else cell for cell in row])
    return made


class Fitted(NamedTuple):
    """A table that was made to fit a terminal."""

    headers: list[str]
    rows: list[list[Cell]]
    left_out: list[str]
    """Headers of the columns that are not shown."""


def fitted(
    headers: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    width: int,
    *,
    less: Sequence[int],
    name: int | None = None,
    least: int,
) -> Fitted:
    """What of a table fits into `width` columns of a terminal: columns are left out until it does, then names
    are shortened in their middle, since pods of one owner differ at the end; then the last column is cut.

    :param less: columns that may be left out, those that matter least first
    :param name: the column of names
    :param least: columns of the terminal that the last column gets at least, if it needs them
    """
    widest = [max([len(header), *(len(row[at]) for row in rows)]) for at, header in enumerate(headers)]
    widest[-1] = min(widest[-1], max(least, len(headers[-1])))
    shown = list(range(len(headers)))

    def over() -> int:
        return sum(widest[at] for at in shown) + GAP * (len(shown) - 1) - width

    left_out: list[str] = []
    for at in less:
        if over() > 0:
            shown.remove(at)
            left_out.append(headers[at])
    if name is not None and over() > 0:
        widest[name] = min(widest[name], max(SHORTEST_NAME, widest[name] - over()))
    widest[-1] = max(widest[-1] - over(), len(headers[-1]))
    made = [[_shortened(row[at], widest[at], middle=at == name) for at in shown] for row in rows]
    return Fitted([headers[at] for at in shown], made, left_out)


def _shortened(cell: Cell, longest: int, *, middle: bool) -> Cell:
    """What is too long without its middle, or without its end."""
    if len(cell) <= longest:
        return cell
    return without_middle(str(cell), longest) if middle else f"{str(cell)[: longest - 1]}…"


def without_middle(name: str, longest: int) -> str:
    """A name in at most `longest` columns, of which its end has half."""
    end = longest // 2
    return name if len(name) <= longest else f"{name[: longest - end - 1]}…{name[len(name) - end :]}"


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
