"""Seeds without violations, the same bytes for the same seed, and a checker that sees what it is there to see.

Each run is a program of its own, since a simulation takes time, chance and the order of sets away from its process.
"""

import subprocess
import sys

import pytest

from tests.simulation.sabotage import SABOTAGES

SEEDS = 20
"""In `make test`; `make test-simulation` runs 200, every crash and every sabotage, which takes a quarter of an hour."""


def simulate(*options: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m tests.simulation`."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *options], capture_output=True, text=True, check=False, timeout=900
    )


@pytest.mark.timeout(900)
class TestSafety:
    def test_nothing_is_bound_twice_overcommitted_or_lost_under_seeded_faults(self, capsys: pytest.CaptureFixture[str]):
        done = simulate("--seeds", str(SEEDS))
        with capsys.disabled():
            print(f"\n{done.stdout.splitlines()[-1] if done.stdout else done.stderr}")
        assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.whole_simulation
    def test_a_crash_before_any_single_effect_loses_nothing(self):
        done = simulate("--crashes")
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("a crash before each of its") == 3


@pytest.mark.timeout(300)
def test_a_seed_is_the_same_run_byte_for_byte():
    first, second = (simulate("--seed", "4", "--history").stdout.splitlines()[:-1] for _ in range(2))
    assert len(first) > 3000
    assert first == second


@pytest.mark.whole_simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SABOTAGES)
def test_the_checker_sees_what_is_switched_off(name: str):
    done = simulate("--sabotage", name, "--seeds", "40" if SABOTAGES[name].says else "4")
    assert done.returncode == 0, done.stdout + done.stderr
