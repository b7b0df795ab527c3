"""A replay's plan, and what is made of what happened: curves, fragments, waiting; tables and pictures."""

from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from podyard.bench.machine import Commit, Machine
from podyard.bench.render import replay as shown
from podyard.bench.render import replay_picture
from podyard.bench.replay import curves, plan, result, waits
from podyard.bench.replay.curves import Moment
from podyard.bench.replay.fragmentation import Devices, Requests, Taken
from podyard.bench.replay.plan import Due, Plan
from podyard.bench.replay.playing import Seen
from podyard.bench.replay.result import Outcome
from podyard.bench.replay.rows import NodeRow, PodRow, Recorded
from podyard.cli.errors import InputError

MACHINE = Machine(cores=2, cpu="any", python="3.11", nats_server="2.1")


def pod(
    name: str = "p",
    *,
    cpu: int = 0,
    memory: int = 0,
    gpus: int = 0,
    milli: int = 1000,
    models: tuple[str, ...] = (),
    at: tuple[int, int] = (0, 100),
    scheduled: int | None = 0,
) -> PodRow:
    return PodRow(
        name=name,
        cpu_milli=cpu,
        memory_mib=memory,
        gpus=gpus,
        gpu_milli=milli if gpus else 0,
        models=models,
        qos="LS",
        phase="Running",
        created=at[0],
        deleted=at[1],
        scheduled=scheduled,
    )


def node(name: str = "n", *, gpus: int = 0, model: str = "T4", cpu: int = 10_000, memory: int = 1000) -> NodeRow:
    return NodeRow(name=name, cpu_milli=cpu, memory_mib=memory, gpus=gpus, model=model if gpus else "")


# the plan


def test_times_are_divided_and_in_order():
    recorded = Recorded((node(),), (pod("late", at=(60, 70)), pod("early", at=(20, 100))))
    made = plan.plan(recorded, 10)
    assert [one.name for one in made.pods] == ["early", "late"]
    assert made.creations == (Due(2.0, 0), Due(6.0, 1))
    assert made.deletions == (Due(7.0, 1), Due(10.0, 0))
    assert made.seconds == 10.0


def test_a_replay_from_the_middle_begins_with_those_that_live():
    recorded = Recorded((node(),), (pod("gone", at=(0, 50)), pod("lives", at=(10, 80)), pod("comes", at=(60, 90))))
    made = plan.plan(recorded, 10, begins=50)
    assert [one.name for one in made.pods] == ["lives", "comes"]
    assert made.creations == (Due(0.0, 0), Due(1.0, 1))
    assert made.deletions == (Due(3.0, 0), Due(4.0, 1))
    assert made.recorded_at(3.0) == 80
    with pytest.raises(InputError, match="--from 90: no pod is left"):
        plan.plan(recorded, 10, begins=90)


def test_pods_stay():
    made = plan.plan(Recorded((node(),), (pod(at=(5, 10)),)), 1, stay=True)
    assert (made.deletions, made.seconds) == ((), 5.0)


def test_of_equal_nodes_every_so_many_is_kept():
    given = [node(f"a{number}", gpus=2) for number in range(5)] + [node("b", gpus=1)]
    assert [one.name for one in plan.thinned(given, 2)] == ["a0", "a2", "a4", "b"]
    assert len(list(plan.thinned(given, 1))) == 6


# devices and fragments


def test_a_part_comes_from_the_device_with_the_least_room():
    devices = Devices(3)
    devices.take(1, 600)
    devices.take(1, 300)
    assert devices.free == [100, 1000, 1000]
    taken, whole = devices.take(2, 1000)
    assert (taken, whole) == ([Taken(1, 1000), Taken(2, 1000)], True)
    devices.give_back(taken)
    assert devices.free == [100, 1000, 1000]


def test_who_fits_the_node_and_no_device_gets_pieces():
    devices = Devices(2)
    devices.take(1, 700)
    devices.take(1, 600)
    taken, whole = devices.take(1, 650)
    assert (taken, whole) == ([Taken(1, 400), Taken(0, 250)], False)
    assert devices.free == [50, 0]


