"""ReplicaSet: as many active pods as wanted, no duplicates, replacements that name what they replace."""

import random
import re

import pytest

from podyard.workloads.core import replica_sets
from podyard.workloads.core.actions import Create, Done, Tick
from podyard.workloads.core.receipts import Receipts
from tests.support.objects import decoded
from tests.unit.workloads.stage import Stage, replica_set


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_pods_are_made_from_the_template(stage: Stage):
    stage.apply(replica_set(3))
    stage.settle()
    assert len(stage.pods()) == 3
    for pod in stage.pods():
        assert re.fullmatch(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}", pod.name)
        owner = pod.stored.metadata.owner_references[0]
        assert (owner.kind, owner.name, owner.uid, owner.controller) == (
            "ReplicaSet",
            "web",
            stage.uid("replicasets", "web"),
            True,
        )
        assert pod.labels == {"app": "web"}
        document = stage.document("pods", pod.name)
        assert document["spec"]["schedulerName"] == "default-scheduler"  # admitted as any other pod
        assert document["metadata"]["creationTimestamp"]
    assert len({pod.uid for pod in stage.pods()}) == 3


def test_no_step_makes_or_ends_more_than_500_pods(stage: Stage):
    """Source: pkg/controller/replicaset/replica_set.go, BurstReplicas."""
    stage.hold = True
    stage.apply(replica_set(600))
    stage.settle()
    assert sum(isinstance(write, Create) for work in stage.works for write in work.writes) == 500
    stage.hold = False
    stage.settle()
    assert len(stage.pods()) == 600
    many = [pod for pod in stage.pods() if pod.stored.metadata.deletion_timestamp is None]
    chosen = replica_sets.plan(decoded("replicasets", replica_set(50)), many, many, Receipts(), stage.now)
    assert (chosen.create, len(chosen.delete)) == (0, 500)


