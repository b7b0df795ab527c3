"""Seeds without violations, and the same bytes for the same seed."""

from concurrent.futures import ThreadPoolExecutor
from subprocess import CompletedProcess

import pytest

from tests.simulation import programs
from tests.simulation.simulation import PLACES

SEEDS = 20
"""Half a minute on two cores; `make test-simulation` runs 200, and more crashes."""
WITHIN_S = 1800


def simulate(*options: str) -> CompletedProcess[str]:
    return programs.play("tests.simulation", *options, within_s=WITHIN_S)


@pytest.mark.timeout(WITHIN_S)
class TestSafety:
    def test_nothing_is_bound_twice_overcommitted_or_lost_under_seeded_faults(self, capsys: pytest.CaptureFixture[str]):
        done = simulate("--seeds", str(SEEDS))
        with capsys.disabled():
            print(f"\n{done.stdout.splitlines()[-1] if done.stdout else done.stderr}")
        assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.parametrize(
        "number", [pytest.param(6, id="few"), pytest.param(100, id="many", marks=pytest.mark.whole_simulation)]
    )
    def test_no_pod_runs_on_two_nodes_that_hear_the_bus_none_is_lost_and_storms_are_bounded(self, number: int):
        done = simulate("--nodes", "--seeds", str(number))
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{number} seeds" in done.stdout
        told = dict(reversed(part.split(" ", 1)) for part in done.stdout.splitlines()[-2].split(", "))
        for what in ("nodes lost", "pods evicted", "nodes taken"):
            assert int(told[what]) > number, what

    @pytest.mark.parametrize(
        "runs", [pytest.param(1, id="one run"), pytest.param(4, id="runs", marks=pytest.mark.whole_simulation)]
    )
    def test_a_crash_before_any_single_effect_loses_nothing(self, runs: int):
        done = simulate("--crashes", str(runs))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("a crash before each of its") == runs * len(PLACES)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("options", [(), ("--nodes",)], ids=["", "nodes"])
def test_a_seed_is_the_same_run_byte_for_byte(options: tuple[str, ...]):
    with ThreadPoolExecutor(2) as at_once:
        runs = at_once.map(lambda _: simulate("--seed", "4", "--history", *options).stdout.splitlines()[:-1], range(2))
        first, second = runs
    assert len(first) > 3000
    assert first == second