def test_what_is_free_is_a_fragment_for_who_cannot_run():
    wants = Requests([pod(cpu=5, memory=5, gpus=1, milli=500, models=("T4",))])
    assert wants.unusable([400, 1000], 5, 5, "T4") == 400
    assert wants.unusable([400, 1000], 4, 5, "T4") == 1400  # CPU
    assert wants.unusable([400, 1000], 5, 4, "T4") == 1400  # memory
    assert wants.unusable([400, 1000], 5, 5, "P100") == 1400  # model
    assert wants.unusable([400, 400], 5, 5, "T4") == 800  # no device


def test_several_gpus_need_so_many_free_ones():
    wants = Requests([pod(gpus=2)])
    assert wants.unusable([1000, 999, 1000], 0, 0, "T4") == 999
    assert wants.unusable([1000, 999, 999], 0, 0, "T4") == 2998


def test_a_fragment_is_the_mean_over_the_requests_of_the_workload():
    wants = Requests([pod(gpus=1, milli=200), pod(gpus=1, milli=200), pod(gpus=1, milli=500), pod(gpus=1), pod(cpu=9)])
    # 0.5 of them use all but 100; 0.25 all but 400 and 100; 0.25 only the whole one
    assert wants.unusable([100, 400, 1000], 0, 0, "T4") == pytest.approx(0.5 * 100 + 0.25 * 500 + 0.25 * 500)


def test_without_requests_for_gpus_nothing_is_a_fragment():
    assert Requests([pod(cpu=1)]).unusable([1000], 0, 0, "T4") == 0


# curves


def moments(*given: tuple[float, curves.What, int] | tuple[float, curves.What, int, int]) -> list[Moment]:
    return [Moment(*one) for one in given]


def planned(*pods: PodRow, nodes: tuple[NodeRow, ...] = (node(gpus=2),), speedup: float = 10) -> Plan:
    return plan.plan(Recorded(nodes, pods), speedup)


def test_use_is_what_bound_pods_request_over_time():
    made = planned(pod(cpu=5000, memory=250, gpus=1, milli=500), pod(cpu=2500, at=(1, 2)))
    happened = moments((0, "created", 0), (2, "bound", 0, 0), (3, "created", 1), (5, "bound", 1, 0), (8, "ended", 0))
    found = curves.fold(made, [*happened, Moment(9, "removed", 0)], 10)
    assert (found.cpu.mean, found.cpu.peak, found.cpu.end) == (
        pytest.approx((3 * 0.5 + 3 * 0.75 + 2 * 0.25) / 10),
        0.75,
        0.25,
    )
    assert (found.memory.peak, found.gpu.peak, found.gpu.end) == (0.25, 0.25, 0)
    assert (found.waiting.mean, found.waiting.peak, found.waiting.end) == (pytest.approx(0.4), 1, 0)
    assert found.bound.peak == 2
    assert found.overloaded == ()


def test_points_are_even_in_time_and_told_in_that_of_the_recording():
    made = planned(pod(cpu=5000))
    found = curves.fold(made, moments((0, "created", 0), (5, "bound", 0, 0)), 10)
    assert len(found.points) == curves.POINTS + 1
    times = [one.recorded_s for one in found.points]
    assert (times[0], times[1], times[-1]) == (0, 0.2, 100)
    assert [one.cpu for one in found.points] == [0.0] * 200 + [0.5] * 201


def test_fragments_are_told_of_the_free_and_of_all_gpus():
    made = planned(pod(gpus=1, milli=600), pod(gpus=1, milli=600, at=(1, 100)))
    found = curves.fold(made, moments((0, "created", 0), (0, "bound", 0, 0), (0, "bound", 1, 0)), 1)
    assert (found.fragmented.end, found.fragmented_of_all.end) == (1.0, 0.4)
    assert found.split == 0


def test_a_pod_in_pieces_and_a_node_that_holds_too_much_are_told():
    made = planned(*(pod(f"p{number}", gpus=1, milli=650) for number in range(4)))
    three = moments(*((0, "bound", number, 0) for number in range(3)))
    assert (curves.fold(made, three, 1).split, curves.fold(made, three, 1).overloaded) == (1, ())
    assert curves.fold(made, [*three, Moment(0, "bound", 3, 0)], 1).overloaded == ("n",)