def test_fields_that_no_view_knows_survive(stage: Stage):
    document = replica_set(1)
    document["spec"]["template"]["spec"]["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 5}}}
    stage.apply(document)
    stage.settle()
    (pod,) = stage.pods()
    assert stage.document("pods", pod.name)["spec"]["containers"][0]["lifecycle"] == {
        "preStop": {"sleep": {"seconds": 5}}
    }


def test_status_follows_the_pods(stage: Stage):
    stage.apply(replica_set(2))
    stage.settle()
    assert stage.document("replicasets", "web")["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "observedGeneration": 1,
    }
    stage.run_all()
    assert stage.document("replicasets", "web")["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }


def test_a_pod_is_available_only_after_min_ready_seconds(stage: Stage):
    stage.apply(replica_set(1, minReadySeconds=30))
    stage.settle()
    stage.run_all()
    assert "availableReplicas" not in stage.document("replicasets", "web")["status"]
    assert stage.core.wake_at < stage.now + 31
    stage.pass_time(31)
    assert stage.document("replicasets", "web")["status"]["availableReplicas"] == 1


def test_a_pod_whose_agents_clock_is_ahead_is_available_in_time(stage: Stage):
    stage.agents_ahead_s = 3600.0
    test_a_pod_is_available_only_after_min_ready_seconds(stage)


def test_it_comes_to_rest(stage: Stage):
    stage.apply(replica_set(2))
    stage.settle()
    stage.run_all()
    works = len(stage.works)
    stage.pass_time(600)
    assert len(stage.works) == works


def test_own_creations_that_the_view_does_not_show_are_not_made_again(stage: Stage):
    """Nor while they are under way: everything else may concern the ReplicaSet meanwhile."""
    stage.apply(replica_set(3))
    stage.hold = True
    stage.settle()
    stage.change("replicasets", "web", lambda document: document["metadata"].setdefault("labels", {}).update(a="b"))
    stage.settle()
    assert len(stage.held) == 1
    dones = [stage.carry_out(work) for work in stage.held]
    stage.held.clear()
    shown, stage.read = stage.read, stage.stream.last  # written and answered, the view stands still
    for done in dones:
        stage.step(done)
    stage.now += 1
    stage.step(Tick())
    assert not stage.held
    stage.read, stage.hold = shown, False
    stage.settle()
    assert len(stage.pods()) == 3


def test_after_a_fail_over_counts_come_from_the_listing(stage: Stage):
    stage.apply(replica_set(3))
    stage.hold = True
    stage.settle()
    for work in list(stage.held):
        stage.carry_out(work)  # written, the answer never came
    stage.hold = False
    stage.begin()
    stage.settle()
    assert len(stage.pods()) == 3


def test_creations_of_a_leader_before_that_arrive_late_are_surplus(stage: Stage):
    stage.apply(replica_set(2))
    stage.hold = True
    stage.settle()
    late = list(stage.held)
    stage.hold = False
    stage.begin()
    stage.settle()
    for work in late:
        stage.carry_out(work)
    stage.settle()
    assert len(stage.active()) == 2


@pytest.mark.parametrize("how", ["deleted", "evicted", "failed", "nodeGone"])
def test_a_lost_pod_is_replaced(stage: Stage, how: str):
    stage.apply(replica_set(2))
    stage.settle()
    stage.run_all()
    lost = stage.pods()[0].name
    match how:
        case "deleted":
            stage.remove("pods", lost)
        case "evicted":
            stage.evict(lost)
        case "failed":
            stage.report(lost, phase="Failed", ready=False, ended=True)
        case _:
            stage.release_pod(lost, "nodeGone")
    stage.settle()
    assert len(stage.active()) == 2
    assert lost not in [pod.name for pod in stage.active()]


def test_refused_pods_are_made_again_after_a_growing_pause(stage: Stage):
    """docs/rules.md, refused-pods-are-made-again-slowly"""
    stage.apply(replica_set(1))
    stage.settle()
    for pause_s in (10, 20, 40, 80, 160, 300, 300):
        stage.refuse(stage.active()[0].name)
        stage.pass_time(pause_s - 2)
        assert not stage.active(), pause_s
        stage.pass_time(2.5)
        assert len(stage.active()) == 1, pause_s


def test_in_an_hour_a_pinned_pod_on_a_full_node_is_made_a_dozen_times_or_so(stage: Stage):
    stage.apply(replica_set(1))
    stage.settle()
    for _ in range(360):
        if stage.active():
            stage.refuse(stage.active()[0].name)
        stage.pass_time(9.9)
    assert 12 <= len(stage.pods()) <= 18


def test_a_refused_pod_whose_agents_clock_is_ahead_is_made_again_in_time(stage: Stage):
    stage.agents_ahead_s = 3600.0
    test_refused_pods_are_made_again_after_a_growing_pause(stage)


def test_a_new_leader_goes_on_pausing(stage: Stage):
    stage.apply(replica_set(1))
    stage.settle()
    stage.refuse(stage.active()[0].name)
    stage.begin()
    stage.settle()
    assert not stage.active()
    stage.pass_time(10)
    assert len(stage.active()) == 1


def test_a_pod_that_is_refused_beside_others_that_run_is_made_again_at_once(stage: Stage):
    """A race for a node's last room says nothing about the next one; that the next is refused, too, does."""
    stage.apply(replica_set(3))
    stage.settle()
    stage.pass_time(2)
    one, *others = [pod.name for pod in stage.active()]
    stage.bind(*others)
    stage.report(*others)
    stage.refuse(one)
    assert len(stage.active()) == 3
    stage.pass_time(60)
    (again,) = [pod.name for pod in stage.active() if pod.bound is None]
    stage.refuse(again)
    assert len(stage.active()) == 2
    stage.pass_time(10)
    assert len(stage.active()) == 3
    stage.run_all()
    stage.pass_time(60)
    stage.evict(others[0])
    stage.settle()
    assert len(stage.active()) == 3, "and what runs ends the row"


def test_a_replacement_that_had_to_wait_names_its_cause(stage: Stage):
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    stage.apply(replica_set(2))
    stage.settle()
    one, other = [pod.name for pod in stage.active()]
    stage.bind(other)
    stage.settle()
    stage.evict(other, trace=trace)
    stage.refuse(one)
    names = [pod.name for pod in stage.pods()]
    stage.pass_time(10)
    new = [pod.name for pod in stage.active() if pod.name not in names]
    assert new
    assert trace in [cause for pod in stage.active() for cause in stage.stored("pods", pod.name).event.causes]


def test_a_replacement_names_the_eviction_as_its_cause(stage: Stage):
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    stage.apply(replica_set(2))
    stage.settle()
    names = stage.run_all()
    stage.evict(names[0], trace=trace)
    stage.settle()
    (new,) = [pod.name for pod in stage.active() if pod.name not in names]
    assert stage.stored("pods", new).event.causes == (trace,)


def test_each_replacement_has_one_cause_and_old_ones_are_forgotten(stage: Stage):
    first, second = ("00-" + letter * 32 + "-" + "b" * 16 + "-01" for letter in "12")
    stage.apply(replica_set(2))
    stage.settle()
    names = stage.run_all()
    stage.evict(names[0], trace=first)
    stage.report(names[1], phase="Failed", ready=False, ended=True, trace=second)
    stage.settle()
    new = [pod.name for pod in stage.active()]
    assert {stage.stored("pods", name).event.causes for name in new} == {(first,), (second,)}
    stage.run_all()
    stage.change("replicasets", "web", lambda document: document["spec"].update(replicas=1))
    stage.settle()
    gone = next(pod.name for pod in stage.pods() if pod.deleting and pod.name in new)
    stage.evict(gone, trace=first)  # it is on its way out already: nothing is lost by this
    stage.change("replicasets", "web", lambda document: document["spec"].update(replicas=3))
    stage.settle()
    fresh = [pod.name for pod in stage.active() if pod.name not in new]
    assert [stage.stored("pods", name).event.causes for name in fresh] == [(), ()]


def test_a_loss_that_needs_no_replacement_is_no_cause_of_later_pods(stage: Stage):
    stage.apply(replica_set(2))
    stage.settle()
    names = stage.run_all()
    stage.change("replicasets", "web", lambda document: document["spec"].update(replicas=1))
    stage.evict(names[0], trace="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    stage.settle()
    stage.change("replicasets", "web", lambda document: document["spec"].update(replicas=2))
    stage.settle()
    (new,) = [pod.name for pod in stage.active() if pod.name not in names]
    assert stage.stored("pods", new).event.causes == ()


def test_names_of_one_look_differ_even_if_chance_repeats_itself(stage: Stage):
    class Stutter(random.Random):
        """Each choice comes twice."""

        drawn: list[str] | None = None

        def choices(self, population, *, k=1, **more):  # pyright: ignore[reportIncompatibleMethodOverride]
            again, self.drawn = self.drawn, None
            if again is None:
                self.drawn = again = super().choices(population, k=k)
            return again

    stage.core._syncing._maker = stage.core._syncing._maker._replace(random=Stutter(3))
    stage.apply(replica_set(6))
    stage.settle()
    assert len(stage.pods()) == 6
    assert len([work for work in stage.works if any(isinstance(write, Create) for write in work.writes)]) == 1


def test_surplus_pods_are_deleted_as_pods_are(stage: Stage):
    stage.apply(replica_set(3))
    stage.settle()
    bound = stage.run_all()
    stage.change("replicasets", "web", lambda document: document["spec"].update(replicas=1))
    stage.settle()
    assert len(stage.active()) == 1
    assert sum(1 for pod in stage.pods() if pod.deleting) == 2  # bound ones get their grace period
    assert len(bound) == 3


def test_an_invalid_template_is_reported_and_not_repeated_at_once(stage: Stage):
    document = replica_set(1)
    document["spec"]["template"]["spec"]["priorityClassName"] = "nobody"
    stage.apply(document)
    stage.settle()
    assert [failed.reason for failed in stage.failed] == ["FailedCreate"]
    assert "nobody" in stage.failed[0].detail
    stage.pass_time(5)
    assert len(stage.failed) == 1


def test_a_failed_write_is_tried_again(stage: Stage):
    stage.apply(replica_set(1))
    stage.hold = True
    stage.settle()
    work = stage.held.popleft()
    stage.step(Done(work.owner, 0, ("no room",)))
    stage.hold = False
    stage.settle()
    assert not stage.pods()
    stage.pass_time(0.6)
    assert len(stage.pods()) == 1


def test_pods_of_a_deleted_replica_set_go(stage: Stage):
    stage.apply(replica_set(2))
    stage.settle()
    stage.run_all()
    stage.remove("replicasets", "web")
    stage.settle()
    assert all(pod.deleting for pod in stage.pods())
    for pod in stage.pods():
        stage.report(pod.name, phase="Succeeded", ready=False, ended=True)
        stage.release_pod(pod.name)
    stage.settle()
    assert not stage.pods()


def test_orphans_are_found_in_a_listing(stage: Stage):
    stage.apply(replica_set(1))
    stage.settle()
    stage.remove("replicasets", "web")
    stage.begin()  # the leader before had no time for it
    stage.settle()
    assert not stage.pods()
