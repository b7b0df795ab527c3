"""What the scheduler counts under kube-scheduler's names: every attempt once, by how it ended and how long it
took; extension points; preemption; waits at Permit.

Source of the rules: kube-scheduler v1.36.2, pkg/scheduler/schedule_one.go, metrics/profile_metrics.go,
framework/runtime.
"""

from itertools import count
from typing import Any, ClassVar

import prometheus_client
import pytest

from podyard.framework import status as statuses
from podyard.framework.interfaces import PermitResult
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.scheduler.core.measured import Measured
from podyard.scheduler.core.scheduler import Scheduler
from podyard.scheduler.reference_metrics import ReferenceMetrics
from podyard.telemetry.tracing import SpanRecord, Spans
from tests.unit.framework.builders import make_node, make_pod, profile
from tests.unit.scheduler.play import SAMPLED, UNSAMPLED, Play

ATTEMPTS = "scheduler_schedule_attempts_total"
SECONDS = "scheduler_scheduling_attempt_duration_seconds"
POINTS = "scheduler_framework_extension_point_duration_seconds"


class Sink:
    def accept(self, span: SpanRecord) -> None:
        del span

    def sampled(self, trace_id: int, name: str) -> bool:
        del trace_id, name
        return False


class Watched(Play):
    """A play whose core is measured as the engine measures it."""

    def __init__(self, *nodes: Any, use: Profile | None = None, spans: Spans | None = None) -> None:
        super().__init__(*nodes, use=use)
        self.registry = prometheus_client.CollectorRegistry()
        self.metrics = ReferenceMetrics(self.registry, spans or Spans())
        self.metrics.show_cache(self.core.cache_sizes)

    def value(self, name: str, **labels: str) -> float | None:
        while (measured := self.core.take_measured()) is not None:
            self.metrics.measured(measured)
        return self.registry.get_sample_value(name, labels)

    def attempts(self) -> dict[str, float]:
        found = {result: self.value(ATTEMPTS, result=result, profile="default-scheduler") for result in RESULTS}
        assert {
            result: self.value(f"{SECONDS}_count", result=result, profile="default-scheduler") for result in RESULTS
        } == found
        return {result: number for result, number in found.items() if number}


RESULTS = ("scheduled", "unschedulable", "error")


def test_a_bound_pod_is_one_attempt_from_its_cycle_to_the_answer() -> None:
    play = Watched(make_node("a"))
    pod = make_pod("p")
    play.add(pod)
    (decision,) = play.schedule(pod)
    assert play.attempts() == {}, "decided is not bound"
    play.now += 0.5
    play.answer(decision, "bound")
    play.bind(decision)
    assert play.attempts() == {"scheduled": 1}
    assert play.value(f"{SECONDS}_sum", result="scheduled", profile="default-scheduler") == 0.5


@pytest.mark.parametrize("first", ["seen", "answered"])
def test_it_counts_once_whichever_is_heard_of_first(first: str) -> None:
    play = Watched(make_node("a"))
    pod = make_pod("p")
    play.add(pod)
    (decision,) = play.schedule(pod)
    if first == "seen":
        play.bind(decision)
    play.answer(decision, "bound")
    if first == "answered":
        play.bind(decision)
    assert play.attempts() == {"scheduled": 1}


def test_a_pod_that_fits_nowhere_is_unschedulable() -> None:
    play = Watched(make_node("a", cpu="1"))
    pod = make_pod("p", cpu="2")
    play.add(pod)
    play.schedule(pod)
    assert play.attempts() == {"unschedulable": 1}


def test_a_cluster_without_nodes_is_no_error() -> None:
    """Though the pod is retried as after one."""
    play = Watched()
    pod = make_pod("p")
    play.add(pod)
    play.schedule(pod)
    assert play.attempts() == {"unschedulable": 1}
    assert [result.outcome for result in play.results()] == ["error"]


def test_a_conflict_goes_on_in_its_attempt_until_the_binder_takes_it() -> None:
    play = Watched(make_node("a"), make_node("b"))
    pod = make_pod("p")
    play.add(pod)
    (decision,) = play.schedule(pod)
    play.now += 1.0
    play.answer(decision, "conflict", cause="fit")
    assert play.attempts() == {}
    (again,) = play.work()
    play.now += 1.0
    play.answer(again, "bound")
    assert play.attempts() == {"scheduled": 1}
    assert play.value(f"{SECONDS}_sum", result="scheduled", profile="default-scheduler") == 2.0


@pytest.mark.parametrize("answer", ["error", "gone", "alreadyBound"])
def test_what_is_not_bound_by_its_attempt_is_an_error(answer: Any) -> None:
    play = Watched(make_node("a"), make_node("b"))
    pod = make_pod("p")
    play.add(pod)
    (decision,) = play.schedule(pod)
    play.answer(decision, answer, node="b")
    assert play.attempts() == {"error": 1}


def test_a_pod_that_is_gone_before_its_cycle_is_no_attempt() -> None:
    play = Watched(make_node("a"))
    play.schedule(make_pod("p"))
    assert play.attempts() == {}
    assert play.value("scheduler_scheduling_algorithm_duration_seconds_count") == 0


class Waiting:
    name: ClassVar[str] = "Waiting"

    def permit(self, *_: Any) -> PermitResult:
        return PermitResult(status=statuses.wait(), timeout_s=10.0)


