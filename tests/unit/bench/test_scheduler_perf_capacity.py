"""Which service is full at which rate, and runs with several numbers of schedulers."""

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from podyard.bench.commands.scheduler_perf import _numbers as numbers
from podyard.bench.render import scheduler_perf, scheduler_perf_curve
from podyard.bench.scheduler_perf import capacity
from podyard.cli import services
from podyard.cli.errors import InputError
from tests.unit.bench.test_scheduler_perf_figures import example

COSTS = {"scheduler": 200.0, "binder": 100.0, "queue": 80.0, "nats-server": 50.0, "client": 70.0}


def test_a_service_is_full_when_its_core_is():
    found = capacity.full(COSTS)
    assert [(one.process, one.pods_per_second) for one in found] == [
        ("scheduler", 5000),
        ("binder", 10_000),
        ("queue", 12_500),
        ("nats-server", 20_000),
    ]
    assert found[0].more_by == "another scheduler"
    assert "stand by" in found[1].more_by


def test_more_schedulers_are_full_later_and_more_binders_are_not():
    several = {"scheduler-1": 110.0, "scheduler-2": 90.0, "binder-1": 99.0, "binder-2": 1.0}
    found = {one.process: one for one in capacity.full(several)}
    assert (found["scheduler"].instances, found["scheduler"].pods_per_second) == (2, 10_000)
    assert (found["binder"].instances, found["binder"].pods_per_second) == (2, 10_000)


def test_the_machine_is_full_when_all_cores_are_the_benchmark_included():
    assert capacity.machine(COSTS, 2) == 4000
    assert capacity.machine({}, 2) == 0


def test_what_cost_too_little_to_be_measured_is_left_out():
    assert capacity.full({"queue": 0.0}) == ()


def test_of_every_service_it_is_known_what_makes_it_more():
    assert set(services.NAMES) <= capacity.GROWS.keys()


@pytest.mark.parametrize("text", ["", "0", "17", "1,1", "1,,2", "two", "-1"])
def test_numbers_of_schedulers_that_make_no_sense_are_refused(text: str):
    with pytest.raises(InputError, match="--schedulers"):
        numbers(text)


def test_numbers_of_schedulers():
    assert numbers("1, 2,16") == [1, 2, 16]


def test_a_result_tells_who_is_full_first_and_results_stand_beside_each_other(tmp_path: Path):
    one = example()
    two = msgspec.structs.replace(one, services=("scheduler-1", "scheduler-2"), pods_per_second_average=9000.0)
    out = io.StringIO()
    console = Console(file=out, width=80)
    console.print(scheduler_perf.report(one))
    assert "another scheduler" in out.getvalue()
    assert "The 2 cores of this machine are full at 6,667 pods/s" in out.getvalue()
    console.print(scheduler_perf.by_schedulers([one, two]))
    console.print(scheduler_perf.comparison([("x", two)]))
    assert "9,000" in out.getvalue()
    assert "2 schedulers" in " ".join(out.getvalue().split())
    assert max(map(len, out.getvalue().splitlines())) <= 80
    picture = tmp_path / "curve.svg"
    scheduler_perf_curve.draw([one, two], picture)
    assert "its schedulers full" in picture.read_text()
