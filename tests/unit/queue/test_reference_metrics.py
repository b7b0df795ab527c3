"""What the queue counts under kube-scheduler's names: which pods entered which queue and why, how long pods
took, what changes of the cluster cost.

Source of the rules: kube-scheduler v1.36.2, pkg/scheduler/backend/queue, eventhandlers.go, schedule_one.go.
"""

from collections.abc import Mapping

import prometheus_client
import pytest

from podyard.cluster.changes import Change, Origin
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.framework import events
from podyard.framework.events import ClusterEvent
from podyard.proto.actions import ActionType
from podyard.proto.placement import Release
from podyard.queue.core import listing
from podyard.queue.core.changes import Changes
from podyard.queue.core.effects import AttemptEnded
from podyard.queue.core.messages import Incoming
from podyard.queue.core.scheduling_queue import MAX_UNSCHEDULABLE_S
from podyard.queue.core.tally import Counted
from podyard.queue.instruments import MOST_EVENTS, OTHERS, Instruments
from podyard.telemetry.tracing import SpanRecord, Spans
from tests.support import objects
from tests.unit.queue.play import new_queue, node_event, park, queued
from tests.unit.queue.test_changes import PROFILES, view
from tests.unit.queue.test_leader import Stage

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Sink:
    def accept(self, span: SpanRecord) -> None:
        del span

    def sampled(self, trace_id: int, name: str) -> bool:
        del trace_id, name
        return True


class TestIncoming:
    def test_a_new_pod_enters_activeq_or_is_gated(self) -> None:
        queue = new_queue()
        queue.add(queued("a"), 0.0)
        queue.add(queued("b", 0.0, "gate"), 0.0)
        assert queue.tally.take().entered == {
            ("active", "UnschedulablePodAdd"): 1,
            ("unschedulable", "UnschedulablePodAdd"): 1,
        }

    def test_a_failed_attempt_parks_it_or_sends_it_to_backoff(self) -> None:
        queue = new_queue()
        for name in "ab":
            queue.add(queued(name), 0.0)
            queue.pop()
        queue.tally.take()
        queue.fail("uid-a", 0.0, unschedulable=["OnNodes"])
        queue.fail("uid-b", 0.0)
        assert queue.tally.take().entered == {
            ("unschedulable", "ScheduleAttemptFailure"): 1,
            ("backoff", "ScheduleAttemptFailure"): 1,
        }

    def test_an_event_names_what_it_moves(self) -> None:
        queue = new_queue()
        park(queue, "p", "OnNodes")
        park(queue, "q", "OnNodes")
        queue.tally.take()
        queue.move_all(node_event("p"), 60.0)
        queue.move_all(node_event("q", action=ActionType.UPDATE_NODE_LABEL), 0.0)
        assert queue.tally.take().entered == {
            ("active", "NodeAdd"): 1,
            ("backoff", "NodeUpdateNodeLabel"): 1,
        }

    def test_the_end_of_a_backoff_and_a_pop_out_of_it_have_names_of_their_own(self) -> None:
        queue = new_queue()
        for name in "pq":
            park(queue, name, "OnNodes")
        queue.move_all(node_event("p", "q"), 0.0)
        queue.tally.take()
        assert queue.pop() is not None
        queue.flush_backoff(60.0)
        assert queue.tally.take().entered == {("active", "PopFromBackoffQ"): 1, ("active", "BackoffComplete"): 1}

    def test_an_activation_and_the_safety_flush(self) -> None:
        queue = new_queue()
        for name in "pq":
            park(queue, name, "OnNodes")
        queue.tally.take()
        queue.activate("uid-p", 10.0)
        late = MAX_UNSCHEDULABLE_S + 20
        queue.flush_unschedulable(Incoming(event=events.UNSCHEDULABLE_TIMEOUT), late)
        assert queue.tally.take().entered == {("active", "ForceActivate"): 1, ("active", "UnschedulableTimeout"): 1}

    def test_a_gated_pod_whose_gate_stays_enters_nothing(self) -> None:
        queue = new_queue()
        queue.add(queued("p", 0.0, "gate"), 0.0)
        queue.tally.take()
        queue.activate("uid-p", 10.0)
        assert queue.pods["uid-p"].pool == "gated"
        assert not queue.tally

    def test_a_parked_pod_that_stays_enters_nothing(self) -> None:
        queue = new_queue()
        park(queue, "p", "OnNodes")
        queue.tally.take()
        queue.move_all(node_event("another"), 60.0)
        assert not queue.tally