def waiting() -> Profile:
    plugins = (PrioritySort(), NodeResourcesFit(FitArgs()), Waiting())
    return resolve("default-scheduler", [Enabled(plugin=plugin) for plugin in plugins])


def test_waits_at_permit_are_timed_by_their_end() -> None:
    play = Watched(make_node("a"), use=waiting())
    pods = [make_pod("p"), make_pod("q")]
    play.add(*pods)
    play.schedule(*pods)
    assert play.value(f"{POINTS}_count", extension_point="Permit", status="Wait", profile="default-scheduler") == 2
    play.now += 4.0
    play.core_allow(pods[0].uid, "Waiting")
    (decision,) = play.work()
    play.now += 6.0
    play.work()
    wait = "scheduler_permit_wait_duration_seconds_sum"
    assert (play.value(wait, result="Success"), play.value(wait, result="Unschedulable")) == (4.0, 10.0)
    assert play.attempts() == {"unschedulable": 1}
    play.answer(decision, "bound")
    assert play.attempts() == {"unschedulable": 1, "scheduled": 1}


def test_a_pod_that_goes_while_it_waits_was_rejected_at_permit() -> None:
    play = Watched(make_node("a"), use=waiting())
    pod = make_pod("p")
    play.add(pod)
    play.schedule(pod)
    play.now += 3.0
    play.delete(pod)
    assert play.attempts() == {"unschedulable": 1}
    assert play.value("scheduler_permit_wait_duration_seconds_sum", result="Unschedulable") == 3.0


def test_extension_points_and_plugins_are_counted_for_each_pod() -> None:
    play = Watched(make_node("a"), make_node("b"))
    pods = [make_pod(f"p{number}") for number in range(3)]
    play.add(*pods)
    play.schedule(*pods)
    for point in ("PreFilter", "Filter", "PreScore", "Score"):
        labels = {"extension_point": point, "status": "Success", "profile": "default-scheduler"}
        assert play.value(f"{POINTS}_count", **labels) == 3, point
    evaluations = {"plugin": "NodeResourcesFit", "profile": "default-scheduler"}
    for point in ("PreFilter", "Filter", "Score"):
        assert play.value("scheduler_plugin_evaluation_total", extension_point=point, **evaluations) == 3, point
    assert play.value("scheduler_scheduling_algorithm_duration_seconds_count") == 3


def test_a_pod_that_one_node_takes_is_not_scored() -> None:
    play = Watched(make_node("a"))
    pod = make_pod("p")
    play.add(pod)
    play.schedule(pod)
    labels = {"extension_point": "Score", "status": "Success", "profile": "default-scheduler"}
    assert play.value(f"{POINTS}_count", **labels) is None


def test_the_cache_is_as_large_as_the_table_and_what_is_assumed() -> None:
    play = Watched(make_node("a"), make_node("b"))
    pods = [make_pod("p"), make_pod("q")]
    play.add(*pods)
    first, _ = play.schedule(*pods)
    play.answer(first, "bound")
    play.bind(first)
    sizes = {kind: play.value("scheduler_cache_size", type=kind) for kind in ("nodes", "pods", "assumed_pods")}
    assert sizes == {"nodes": 2, "pods": 2, "assumed_pods": 1}


def test_each_time_default_preemption_is_asked_counts() -> None:
    play = Watched(make_node("a", cpu="1"))
    pods = [make_pod("p", cpu="2"), make_pod("q")]
    play.add(*pods)
    play.schedule(*pods)
    asked = "DefaultPreemption" in [plugin.name for plugin in profile().post_filter]
    assert play.value("scheduler_preemption_attempts_total") == float(asked)


@pytest.mark.parametrize(
    ("trace", "fits", "kept"), [(SAMPLED, True, True), (UNSAMPLED, True, False), (UNSAMPLED, False, True)]
)
def test_examples_are_of_traces_that_are_kept(trace: str, fits: bool, kept: bool) -> None:
    """Failures are kept always."""
    play = Watched(make_node("a"), spans=Spans(Sink()))
    pod = make_pod("p", cpu="1" if fits else "64")
    play.add(pod)
    for decision in play.schedule(pod, trace=trace):
        play.answer(decision, "bound")
    play.attempts()
    (family,) = [one for one in play.registry.collect() if one.name == SECONDS]
    examples = [one.exemplar.labels["trace_id"] for one in family.samples if one.exemplar is not None]
    assert examples == ([trace[3:35]] if kept else [])


def test_one_cycle_in_ten_is_timed_plugin_by_plugin() -> None:
    ticks = count()
    play = Watched(make_node("a"), make_node("b"))
    play.core = Scheduler({"default-scheduler": profile()}, play.view, "s1", stopwatch=lambda: next(ticks) / 1000)
    for node in ("a", "b"):
        play.set_node(make_node(node))
    pods = [make_pod(f"p{number}", cpu=f"{100 + number}m") for number in range(20)]
    play.add(*pods)
    play.schedule(*pods)
    labels = {"plugin": "NodeResourcesFit", "extension_point": "PreFilter", "status": "Success"}
    assert play.value("scheduler_plugin_execution_duration_seconds_count", **labels) == 2
    assert play.value("scheduler_plugin_execution_duration_seconds_sum", **labels) == pytest.approx(0.002)


def test_nothing_is_told_of_a_step_that_measured_nothing() -> None:
    play = Play(make_node("a"))
    play.work()
    found: Measured | None = play.core.take_measured()
    assert found is None
