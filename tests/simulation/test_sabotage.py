"""The checker sees what it is there to see: each mechanism that prevents violations is switched off in turn.

All of them are one program, which shares its start.
"""

import subprocess
import sys

import pytest

from tests.simulation.sabotage import SABOTAGES

SEEDS = 5
"""At most so many of each, from the one that it names, until one shows it; usually the first does."""


@pytest.fixture(scope="module")
def lines() -> dict[str, str]:
    """What came of each."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.all_sabotages", "--seeds", str(SEEDS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.stdout, done.stderr
    found = (line.removeprefix("without ").partition(": ") for line in done.stdout.splitlines())
    return {name: what for name, _, what in found}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SABOTAGES)
def test_the_checker_sees_what_is_switched_off(name: str, lines: dict[str, str]):
    assert lines[name].startswith("as expected"), lines[name]
