"""Tables of events: on a terminal the message is folded, since it rarely fits beside the rest. Pure."""

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

GAP: Final = "   "
LEAST: Final = 40
"""Columns that a message needs beside the other cells; with less it stands below them."""
INDENT: Final = "    "

Row = Sequence[str]


def widths(headers: Row, rows: Sequence[Row], least: Sequence[int] = ()) -> list[int]:
    """Of all columns but the last, which is the message.

    :param least: what they have at least
    """
    found = [max(len(cell) for cell in column) for column in zip(headers, *rows, strict=True)][:-1]
    return [max(pair) for pair in zip_longest(found, least, fillvalue=0)]


def head(headers: Row, columns: Sequence[int], width: int | None) -> Iterator[str]:
    """The headers, as `body` shows its rows."""
    yield from _row(headers, columns, width)


def body(rows: Sequence[Row], columns: Sequence[int], width: int | None) -> Iterator[str]:
    """The rows, line by line.

    :param columns: their widths
    :param width: columns of the terminal; None: nothing is folded
    """
    for cells in rows:
        yield from _row(cells, columns, width)


def _row(cells: Row, columns: Sequence[int], width: int | None) -> Iterator[str]:
    begin = "".join(cell.ljust(size) + GAP for cell, size in zip(cells, columns, strict=False))
    message, taken = cells[-1], len(begin)
    if width is None or taken + len(message) <= width:
        yield (begin + message).rstrip()
    elif width - taken >= LEAST:
        first, *others = textwrap.wrap(message, width - taken) or [""]
        yield begin + first
        yield from (" " * taken + line for line in others)
    else:
        yield begin.rstrip()
        yield from textwrap.wrap(message, width, initial_indent=INDENT, subsequent_indent=INDENT)
