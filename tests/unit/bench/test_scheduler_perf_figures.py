"""Throughput as the reference defines it, percentiles, and times."""

import io
import math
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from podyard.bench.machine import Commit, Machine
from podyard.bench.meters import ServerCounts
from podyard.bench.render import scheduler_perf, scheduler_perf_picture
from podyard.bench.scheduler_perf import figures, histograms, kept, result
from podyard.bench.scheduler_perf.executing import Measured
from podyard.bench.scheduler_perf.figures import Bound
from podyard.bench.scheduler_perf.measuring import Reading
from podyard.bench.scheduler_perf.result import Result, Setting, Streams
from podyard.cli.errors import InputError
from podyard.cli.render import plain


def bound(*pairs: tuple[float, int]) -> list[Bound]:
    return [Bound(at, count) for at, count in pairs]


def test_the_first_second_with_a_pod_counts_for_nothing():
    found = figures.samples(bound((0.5, 100), (1.5, 300), (2.5, 500)), 0.0, 4.0)
    assert found == [300.0, 500.0]


def test_seconds_before_the_first_pod_are_passed_over():
    assert figures.samples(bound((3.5, 10), (4.5, 20)), 0.0, 6.0) == [20.0]


def test_seconds_without_a_pod_get_the_mean_up_to_the_next_one():
    assert figures.samples(bound((0.5, 10), (4.5, 80)), 0.0, 6.0) == [20.0] * 4


def test_what_comes_after_the_last_look_is_in_no_sample():
    assert figures.samples(bound((0.5, 10), (1.5, 20), (2.2, 30)), 0.0, 2.9) == [20.0]
    assert figures.samples(bound((0.2, 10)), 0.0, 0.9) == []


def test_percentiles_are_those_of_the_reference():
    found = figures.throughput([float(number) for number in range(1, 11)])
    assert found is not None
    assert (found.average, found.perc50, found.perc90, found.perc95, found.perc99) == (5.5, 5, 9, 10, 10)
    assert figures.throughput([]) is None


def test_pods_by_second():
    assert figures.per_second(bound((10.2, 1), (10.9, 2), (12.1, 3)), 10.0) == (3, 0, 3)
    assert figures.per_second([], 10.0) == ()


def test_quantiles_of_a_histogram_lie_within_their_bucket():
    buckets = {0.1: 50.0, 0.2: 90.0, math.inf: 100.0}
    assert figures.quantile(buckets, 0.5) == pytest.approx(0.1)
    assert figures.quantile(buckets, 0.7) == pytest.approx(0.15)
    assert figures.quantile(buckets, 0.99) == pytest.approx(0.2)
    assert figures.quantile({}, 0.5) == 0.0


def test_an_event_lasts_until_the_last_binding_before_the_next():
    found = figures.reactions([1.0, 2.0, 3.0], bound((1.2, 1), (1.4, 1), (3.1, 1)))
    assert found == pytest.approx([0.4, 0.1])


METRICS = """\
# TYPE scheduler_scheduling_attempt_duration_seconds histogram
scheduler_scheduling_attempt_duration_seconds_bucket{{profile="p",result="scheduled",le="0.1"}} {low}
scheduler_scheduling_attempt_duration_seconds_bucket{{profile="p",result="scheduled",le="+Inf"}} {all}
scheduler_scheduling_attempt_duration_seconds_bucket{{profile="p",result="unschedulable",le="+Inf"}} 99
scheduler_scheduling_attempt_duration_seconds_sum{{profile="p",result="scheduled"}} {sum}
scheduler_scheduling_attempt_duration_seconds_count{{profile="p",result="scheduled"}} {all}
podyard_scheduler_bind_conflicts_total{{cause="room"}} {conflicts}
"""


def look(low: int, all_: int, total: float, conflicts: int) -> histograms.Look:
    return histograms.parse([METRICS.format(low=low, all=all_, sum=total, conflicts=conflicts)])


def test_times_are_those_of_the_measured_part_alone():
    found = histograms.between(look(10, 10, 1.0, 0), look(30, 30, 1.5, 2), histograms.ATTEMPT)
    assert found is not None
    assert (found.count, found.mean_ms, found.p50_ms) == (20, 25.0, 50.0)


def test_attempts_that_placed_no_pod_are_not_among_them():
    assert look(10, 12, 1.0, 0).buckets[histograms.ATTEMPT] == {0.1: 10.0, float("inf"): 12.0}


def reading(cpu: float, stored: int, told: histograms.Look, created: int, rounds: int) -> Reading:
    used = {"scheduler": cpu, "client": cpu / 2}
    return Reading(used, ServerCounts(stored, 2 * stored), stored, told, 0, 0, created, 0, rounds)


GOOD = Streams(violations=(), violated=0, commits=3, bound=10_000, released=0, judged=9_990, unjudged={"gone": 10})


