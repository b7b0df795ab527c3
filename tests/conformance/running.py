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
    """All cases of a file.

    :raises FileError: if it cannot be read, or none of its cases is one of this suite
    """
    cases = suites.suite(suite).read(path)
    faults = [_fault(suite, case) for case in cases]
    if all(faults):
        raise FileError(path, f"case {cases[0].id} is none of suite {suite}: {faults[0]}")
    return cases


def run(suite: str, case: Case) -> Outcome:
    """Run one case. It fails, too, if it has parts that nobody would look at; whatever it raises is told as a
    difference."""
    fault = _fault(suite, case)
    if fault:
        return Outcome(case=case, got=ABSENT, differences=[Difference((), "a case of this suite", fault, fault)])
    try:
        functions = suites.suite(suite)
        got = functions.run(case.input)
        differences = list(functions.compare(case.expected, got))
    except Exception as error:  # the boundary to all code under test
        return Outcome(case=case, got=ABSENT, differences=[_raised(error)])
    return Outcome(case=case, got=got, differences=differences)


def _fault(suite: str, case: Case) -> str:
    """What of a case has another shape than the suite knows; empty if nothing."""
    try:
        suites.suite(suite).check(case.input, case.expected)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


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
