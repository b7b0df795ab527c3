"""What came of all scripts, in the end. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

COUNTS: Final = "steps of a script"
"""The property of a test: name, steps, how many are the same, differ as told, and are wrong."""
_HEADS: Final = ("script", "steps", "the same", "differ as told", "wrong")


def table(counts: Iterable[Sequence[object]]) -> list[str]:
    """A line for each script, by name, and one for all.

    :param counts: as of `COUNTS`
    """
    found = sorted(([str(cell) for cell in one] for one in counts), key=lambda one: one[0])
    sums = [str(sum(int(one[at]) for one in found)) for at in range(1, len(_HEADS))]
    rows = [list(_HEADS), *found, ["all", *sums]]
    width = max(len(row[0]) for row in rows)
    return [
        row[0].ljust(width)
        + "".join(f"  {cell.rjust(len(head))}" for cell, head in zip(row[1:], _HEADS[1:], strict=True))
        for row in rows
    ]
