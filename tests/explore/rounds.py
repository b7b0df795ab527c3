"""One round: every property test once, with one seed, in processes of pytest's own."""

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tests.explore.telling import Told

PATHS: Final = ("tests/unit", "tests/contract")
SHRINKING_LIMIT_S: Final = 1800
"""Of one test: longer than its plays and Hypothesis' 300 s of shrinking together, on a busy machine."""

OK: Final = (0, 1)
"""Exit codes of pytest: all passed, some failed."""


class RoundError(Exception):
    """A round that could not be played: its options are wrong, or tests cannot be collected."""


def play(
    seed: int, log: Path, *, paths: Sequence[str] = (), without: Sequence[str] = (), workers: int = 2
) -> Generator[Told]:
    """What becomes of each test, as it comes.

    :param log: where pytest's own output goes
    :param paths: files or node ids; all property tests if there are none
    :param without: node ids that are left out
    :raises RoundError: if pytest says that it could not do it, with the end of its output
    """
    reading, writing = os.pipe()
    command = [
        *(sys.executable, "-m", "pytest", "-m", "hypothesis", "-q", "-n", str(workers), "--dist", "worksteal"),
        *("-p", "tests.explore.telling", "--tell-to", str(writing), "-p", "no:cacheprovider"),
        *("--hypothesis-profile", "explore", "--hypothesis-seed", str(seed), "--timeout", str(SHRINKING_LIMIT_S)),
        *(word for test in without for word in ("--deselect", test)),
        *(paths or PATHS),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, pass_fds=(writing,))
        os.close(writing)
        try:
            with os.fdopen(reading, "rb") as pipe:
                for line in pipe:
                    yield msgspec.json.decode(line, type=Told)
        finally:
            if sys.exc_info()[0] is not None:  # whoever listens has heard enough
                process.terminate()
            code = process.wait()
    if code not in OK:
        end = log.read_text(errors="replace").splitlines()[-12:]
        raise RoundError("\n".join([f"pytest ended with {code}; {log} ends with:", *end]))
