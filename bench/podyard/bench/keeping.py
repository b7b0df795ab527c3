"""Adds what was measured to the history; what could prevent that is found before anything is measured."""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from podyard.bench import counted, history, machine, performance
from podyard.bench.basic import BasicResult
from podyard.bench.cycles import CycleResult
from podyard.bench.events import CoreResult
from podyard.bench.machine import Commit
from podyard.bench.storm import StormResult
from podyard.cli.errors import CliError
from podyard.runtime import clock


class Keeping:
    """Made before the measuring.

    :param name: file of the history; "": the checkout's
    :param counts: file of counts to keep with the entry, `-` for standard input, "" for none
    :raises CliError: if a file that was named cannot be used
    """

    def __init__(self, name: str, counts: str) -> None:
        self._counts = counted.read(counts) if counts else {}
        self._file = Path(name).resolve() if name else history.find()
        """`None`: there is none, and nothing is kept."""
        self._commit = Commit()
        if self._file is None:
            _say(
                f"this podyard is run from no checkout with a {history.PLACE}: what is found will be shown, not kept; "
                "--history FILE keeps it in FILE"
            )
            return
        history.check(self._file)
        checkout = history.find()
        if checkout is not None:
            self._commit = machine.commit_of(checkout.parent, besides=self._file)

    def keep(self, runs: Sequence[BasicResult], cycles: CycleResult, core: CoreResult, storm: StormResult) -> None:
        """Add the entry.

        :raises CliError: if that fails after all; the entry is said, so that it is not lost
        """
        if self._file is None:
            return
        made = performance.entry(
            self._commit, machine.this_machine(), clock.now(), runs, cycles, core, storm, self._counts
        )
        try:
            history.append(self._file, made)
        except CliError:
            _say(f"the entry that was not kept: {msgspec.json.encode(made).decode()}")
            raise
        _say(f"{self._file}: {made.label} added; podyard bench history shows it")


def _say(text: str) -> None:
    """Beside the figures, which programs may read."""
    print(text, file=sys.stderr)
