"""`python -m tests.explore [--minutes M] [TEST ...]`: property tests with new plays, round after round.

Each failure is told once, with its play and the command that plays it again; its test is left out of the
rounds that follow. Ctrl-C ends it at any time. Exits with 1 if anything was found, with 2 if tests could not
be run.
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.explore import finding, rounds
from tests.explore.telling import Collected, Failed, Played
from tests.support import plays

FOUND: Final = 1
WRONG_CALL: Final = 2
SHOWN_LINES: Final = 80
SEED_BITS: Final = 32


class Tally:
    """What has come of all rounds so far."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.rounds = 0
        self.plays: dict[str, int] = {}
        """By test, over all rounds."""
        self.failed: list[str] = []
        """Tests that failed; they are left out from then on."""

    def note_played(self, told: Played) -> None:
        self.plays[told.test] = self.plays.get(told.test, 0) + told.plays

    def note_failed(self, told: Failed) -> None:
        if told.test in self.failed:
            return
        self.failed.append(told.test)
        console = self._console
        console.print(f"[bold red]found[/] {told.test}", highlight=False, soft_wrap=True)
        lines = told.says.splitlines()
        console.print("\n".join(lines[-SHOWN_LINES:]), markup=False, highlight=False, soft_wrap=True)
        if told.choices:
            again = f"python -m tests.explore --again {finding.keep(told)}"
            console.print(f"again: [bold]{again}[/]", highlight=False, soft_wrap=True)
        else:
            console.print("it is not the failure of a play: run the test by itself")

    def say(self, seconds: float) -> None:
        """The last line."""
        found = f"{len(self.failed)} found" if self.failed else "nothing found"
        plays, tests = sum(self.plays.values()), len(self.plays)
        text = f"{plays:,} plays of {tests} tests in {self.rounds} rounds, {seconds / 60:.1f} min: {found}"
        self._console.print(text, highlight=False)


def main() -> int:
    """:return: exit code"""
    asked = _options()
    if asked.again is not None:
        return _again(asked.again)
    for name in asked.tests:
        if not Path(name.partition("::")[0]).exists():
            print(f"there is no file {name.partition('::')[0]}", file=sys.stderr)
            return WRONG_CALL
    console = Console()
    tally, began = Tally(console), time.monotonic()
    try:
        while tally.rounds == 0 or time.monotonic() - began < asked.minutes * 60:
            _round(console, tally, asked)
            tally.rounds += 1
    except KeyboardInterrupt:
        console.print("ended by Ctrl-C; the last round is not counted")
    except rounds.RoundError as error:
        print(error, file=sys.stderr)
        return WRONG_CALL
    tally.say(time.monotonic() - began)
    return FOUND if tally.failed else 0


def _round(console: Console, tally: Tally, asked: argparse.Namespace) -> None:
    seed = secrets.randbits(SEED_BITS)
    with tempfile.TemporaryDirectory(prefix="podyard-explore-") as folder, _progress(console) as progress:
        task = progress.add_task(f"round {tally.rounds + 1}", total=None, plays=0)
        log = Path(folder) / "pytest.log"
        told = rounds.play(seed, log, paths=asked.tests, without=tally.failed, workers=asked.workers)
        for one in told:
            match one:
                case Collected(tests):
                    progress.update(task, total=tests)
                case Played():
                    tally.note_played(one)
                    progress.update(task, advance=1, plays=sum(tally.plays.values()))
                case Failed():
                    tally.note_failed(one)
    if not progress.console.is_terminal:
        plays = sum(tally.plays.values())
        print(f"round {tally.rounds + 1}: {plays:,} plays so far, {len(tally.failed)} found", flush=True)


def _progress(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tests, {task.fields[plays]:,} plays so far"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _again(file: Path) -> int:
    """One play again, alone.

    :return: pytest's own exit code; 1 says that it fails still, or that it no longer does, in words
    """
    try:
        test = plays.read(file).test
    except plays.PlayError as error:
        print(error, file=sys.stderr)
        return WRONG_CALL
    words = ("-m", "pytest", "-m", "", "--timeout", "0", f"--play={file}", test.partition("::")[0])
    return subprocess.run([sys.executable, *words], check=False).returncode


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description=__doc__)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="files or node ids; all property tests by default")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no further round after so many")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--again", type=Path, metavar="FILE", help="play one again that was found")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
