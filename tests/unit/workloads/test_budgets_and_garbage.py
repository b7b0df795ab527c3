"""Status of disruption budgets, markers of pods that have ended, background garbage collection."""

import pytest

from podyard.bus import Outgoing
from podyard.cluster.keys import ObjectKey
from podyard.objects import times
from podyard.proto import subjects
from podyard.workloads.core.pods import is_active
from tests.support.objects import pod, written
from tests.unit.workloads.stage import Stage, budget, deployment, replica_set, stateful_set


@pytest.fixture
def stage() -> Stage:
    return Stage()


def status(stage: Stage) -> tuple[int, int, int, int]:
    """expected, desired, healthy, allowed."""
    found = stage.document("poddisruptionbudgets", "web").get("status", {})
    names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(found.get(name, 0) for name in names)  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"minAvailable": 3}, (4, 3, 4, 1), id="at least three"),
        pytest.param({"minAvailable": "50%"}, (4, 2, 4, 2), id="at least half"),
        pytest.param({"minAvailable": "60%"}, (4, 3, 4, 1), id="rounded up"),
        pytest.param({"maxUnavailable": 1}, (4, 3, 4, 1), id="at most one missing"),
        pytest.param({"maxUnavailable": "30%"}, (4, 2, 4, 2), id="missing rounded up"),
        pytest.param({"minAvailable": 9}, (4, 9, 4, 0), id="more than there are"),
    ],
)
def test_status(stage: Stage, spec: dict, expected: tuple[int, ...]):
    stage.apply(deployment(4))
    stage.apply(budget(**spec))
    stage.settle()
    stage.run_all()
    assert status(stage) == expected


def test_the_scale_that_counts_is_the_deployments(stage: Stage):
    stage.apply(deployment(4))
    stage.apply(budget(maxUnavailable=1))
    stage.settle()
    stage.run_all()
    stage.apply(deployment(6))
    stage.settle()
    assert status(stage) == (6, 5, 4, 0)


def test_conditions_say_whether_disruptions_are_allowed(stage: Stage):
    stage.apply(replica_set(1))
    stage.apply(budget(minAvailable=1))
    stage.settle()
    stage.run_all()
    (condition,) = stage.document("poddisruptionbudgets", "web")["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "False",
        "InsufficientPods",
    )


def test_a_granted_eviction_counts_until_it_shows(stage: Stage):
    stage.apply(replica_set(3))
    stage.apply(budget(minAvailable=1))
    stage.settle()
    names = stage.run_all()
    granted = {names[0]: times.rfc3339(stage.now)}
    stage.change("poddisruptionbudgets", "web", lambda document: document["status"].update(disruptedPods=granted))
    stage.settle()
    assert status(stage)[2:] == (2, 1)
    assert stage.document("poddisruptionbudgets", "web")["status"]["disruptedPods"] == granted
    stage.evict(names[0])
    stage.settle()
    assert "disruptedPods" not in stage.document("poddisruptionbudgets", "web")["status"]
    assert status(stage)[2] == 2


def test_a_granted_eviction_that_never_shows_times_out(stage: Stage):
    stage.apply(replica_set(2))
    stage.apply(budget(minAvailable=1))
    stage.settle()
    names = stage.run_all()
    granted = {names[0]: times.rfc3339(stage.now)}
    stage.change("poddisruptionbudgets", "web", lambda document: document["status"].update(disruptedPods=granted))
    stage.settle()
    assert status(stage)[3] == 0
    stage.pass_time(121)
    assert status(stage)[3] == 1


def test_other_namespaces_and_labels_do_not_count(stage: Stage):
    stage.apply(replica_set(2))
    stage.apply(budget(minAvailable=1, selector={"matchLabels": {"app": "db"}}))
    stage.settle()
    stage.run_all()
    assert status(stage) == (0, 1, 0, 0)


def bare(name: str, **metadata) -> dict:
    """A pod that nothing controls, unless the metadata say so."""
    return written(pod(name, labels={"app": "web"}, metadata=metadata))


def test_pods_without_a_controller_count_for_a_number(stage: Stage):
    stage.apply(budget(minAvailable=1))
    for name in ("a", "b"):
        stage.apply(bare(name))
    stage.settle()
    stage.run_all()
    assert status(stage) == (2, 1, 2, 1)
    stage.report("a", ready=False)
    stage.settle()
    assert status(stage) == (2, 1, 1, 0)


