"""How much of what happened while somebody watched, and how many lines of it are shown at most. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from podyard.cli.render import times
from podyard.cli.render.watch import KINDS, Line

BOUND: Final = "bound"
RELEASED: Final = "released"
ORDER: Final = ("change", BOUND, RELEASED, *KINDS[1:], "gap")
"""In which counts are told: of changes, bindings and releases are counted by themselves."""

MOST_A_SECOND: Final = 40
"""Lines that a terminal shows in a second: more than anybody reads, and fewer than two pages."""


def counted_as(line: Line) -> str:
    """What a line is counted as."""
    return line.act or line.kind


def told(counts: Mapping[str, int], seconds: float) -> str:
    """Counts in a line: `in 5s: 2 change, 1,200 bound, 3 attempt`."""
    found = [f"{counts[kind]:,} {kind}" for kind in ORDER if counts.get(kind)]
    return f"in {times.duration(seconds)}: {', '.join(found) or 'nothing'}"


class Flow:
    """Lets so many lines through in a second; the others are counted."""

    def __init__(self, most: int = MOST_A_SECOND) -> None:
        self._most = most
        self._since = 0.0
        self._shown = 0
        self._held: Counter[str] = Counter()

    def takes(self, line: Line, now: float) -> bool:
        """Whether to show a line now, `now` in seconds; who is told False has `held` to tell of it later."""
        if now - self._since >= 1.0 and not self._held:
            self._since, self._shown = now, 0
        if self._shown < self._most and not self._held:
            self._shown += 1
            return True
        self._held[counted_as(line)] += 1
        return False

    def held(self, now: float) -> str:
        """What was not shown, once the second is over; empty if there is nothing to tell."""
        if not self._held or now - self._since < 1.0:
            return ""
        text = f"… and {sum(self._held.values()):,} more {told(self._held, now - self._since)}"
        self._held.clear()
        self._since, self._shown = now, 0
        return text
