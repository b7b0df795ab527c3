"""`python -m tests.conformance SUITE FILE [--case ID] [--show]`: runs a file of reference answers through the
services' own code.

Prints, of every failed case, what differs, and last how many passed and failed. Exits with 1 if any failed,
with 2 if it was called wrongly or the file cannot be used. The suites translate cases into what the services
read, and back; no rule of scheduling is in this package.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from tests.conformance import running, showing
from tests.conformance.cases import Case, FileError, one_of
from tests.conformance.suites import NAMES

FAILED: Final = 1
WRONG_CALL: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """
    :param arguments: without the program's name; those of the process if None
    :return: exit code
    """
    asked = _parser().parse_args(arguments)
    console = showing.console()
    try:
        cases = running.load(asked.suite, asked.file)
        if asked.case is not None:
            cases = [one_of(cases, asked.file, asked.case)]
    except FileError as error:
        print(error, file=sys.stderr)
        return WRONG_CALL
    failed = _run(console, asked, cases)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return FAILED if failed else 0


def _run(console: Console, asked: argparse.Namespace, cases: Sequence[Case]) -> int:
    """Run and tell; returns how many failed."""
    failed: list[running.Outcome] = []
    with _progress(console) as progress:
        task = progress.add_task(asked.suite, total=len(cases))
        for outcome in running.run_all(asked.suite, cases):
            progress.advance(task)
            if not outcome.passed:
                failed.append(outcome)
            if asked.show and (asked.case is not None or not outcome.passed):
                showing.case(console, asked.suite, outcome)
            elif not outcome.passed:
                showing.differences(console, outcome)
    showing.groups(console, [outcome.differences for outcome in failed])
    return len(failed)


def _progress(console: Console) -> Progress:
    """On the terminal that cases are told on; on that of stderr if they go elsewhere; nowhere if there is
    none."""
    shown = console if console.is_terminal else Console(stderr=True)
    return Progress(
        *Progress.get_default_columns(),
        MofNCompleteColumn(),
        console=shown,
        transient=True,
        disable=not shown.is_terminal,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance", description="Compare Podyard's decisions with the reference's."
    )
    parser.add_argument("suite", choices=NAMES, metavar="SUITE", help=", ".join(NAMES))
    parser.add_argument("file", type=Path, metavar="FILE", help="JSON Lines or JSON, plain or gzip")
    parser.add_argument("--case", metavar="ID", help="run only this case")
    parser.add_argument(
        "--show", action="store_true", help="show input, expected and got of failed cases, or of --case"
    )
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