def test_a_workload_that_is_scaled_changes_what_is_expected(stage: Stage):
    stage.apply(stateful_set(1))
    stage.apply(budget(maxUnavailable=1))
    stage.settle()
    assert status(stage)[0] == 1
    stage.change("statefulsets", "db", lambda document: document["spec"].update(replicas=3))
    stage.settle()
    assert status(stage)[0] == 3


def test_a_rollout_does_not_count_twice(stage: Stage):
    stage.apply(deployment(4))
    stage.apply(budget(maxUnavailable=1))
    stage.settle()
    stage.run_all()
    stage.apply(deployment(4, image="web:2"))
    stage.settle()
    assert len(stage.all("replicasets")) == 2
    assert status(stage)[0] == 4


def test_a_new_selector_selects_anew(stage: Stage):
    stage.apply(bare("a"))
    stage.apply(budget(minAvailable=1))
    stage.settle()
    assert status(stage)[0] == 1
    other = {"matchLabels": {"app": "db"}}
    stage.change("poddisruptionbudgets", "web", lambda document: document["spec"].update(selector=other))
    stage.settle()
    assert status(stage)[0] == 0


# ---- pods that have ended


def test_a_pod_that_only_waits_is_left_alone(stage: Stage):
    stage.apply(bare("a"))
    stage.settle()
    assert stage.core._syncing.look(ObjectKey("pods", "default", "a"), stage.now).writes == ()


def test_a_released_pod_is_no_replica_whatever_its_status_says(stage: Stage):
    stage.apply(bare("a"))
    stage.settle()
    stage.run_all()
    (pod,) = stage.pods()
    assert is_active(pod)
    stage.release_pod("a", "completed")
    (pod,) = stage.pods()
    assert not is_active(pod)


def test_a_pod_goes_when_it_is_deleting_and_released(stage: Stage):
    stage.apply(replica_set(1))
    stage.settle()
    (name,) = stage.run_all()
    stage.evict(name)
    stage.settle()
    assert stage.exists("pods", name)
    stage.report(name, phase="Succeeded", ready=False, ended=True)
    stage.settle()
    assert stage.exists("pods", name)
    stage.release_pod(name)
    stage.settle()
    assert not stage.exists("pods", name)


def test_a_pod_that_completed_stays(stage: Stage):
    stage.apply(replica_set(1))
    stage.settle()
    (name,) = stage.run_all()
    stage.report(name, phase="Failed", ready=False, ended=True)
    stage.release_pod(name, "completed")
    stage.settle()
    assert stage.exists("pods", name)


def test_a_pod_whose_node_is_gone_goes(stage: Stage):
    stage.apply(bare("single"))
    stage.settle()
    stage.bind("single")
    stage.settle()
    stage.release_pod("single", "nodeGone")
    stage.settle()
    assert not stage.exists("pods", "single")


def test_an_unbound_pod_that_is_being_deleted_goes(stage: Stage):
    stage.apply(bare("single"))
    stage.evict("single")
    stage.settle()
    assert not stage.exists("pods", "single")


def test_a_pod_of_whose_place_nothing_is_known_stays_until_something_is(stage: Stage):
    """It may run: what its binding says cannot be read."""
    stage.apply(bare("single"))
    stage.stream.put(Outgoing(subjects.binding("default", "single", stage.uid("pods", "single")), b"7"))
    stage.begin()
    stage.evict("single")
    stage.settle()
    assert stage.exists("pods", "single")
    stage.release_pod("single")
    stage.settle()
    assert not stage.exists("pods", "single")


def test_pods_that_ended_while_nobody_led_go(stage: Stage):
    stage.apply(replica_set(1))
    stage.settle()
    (name,) = stage.run_all()
    stage.evict(name)
    stage.release_pod(name)
    stage.begin()
    stage.settle()
    assert not stage.exists("pods", name)


# ---- ended pods


def end(stage: Stage, name: str, created: str, *, released: bool = True, **said) -> None:
    stage.apply(bare(name))
    stage.change("pods", name, lambda pod: pod["metadata"].update(creationTimestamp=created))
    stage.bind(name)
    stage.report(name, **{"phase": "Succeeded", "ready": False, "ended": True, **said})
    if released:
        stage.release_pod(name, "completed")


def kept(stage: Stage) -> list[str]:
    stage.settle()
    return [pod.name for pod in stage.pods()]


