"""Running the cases of a file, on all cores if they are many."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

import msgspec

from tests.conformance import suites
from tests.conformance.cases import Case, FileError
from tests.conformance.differences import ABSENT, Difference

WORTH_PROCESSES: Final = 100
"""Fewer cases run in this process: starting others takes about a second."""
PORTION: Final = 8
"""Cases handed to a process at once."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One case that was run. It passed if nothing differs."""

    case: Case
    got: Any
    differences: list[Difference]

    @property
    def passed(self) -> bool:
        return not self.differences


def load(suite: str, path: Path) -> Sequence[Case]:
    """All cases of a file, each of a shape that the suite knows in full.

    :raises FileError: if it cannot be read, or a case has parts that would not be looked at
    """
    functions = suites.suite(suite)
    cases = functions.read(path)
    for case in cases:
        try:
            functions.check(case.input, case.expected)
        except msgspec.ValidationError as error:
            raise FileError(path, f"case {case.id} is none of suite {suite}: {error}") from error
    return cases


def run(suite: str, case: Case) -> Outcome:
    """Run one case. Whatever it raises is told as a difference."""
    try:
        functions = suites.suite(suite)
        got = functions.run(case.input)
        differences = list(functions.compare(case.expected, got))
    except Exception as error:  # the boundary to all code under test
        return Outcome(case=case, got=ABSENT, differences=[_raised(error)])
    return Outcome(case=case, got=got, differences=differences)


def run_all(suite: str, cases: Sequence[Case]) -> Iterator[Outcome]:
    """Run all cases; outcomes come in the order of the cases."""
    workers = os.cpu_count() or 1
    if len(cases) < WORTH_PROCESSES or workers == 1:
        yield from (run(suite, case) for case in cases)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(run, repeat(suite), cases, chunksize=PORTION)


def _raised(error: Exception) -> Difference:
    frames = extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    told = f"raised {type(error).__name__}: {error} ({place})"
    return Difference((), "an answer", told, f"raised {type(error).__name__}: {str(error)[:80]}")
