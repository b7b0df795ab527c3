"""One cycle in ten is timed plugin by plugin; each pod counts for the plugins that judged it or its like.

Source of the rules: kube-scheduler v1.36.2, framework/runtime/instrumented_plugins.go, schedule_one.go.
"""

from collections import Counter
from itertools import count

from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.plugin_times import MOST, TIMED_EVERY, PluginTimes
from tests.unit.framework.builders import make_node, make_pod, profile, snapshot_of


def ticking() -> PluginTimes:
    ticks = count()
    return PluginTimes(lambda: float(next(ticks)))


def evaluated(result: CycleResult) -> dict[str, tuple[str, ...]]:
    return {point: plugins for one in result.evaluated for point, plugins in one.points}


def test_one_cycle_in_ten_is_timed_the_first_one_too() -> None:
    times = ticking()
    cycle = Cycle(profile(), snapshot_of(make_node("a"), make_node("b")), times.watch, plugin_times=times)
    timed = []
    for number in range(2 * TIMED_EVERY + 1):
        cycle.run(make_pod(f"p{number}", cpu=str(1 + number)))  # no two are alike
        timed.append(bool(times.take()))
    assert [number for number, found in enumerate(timed) if found] == [0, TIMED_EVERY, 2 * TIMED_EVERY]


def test_calls_are_timed_with_plugin_point_and_status() -> None:
    times = ticking()
    snapshot = snapshot_of(make_node("a", cpu="1"), make_node("b", cpu="4"), make_node("c", cpu="4"))
    Cycle(profile(), snapshot, times.watch, plugin_times=times).run(make_pod("p", cpu="2"))
    found = times.take()
    assert {one.seconds for one in found} == {1.0}
    calls = Counter((one.plugin, one.point, one.status) for one in found)
    assert calls["NodeResourcesFit", "PreFilter", "Success"] == 1
    assert calls["NodeResourcesFit", "Filter", "Unschedulable"] == 1, "one call about all three nodes"
    assert calls["NodeUnschedulable", "Filter", "Success"] == 1
    assert calls["NodeResourcesFit", "Score", "Success"] == 1
    assert calls["TaintToleration", "PreScore", "Success"] == 1
    assert calls["TaintToleration", "ScoreExtensionNormalize", "Success"] == 1


def test_what_is_known_of_a_pods_like_is_not_asked_again_and_the_pod_counts_all_the_same() -> None:
    times = ticking()
    cycle = Cycle(profile(), snapshot_of(make_node("a"), make_node("b")), times.watch, plugin_times=times)
    first = cycle.run(make_pod("p"))
    times.take()
    for number in range(TIMED_EVERY):
        last = cycle.run(make_pod(f"q{number}"))
    assert times.take() == [], "the cycle was timed, and no plugin was asked"
    assert evaluated(last) == evaluated(first)
    assert [id(one) for one in last.evaluated] == [id(one) for one in first.evaluated]


def test_plugins_that_skip_a_pod_or_that_no_node_gets_to_have_not_judged_it() -> None:
    snapshot = snapshot_of(make_node("a", unschedulable=True), make_node("b", unschedulable=True))
    result = Cycle(profile(), snapshot).run(make_pod("p"))
    found = evaluated(result)
    assert result.node == ""
    assert found["Filter"] == ("NodeUnschedulable",), "it rejects all, so that nobody else is asked"
    assert "NodePorts" not in found["PreFilter"], "a pod without host ports"
    assert "Score" not in found


def test_after_a_pod_that_fitted_nowhere_its_like_counts_for_all_again() -> None:
    snapshot = snapshot_of(make_node("a", cpu="1"))
    cycle = Cycle(profile(), snapshot)
    assert cycle.run(make_pod("p", cpu="2")).node == ""
    snapshot.nodes.set_node(make_node("a", cpu="4"))
    fits = cycle.run(make_pod("q", cpu="2"))
    assert fits.node == "a"
    assert {"NodeResourcesFit", "NodeUnschedulable"} <= set(evaluated(fits)["Filter"])


def test_without_somebody_who_takes_them_there_are_only_so_many() -> None:
    times = ticking()
    for _ in range(MOST + 10):
        times.note("p", "Filter", "Success", 0.0)
    assert len(times.take()) == MOST