def test_of_too_many_ended_pods_the_evicted_and_then_the_oldest_go():
    """docs/rules.md, ended-pods-are-kept-up-to-a-number"""
    stage = Stage(ended_kept=3)
    stage.apply(bare("runs"))
    stage.bind("runs")
    stage.report("runs")
    for name, day, said in (
        ("newest", 9, {}), ("oldest", 1, {}), ("evicted", 8, {"phase": "Failed", "reason": "Evicted"}),
    ):  # fmt: skip
        end(stage, name, f"2026-01-0{day}T00:00:00Z", **said)
    assert kept(stage) == ["evicted", "newest", "oldest", "runs"], "three are not too many"
    end(stage, "b", "2026-01-02T00:00:00Z")
    assert kept(stage) == ["b", "newest", "oldest", "runs"]
    end(stage, "a", "2026-01-02T00:00:00Z")
    assert kept(stage) == ["a", "b", "newest", "oldest", "runs"], "not before 20 s are over"
    stage.pass_time(20)
    assert kept(stage) == ["a", "b", "newest", "runs"]
    end(stage, "late", "2026-01-03T00:00:00Z")
    stage.pass_time(20)
    assert kept(stage) == ["b", "late", "newest", "runs"], "of equal age by name"


def test_ended_pods_that_were_too_many_while_nobody_led_go():
    stage = Stage(ended_kept=1)
    for name in ("a", "b", "c"):
        end(stage, name, "2026-01-01T00:00:00Z")
    stage.begin()
    assert kept(stage) == ["c"]


def test_an_ended_pod_stays_until_its_room_is_given_back():
    stage = Stage(ended_kept=1)
    end(stage, "a", "2026-01-01T00:00:00Z", released=False)
    end(stage, "b", "2026-01-02T00:00:00Z")
    assert kept(stage) == ["a", "b"]
    stage.release_pod("a", "completed")
    stage.pass_time(20)
    assert kept(stage) == ["b"]


def test_zero_keeps_all_ended_pods():
    stage = Stage(ended_kept=0)
    for name in ("a", "b"):
        end(stage, name, "2026-01-01T00:00:00Z")
    stage.pass_time(100)
    assert kept(stage) == ["a", "b"]


# ---- garbage


def test_an_object_with_another_living_owner_stays(stage: Stage):
    stage.apply(replica_set(1, name="a"))
    stage.apply(replica_set(1, name="b"))
    stage.settle()
    pod = next(pod.name for pod in stage.pods() if pod.name.startswith("a-"))
    second = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "b", "uid": stage.uid("replicasets", "b")}
    stage.change("pods", pod, lambda document: document["metadata"]["ownerReferences"].append(second))
    stage.remove("replicasets", "a")
    stage.settle()
    assert stage.exists("pods", pod)
    stage.remove("replicasets", "b")
    stage.settle()
    assert not stage.exists("pods", pod)


def test_an_owner_that_was_made_again_is_another_owner(stage: Stage):
    stage.apply(replica_set(1))
    stage.settle()
    (old,) = [pod.name for pod in stage.pods()]
    stage.remove("replicasets", "web")
    stage.apply(replica_set(1))
    stage.settle()
    assert not stage.exists("pods", old)
    assert len(stage.active()) == 1


def test_an_owner_of_an_unknown_kind_is_taken_to_live(stage: Stage):
    owner = {"apiVersion": "v1", "kind": "Mystery", "name": "m", "uid": "u"}
    stage.apply(bare("single", ownerReferences=[owner]))
    stage.settle()
    assert stage.exists("pods", "single")


def test_a_custom_owner_without_a_namespace_is_found(stage: Stage):
    gang = {"apiVersion": "example.com/v1", "kind": "Gang", "metadata": {"name": "g", "uid": "g1"}}
    stage.put_cluster_scoped("gangs.v1.example.com", gang)
    owner = {"apiVersion": "example.com/v1", "kind": "Gang", "name": "g", "uid": "g1"}
    stage.apply(bare("single", ownerReferences=[owner]))
    stage.settle()
    assert stage.exists("pods", "single")


def test_a_custom_owner_that_is_gone_takes_its_pods_along(stage: Stage):
    gang = {"apiVersion": "example.com/v1", "kind": "Gang", "metadata": {"name": "g", "namespace": "default"}}
    uid = stage.apply(gang)["metadata"]["uid"]
    stage.settle()
    owner = {"apiVersion": "example.com/v1", "kind": "Gang", "name": "g", "uid": uid}
    stage.apply(bare("single", ownerReferences=[owner]))
    stage.settle()
    assert stage.exists("pods", "single")
    stage.remove("gangs.v1.example.com", "g")
    stage.settle()
    assert not stage.exists("pods", "single")
