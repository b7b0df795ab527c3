"""Disruption budgets and limits hold at every prefix of the stream, whoever evicts and whatever fails; and
the checker sees what it is there to see."""

from subprocess import CompletedProcess

import pytest

from tests.simulation import programs
from tests.simulation.evictions.sabotages import SABOTAGES

SEEDS = 3
WITHIN_S = 300


def play(*options: str) -> CompletedProcess[str]:
    return programs.play("tests.simulation.evictions", *options, within_s=WITHIN_S)


@pytest.mark.timeout(WITHIN_S)
@pytest.mark.parametrize(
    "seeds", [pytest.param(SEEDS, id="seeds"), pytest.param(60, id="more", marks=pytest.mark.whole_simulation)]
)
def test_no_budget_is_exceeded_and_no_limit_whoever_races(seeds: int) -> None:
    done = play("--seeds", str(seeds))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("evicted by descheduler") == done.stdout.count("evicted by person") == seeds


@pytest.mark.timeout(WITHIN_S)
@pytest.mark.parametrize("name", SABOTAGES)
def test_the_checker_sees_what_is_switched_off(name: str) -> None:
    done = play("--without", name)
    assert done.returncode == 0, done.stdout + done.stderr