class TestHandled:
    """Labels are those of the handlers of eventhandlers.go."""

    @pytest.fixture
    def stage(self) -> Stage:
        return Stage()

    def labels(self, stage: Stage, change: Change) -> list[str]:
        ticks = iter(range(100))
        stage.queue.timer = lambda: float(next(ticks))
        Changes(stage.leader, PROFILES).apply(change, stage.now)
        handled = stage.queue.tally.take().handled
        assert {seconds for _, seconds in handled} <= {1.0}
        return sorted(label for labels, _ in handled for label in labels)

    def test_a_pod_comes_changes_and_goes(self, stage: Stage) -> None:
        first, second = view("p"), view("p", labels=("a",), sequence=2)
        assert self.labels(stage, pod_change(None, first)) == ["UnschedulablePodAdd"]
        assert self.labels(stage, pod_change(first, second)) == [
            "UnschedulablePodUpdate",
            "UnschedulablePodUpdatePodLabel",
        ]
        assert self.labels(stage, pod_change(second, None)) == ["UnschedulablePodDelete"]

    def test_a_bound_pod_is_taken_in_by_one_handler_and_let_go_by_another(self, stage: Stage) -> None:
        pod, bound = view("p"), view("p", node="n")
        self.labels(stage, pod_change(None, pod))
        change = Change("pods", pod.uid, pod, bound, Origin(), bound=True)
        assert self.labels(stage, change) == ["AssignedPodAdd", "UnschedulablePodDelete"]

    def test_an_assigned_pod_changes_and_ends(self, stage: Stage) -> None:
        before, after = view("p", node="n"), view("p", node="n", labels=("a",), sequence=2)
        changed = pod_change(before, after)
        assert self.labels(stage, changed) == ["AssignedPodUpdate", "AssignedPodUpdatePodLabel"]
        release = Release(namespace="default", name="p", uid="uid-p", node="n", reason="completed")
        ended = view("p", sequence=3, release=release)
        change = Change("pods", "uid-p", after, ended, Origin(), release=release)
        assert self.labels(stage, change) == ["AssignedPodDelete"]
        assert self.labels(stage, pod_change(ended, None)) == [], "its object goes: the room came free before"

    def test_a_node_and_what_no_plugin_registered(self, stage: Stage) -> None:
        node = NodeView(objects.typed_node("n"), "n", "n", 1)
        assert self.labels(stage, Change("nodes", "n", None, node, Origin())) == ["NodeAdd"]
        driver = objects.decoded("csidrivers", {"metadata": {"name": "d"}, "spec": {}})
        assert self.labels(stage, Change("csidrivers", "d", None, driver, Origin())) == []


def pod_change(old: PodView | None, new: PodView | None) -> Change:
    return Change("pods", "uid-p", old, new, Origin())


