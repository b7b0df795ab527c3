"""What `podyard watch` prints: each line, or how many there were of each kind."""

import time
from collections import Counter
from typing import Final

import anyio

from podyard.cli.render import console, plain, times, watch_counts
from podyard.cli.render import watch as rendered
from podyard.runtime import clock

LOOK_S: Final = 0.25
"""How often to see whether lines that were held back are to be told."""


class WatchOutput:
    """Prints to standard output."""

    def __init__(self, form: str, every_s: float) -> None:
        """
        :param form: text or json
        :param every_s: seconds between two lines of counts; 0: lines of what happened instead
        """
        self._form = form
        self._every_s = every_s
        self._console = console.console()
        self._total: Counter[str] = Counter()
        self._lately: Counter[str] = Counter()
        self._flow = watch_counts.Flow()
        self._began = time.monotonic()

    def begin(self) -> None:
        """From now on what happens is counted."""
        self._began = time.monotonic()

    def take(self, line: rendered.Line) -> None:
        """Something has happened."""
        kind = watch_counts.counted_as(line)
        self._total[kind] += 1
        if self._every_s:
            self._lately[kind] += 1
        elif self._form == "json":
            print(plain.line(line), flush=True)
        elif not self._console.is_terminal:
            print(rendered.text(line).plain, flush=True)
        elif self._flow.takes(line, time.monotonic()):
            self._console.print(rendered.text(line, self._console.width), overflow="crop", no_wrap=True)

    def total(self) -> tuple[Counter[str], float]:
        """Counts by kind, and in how many seconds."""
        return self._total, time.monotonic() - self._began

    async def tick(self) -> None:
        """Tell what was counted and not shown, until cancelled."""
        while True:
            await anyio.sleep(self._every_s or LOOK_S)
            if self._every_s:
                self._tell_counts()
            elif told := self._flow.held(time.monotonic()):
                self._console.print(told, style="dim")

    def _tell_counts(self) -> None:
        counts = self._lately
        self._lately = Counter()
        if self._form == "json":
            print(plain.line({"at": plain.time(clock.now()), "seconds": self._every_s, "counts": counts}), flush=True)
        else:
            at = times.clock(clock.now())[:8]
            print(f"{at}  {watch_counts.told(counts, self._every_s)}", flush=True)