def test_what_one_commit_ends_makes_room_for_what_it_binds():
    made = planned(pod("first", gpus=2), pod("second", gpus=2))
    happened = moments((0, "bound", 0, 0), (1, "ended", 0), (1, "bound", 1, 0))
    found = curves.fold(made, happened, 2)
    assert (found.overloaded, found.gpu.peak) == ((), 1.0)


def test_waiting_ends_with_the_binding_or_with_the_pod():
    happened = moments((0, "created", 0), (1, "created", 1), (3, "bound", 0, 0), (4, "removed", 1))
    assert list(curves.waited(happened)) == [(0, 3)]
    assert curves.fold(planned(pod(), pod()), happened, 10).waiting.end == 0


def test_waiting_in_figures():
    found = waits.of([number / 1000 for number in range(1, 101)])
    assert found is not None
    assert (found.p50_ms, found.p90_ms, found.p99_ms, found.longest_ms) == (50, 90, 99, 100)
    assert found.mean_ms == 50.5
    assert waits.of([]) is None
    assert {name: one.pods for name, one in waits.by_class([("b", 1), ("a", 1), ("b", 2)]).items()} == {"a": 1, "b": 2}


# as it is shown


def outcome(*, late: float = 0.001, configs: tuple[str, ...] = ("a/least.yaml", "a/most.yaml")) -> Outcome:
    made = planned(pod("x", cpu=5000, gpus=1, scheduled=5), pod("y", gpus=1, scheduled=None), speedup=10)
    happened = moments((0, "created", 0), (0, "created", 1), (0.25, "bound", 0, 0), (9, "ended", 0), (9, "removed", 1))
    seen = Seen(0.0, 10.0, happened, [late], {"NodeResourcesFit": 1})
    setting = result.setting(
        made,
        names=("openb", "p", "n"),
        stay=False,
        one_node_in=1,
        at=1e9,
        machine=MACHINE,
        commit=Commit("abc", dirty=False),
    )
    runs = [result.of(made, seen, config=one, cpu={"queue": 0.001}, load_before=0.5) for one in configs]
    return Outcome(trace=setting, runs=tuple(runs))


def text(found: Outcome) -> str:
    console = Console(width=80, record=True, file=StringIO())
    console.print(shown.report(found))
    return console.export_text()


def test_figures_of_a_replay():
    [run] = outcome(configs=("",)).runs
    assert (run.bound, run.never_bound, run.never_bound_by) == (1, 1, {"NodeResourcesFit": 1})
    assert (run.never_scheduled_bound, run.kept_up, run.cpu_us_per_pod) == (0, True, 500)
    assert run.wait is not None
    assert run.wait.p50_ms == 250
    assert run.wait_by_gpu.keys() == {"one GPU"}
    assert (len(run.wait_percentiles_ms), run.wait_percentiles_ms[0]) == (100, 250)


def test_replays_stand_beside_each_other_within_80_columns():
    told = text(outcome())
    lines = told.splitlines()
    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if "least" in line).split() == ["least", "most"]
    assert [line.split()[-2:] for line in lines if "NodeResourcesFit" in line] == [["1", "1"]]
    assert "NOT KEEP UP" not in told
    assert "Then 1 were never scheduled; the others waited 5 s (p50), 5 s (p99)" in told


def test_a_replay_that_was_late_says_so_loudly():
    found = outcome(late=0.5, configs=("",))
    assert not found.runs[0].kept_up
    assert "THE MACHINE DID NOT KEEP UP" in text(found)


def test_a_node_that_held_too_much_is_told():
    found = outcome(configs=("",))
    bad = msgspec.structs.replace(
        found.runs[0], curves=msgspec.structs.replace(found.runs[0].curves, overloaded=("n",))
    )
    assert "nodes held more than they have: n" in text(msgspec.structs.replace(found, runs=(bad,)))


def test_lives_too_short_for_a_binding_are_told():
    found = outcome(configs=("",))
    assert "Half of the pods" not in text(found)
    short = msgspec.structs.replace(found.trace, lifetime_p50_ms=300.0)
    assert "no longer than 300.0 ms" in text(msgspec.structs.replace(found, trace=short))


@pytest.mark.parametrize("name", ["replay.svg", "replay.png"])
def test_replays_are_drawn(tmp_path: Path, name: str):
    replay_picture.draw(outcome(), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert content.startswith(b"<?xml" if name.endswith("svg") else b"\x89PNG")