def counted(registry: prometheus_client.CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_rejected_pods_count_for_each_plugin_until_they_are_popped() -> None:
    stage = Stage()
    stage.park("a", "OnNodes", "OnPods")
    stage.park("b", "OnNodes")
    stage.add("c")
    assert listing.rejected(stage.leader) == {("OnNodes", "default-scheduler"): 2, ("OnPods", "default-scheduler"): 1}
    stage.queue.move_all(node_event("a"), stage.now + 60)
    assert listing.rejected(stage.leader)["OnNodes", "default-scheduler"] == 2, "it is rejected while it is in activeQ"
    popped = {stage.take().name, stage.take().name}
    assert popped == {"a", "c"}
    assert listing.rejected(stage.leader) == {("OnNodes", "default-scheduler"): 1}
    stage.queue.delete("uid-b")
    assert listing.rejected(stage.leader) == {}


def test_events_for_pods_in_flight_are_counted_by_label() -> None:
    queue = new_queue()
    queue.add(queued("a"), 0.0)
    queue.pop()
    for _ in range(2):
        queue.move_all(node_event("x"), 0.0)
    assert queue.in_flight.counts() == {"PodPopped": 1, "NodeAdd": 2}
    queue.done("uid-a")
    assert queue.in_flight.counts() == {"PodPopped": 0}


class TestDurations:
    @pytest.fixture
    def registry(self) -> prometheus_client.CollectorRegistry:
        return prometheus_client.CollectorRegistry()

    def ended(self, stage: Stage) -> AttemptEnded:
        (found,) = [one for one in stage.queue.take_effects() if isinstance(one, AttemptEnded)]
        return found

    def bind(self, stage: Stage) -> AttemptEnded:
        popped = stage.take()
        stage.done(popped, "scheduled", node="n")
        stage.leader.bound(stage.queue.pods[popped.uid], "n", popped.attempt, stage.now)
        return self.ended(stage)

    def test_time_in_which_a_pod_is_gated_is_not_in_its_sli(
        self, registry: prometheus_client.CollectorRegistry
    ) -> None:
        stage = Stage()
        stage.preemptions.start("uid-p")
        (pod,) = stage.add("p")
        assert pod.pool == "gated"
        stage.now += 100
        stage.preemptions.end("uid-p")
        stage.queue.activate("uid-p", stage.now)
        stage.now += 3
        instruments = Instruments(registry, Spans())
        instruments.ended([self.bind(stage)])
        name = "scheduler_pod_scheduling_sli_duration_seconds"
        assert counted(registry, f"{name}_sum", attempts="1") == 3
        assert counted(registry, "scheduler_pod_scheduling_attempts_count") == 1

    def test_several_attempts_count_from_the_first_and_by_their_number(
        self, registry: prometheus_client.CollectorRegistry
    ) -> None:
        stage, instruments = Stage(), Instruments(registry, Spans())
        stage.add("p")
        for _ in range(2):
            stage.done(stage.take(), "unschedulable", unschedulable_plugins=["OnNodes"])
            instruments.ended([self.ended(stage)])
            stage.now += 20
            stage.queue.activate("uid-p", stage.now)
        instruments.ended([self.bind(stage)])
        assert counted(registry, "scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="3") == 40
        assert counted(registry, "scheduler_pod_scheduling_attempts_sum") == 3
        assert counted(registry, "scheduler_pod_scheduling_attempts_count") == 1, "failures are no bindings"
        assert counted(registry, "scheduler_pod_scheduled_after_flush_total") == 0

    def test_very_many_attempts_have_one_label(self, registry: prometheus_client.CollectorRegistry) -> None:
        stage = Stage()
        (pod,) = stage.add("p")
        pod.attempts = 22
        Instruments(registry, Spans()).ended([self.bind(stage)])
        assert counted(registry, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts="15+") == 1

    def test_a_pod_that_the_safety_flush_brought_back_is_counted(
        self, registry: prometheus_client.CollectorRegistry
    ) -> None:
        stage = Stage()
        stage.park("p", "OnNodes")
        stage.queue.take_effects()
        stage.now += MAX_UNSCHEDULABLE_S + 1
        stage.queue.flush_unschedulable(Incoming(event=events.UNSCHEDULABLE_TIMEOUT), stage.now)
        Instruments(registry, Spans()).ended([self.bind(stage)])
        assert counted(registry, "scheduler_pod_scheduled_after_flush_total") == 1

    @pytest.mark.parametrize("sampled", [True, False])
    def test_a_kept_trace_is_the_example_of_its_bucket(
        self, registry: prometheus_client.CollectorRegistry, sampled: bool
    ) -> None:
        stage = Stage()
        stage.leader._new_trace = lambda keep: SAMPLED if sampled else SAMPLED[:-1] + "0"
        stage.add("p")
        ended = self.bind(stage)
        Instruments(registry, Spans(Sink())).ended([ended], [ended])
        (family,) = [one for one in registry.collect() if one.name == "scheduler_pod_scheduling_sli_duration_seconds"]
        examples: list[Mapping[str, str]] = [one.exemplar.labels for one in family.samples if one.exemplar is not None]
        assert examples == ([{"trace_id": SAMPLED[3:35], "span_id": SAMPLED[36:52]}] if sampled else [])


def test_made_up_events_share_one_label() -> None:
    registry = prometheus_client.CollectorRegistry()
    instruments = Instruments(registry, Spans())
    labels = [
        ClusterEvent(f"things.v1.g{number}.example.com", ActionType.ADD).label for number in range(MOST_EVENTS + 9)
    ]
    instruments.counted(Counted({("active", label): 1 for label in labels}, [((label,), 0.001) for label in labels]))
    assert counted(registry, "scheduler_queue_incoming_pods_total", queue="active", event=OTHERS) == 9
    assert counted(registry, "scheduler_event_handling_duration_seconds_count", event=OTHERS) == 9
