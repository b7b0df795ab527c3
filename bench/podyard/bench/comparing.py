"""What of a history can be compared, and what a change between two entries is worth. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec

from podyard.bench.performance import Entry

NOISE: Final = 0.05
"""Share by which measured figures differ between runs of one commit on an idle machine."""
EXACT: Final = 0.002
"""Share by which counts may be called equal: they are not measured."""
MANIFOLD: Final = 2.0
"""From this ratio on a change is told as a multiple ..."""
TENFOLD: Final = 10.0
"""... and from this one on without a decimal."""


class Change(msgspec.Struct, frozen=True):
    """A figure against the one before."""

    worth: int
    """-1: worse, 1: better, 0: neither."""
    text: str
    """`+12%`, `-8%`, `×3`, `new`; "" if there is none worth telling."""


SAME: Final = Change(0, "")


def by_hardware(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Entries that can be compared, in their order; the machine that was used last comes last."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        there = found.pop(entry.machine.hardware, [])
        found[entry.machine.hardware] = [*there, entry]
    return found


def change(now: float, before: float | None, noise: float, *, more_is_better: bool = False) -> Change:
    """
    :param before: `None`: there was none
    :param noise: share of `before` that a change has to exceed
    """
    if before is None or abs(now - before) <= noise * before:
        return SAME
    worth = 1 if (now > before) == more_is_better else -1
    if not before:
        return Change(worth, "new")
    ratio = now / before
    if ratio >= MANIFOLD:
        return Change(worth, f"×{ratio:.0f}" if ratio >= TENFOLD else f"×{ratio:.2g}")
    percent = (ratio - 1) * 100
    return Change(worth, f"{percent:+.0f}%" if abs(percent) >= 1 else f"{percent:+.1f}%")


def counts_of(entry: Entry, topic: str) -> dict[str, float]:
    """Counts named `<topic>.<which>`, by which; one without parts under ""."""
    found: dict[str, float] = {}
    for name, value in entry.counts.items():
        first, _, which = name.partition(".")
        if first == topic:
            found[which] = value
    return found


def topics(entries: Sequence[Entry]) -> list[str]:
    """Topics of all counts, sorted."""
    return sorted({name.partition(".")[0] for entry in entries for name in entry.counts})