def example(*, churns: bool = True, checked: str = "", streams: Streams = GOOD, tracing: float = 0.01) -> Result:
    measured = Measured(
        bound=bound((100.5, 1000), (101.5, 3000), (106.0, 6000)),
        started=100.0,
        stopped=107.0,
        before=reading(1.0, 100, look(0, 0, 0.0, 0), 10, 0),
        after=reading(3.0, 20_100, look(9000, 10_000, 100.0, 3), 10_020, 7),
        memory={"scheduler": 100.0, "client": 50.0},
        events=[],
    )
    setting = Setting(
        case="Basic/large",
        stack="headline",
        services=("scheduler-1",),
        synchronous=True,
        tracing=tracing,
        churns=churns,
        equal_churn=0.0,
        pace=0.0,
        gates_without_effect=(),
        checked=checked,
        streams=streams,
        load_before=0.25,
        at=1_700_000_000.0,
        machine=Machine(cores=2, cpu="c", python="3.11", nats_server="2.15"),
        commit=Commit("abc"),
    )
    return result.of(measured, setting)


def test_a_result_has_what_a_pod_cost():
    found = example()
    assert found.pods_bound == 10_000
    assert (found.seconds, found.long_enough) == (6.0, True)
    assert found.pods_per_second_durable == pytest.approx(1666.7)
    assert found.cpu_us_per_pod_by_process == {"scheduler": 200.0, "client": 100.0}
    assert found.cpu_us_per_pod == 300.0
    assert found.pss_mib == 100.0, "without the client"
    assert (found.messages_stored_per_pod, found.messages_from_server_per_pod) == (2.0, 4.0)
    assert found.conflicts == 3
    assert found.churn is not None
    assert (found.churn.rounds, found.churn.created) == (7, 10)


def test_a_result_can_be_read_at_eighty_columns():
    out = io.StringIO()
    Console(file=out, width=80).print(scheduler_perf.report(example(checked="nodes hold more than they have: n1")))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    for told in ("Basic/large", "10,000 pods bound in 6.00 s", "hold more than they have", "7 rounds", "3 conflicts"):
        assert told in text


def test_what_the_checker_says_is_shown_and_makes_a_result_wrong():
    def shown(found: Result) -> str:
        out = io.StringIO()
        Console(file=out, width=80).print(scheduler_perf.report(found))
        return out.getvalue()

    good = example()
    assert not good.wrong
    assert "judged 9,990 of 10,000 bindings by every rule: no fault" in shown(good)
    assert "not 10: gone" in shown(good)
    bad = example(streams=msgspec.structs.replace(GOOD, violations=("commit 2 binds p",), violated=1))
    assert bad.wrong
    assert "commit 2 binds p" in shown(bad)


def test_results_are_kept_read_and_compared(tmp_path: Path):
    found = example()
    text = plain.dump(found, "json")
    first, second = (kept.write(tmp_path, found, text) for _ in range(2))
    assert first != second
    assert kept.read(first) == [found]
    (tmp_path / "both.json").write_text(plain.dump([found, found], "json"))
    assert kept.read(tmp_path / "both.json") == [found, found]
    out = io.StringIO()
    Console(file=out, width=80).print(scheduler_perf.comparison([("one", found), ("b", example(tracing=1.0))]))
    assert "one: headline, fsync " in out.getvalue()
    assert "b: headline, fsync, 100%" in out.getvalue()
    assert f"{found.pods_per_second_average:,.1f}" in out.getvalue()


def test_a_result_says_at_which_pace_pods_were_created() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(scheduler_perf.report(example()))
    assert "were created at" not in out.getvalue()
    paced = msgspec.structs.replace(example(), pace=153.5)
    Console(file=out, width=80).print(scheduler_perf.report(paced))
    assert "pods were created at 153.5 a second" in out.getvalue()
    Console(file=out, width=120).print(scheduler_perf.comparison([("c", paced)]))
    assert "c: headline, fsync, 153.5 pods/s created" in out.getvalue()


@pytest.mark.parametrize("text", ["{", "{}", '[{"case": "a"}]', '{"case": 1}'])
def test_what_is_no_result_is_told(text: str, tmp_path: Path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match="no result of"):
        kept.read(tmp_path / "x.json")


@pytest.mark.parametrize(("suffix", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_throughput_is_drawn(suffix: str, begins: bytes, tmp_path: Path):
    picture = tmp_path / f"p.{suffix}"
    scheduler_perf_picture.draw([("one", example()), ("two", example(churns=False))], picture)
    assert picture.read_bytes().startswith(begins)


def test_all_figures_are_in_json():
    found = msgspec.json.decode(plain.dump(example(), "json"))
    assert {"case", "pods_per_second_average", "pods_bound", "seconds", "cpu_us_per_pod", "pss_mib"} <= found.keys()
