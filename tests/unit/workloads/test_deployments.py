"""Deployment: revisions, rolling updates within surge and unavailable, Recreate, scaling, history."""

import pytest

from podyard.objects.apps import Deployment, ReplicaSet
from podyard.objects.decoding import convert
from podyard.workloads.core import rollout
from podyard.workloads.core.deployments import DESIRED, REVISION
from tests.unit.workloads.stage import Stage, deployment


@pytest.fixture
def stage() -> Stage:
    return Stage()


def sizes(stage: Stage) -> dict[str, int]:
    """Replicas by revision."""
    return {found["metadata"]["annotations"][REVISION]: found["spec"]["replicas"] for found in stage.all("replicasets")}


def roll_on(stage: Stage, *, most: int, least_available: int) -> None:
    """Let pods become ready and end, step by step, and see that the rollout keeps to its bounds at every
    step."""
    for _ in range(40):
        stage.settle()
        check_bounds(stage, most, least_available)
        waiting = [pod.name for pod in stage.pods() if pod.bound is None and not pod.released]
        going = [pod for pod in stage.pods() if pod.deleting and pod.bound is not None]
        if going:
            stage.report(going[0].name, phase="Succeeded", ready=False, ended=True)
            stage.release_pod(going[0].name)
        elif waiting:
            stage.bind(waiting[0])
            stage.report(waiting[0])
        else:
            return
    raise AssertionError("the rollout does not end")


def check_bounds(stage: Stage, most: int, least_available: int) -> None:
    active = stage.active()
    assert len(active) <= most
    ready = [pod for pod in active if any(c.type == "Ready" and c.status == "True" for c in pod.pod.status.conditions)]
    assert len(ready) >= least_available


def test_a_replica_set_for_the_template(stage: Stage):
    stage.apply(deployment(3))
    stage.settle()
    (found,) = stage.all("replicasets")
    hashed = found["metadata"]["labels"]["pod-template-hash"]
    assert found["metadata"]["name"] == f"web-{hashed}"
    assert found["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": hashed}
    assert found["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] == hashed
    assert found["metadata"]["annotations"] == {
        REVISION: "1",
        DESIRED: "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert found["metadata"]["ownerReferences"][0]["name"] == "web"
    assert len(stage.pods()) == 3
    assert stage.document("deployments", "web")["metadata"]["annotations"][REVISION] == "1"


def test_status_and_conditions(stage: Stage):
    stage.apply(deployment(2))
    stage.settle()
    status = stage.document("deployments", "web")["status"]
    assert (status["replicas"], status["updatedReplicas"], status["unavailableReplicas"]) == (2, 2, 2)
    conditions = {found["type"]: found["status"] for found in status["conditions"]}
    assert conditions == {"Available": "False", "Progressing": "True"}
    stage.run_all()
    status = stage.document("deployments", "web")["status"]
    assert (status["readyReplicas"], status["availableReplicas"]) == (2, 2)
    assert "unavailableReplicas" not in status
    conditions = {found["type"]: (found["status"], found["reason"]) for found in status["conditions"]}
    assert conditions == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }


def test_it_comes_to_rest(stage: Stage):
    stage.apply(deployment(2))
    stage.settle()
    stage.run_all()
    works = len(stage.works)
    stage.pass_time(600)
    assert len(stage.works) == works


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "least"),
    [
        pytest.param("25%", "25%", 5, 3, id="defaults"),
        pytest.param(0, 1, 4, 3, id="no surge"),
        pytest.param(2, 0, 6, 4, id="none missing"),
        pytest.param("100%", "100%", 8, 0, id="all at once"),
    ],
)
def test_a_rolling_update_keeps_to_its_bounds(stage: Stage, surge, unavailable, most: int, least: int):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    stage.apply(deployment(4, strategy=strategy))
    stage.settle()
    stage.run_all()
    stage.apply(deployment(4, image="web:2", strategy=strategy))
    roll_on(stage, most=most, least_available=least)
    assert sizes(stage) == {"1": 0, "2": 4}
    assert {stage.document("pods", pod.name)["spec"]["containers"][0]["image"] for pod in stage.active()} == {"web:2"}


def test_pods_that_never_become_ready_stop_the_rollout(stage: Stage):
    stage.apply(deployment(4))
    stage.settle()
    stage.run_all()
    stage.apply(deployment(4, image="broken"))
    stage.settle()
    waiting = [pod.name for pod in stage.pods() if pod.bound is None]
    stage.bind(*waiting)
    stage.report(*waiting, ready=False)
    stage.pass_time(600)
    assert sizes(stage) == {"1": 3, "2": 2}


def test_a_roll_back_uses_the_old_replica_set_with_a_new_revision(stage: Stage):
    stage.apply(deployment(2))
    stage.settle()
    stage.run_all()
    stage.apply(deployment(2, image="web:2"))
    roll_on(stage, most=3, least_available=2)
    stage.apply(deployment(2))
    roll_on(stage, most=3, least_available=2)
    assert sizes(stage) == {"3": 2, "2": 0}
    assert stage.document("deployments", "web")["metadata"]["annotations"][REVISION] == "3"


def test_recreate_waits_until_the_old_pods_have_ended(stage: Stage):
    stage.apply(deployment(2, strategy={"type": "Recreate"}))
    stage.settle()
    old = stage.run_all()
    stage.apply(deployment(2, image="web:2", strategy={"type": "Recreate"}))
    stage.settle()
    assert all(pod.deleting for pod in stage.pods())
    assert len(stage.all("replicasets")) == 1
    for name in old:
        stage.report(name, phase="Succeeded", ready=False, ended=True)
        stage.release_pod(name)
    stage.settle()
    assert sizes(stage) == {"1": 0, "2": 2}
    assert len(stage.active()) == 2


def test_scaling(stage: Stage):
    stage.apply(deployment(2))
    stage.settle()
    stage.run_all()
    stage.apply(deployment(5))
    stage.settle()
    assert sizes(stage) == {"1": 5}
    stage.apply(deployment(1))
    stage.settle()
    assert sizes(stage) == {"1": 1}
    assert len(stage.active()) == 1


def test_scaling_in_the_middle_of_a_rollout_keeps_the_shares(stage: Stage):
    stage.apply(
        deployment(10, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
    )
    stage.settle()
    stage.run_all()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    stage.apply(deployment(10, image="broken", strategy=strategy))
    stage.settle()
    assert sizes(stage) == {"1": 8, "2": 5}
    stage.apply(deployment(15, image="broken", strategy=strategy))
    stage.settle()
    assert sizes(stage) == {"1": 11, "2": 7}  # the reference's documentation: 15 + 3 spread over 8 and 5


def test_a_paused_deployment_scales_and_does_not_roll(stage: Stage):
    stage.apply(deployment(2))
    stage.settle()
    stage.run_all()
    stage.apply(deployment(3, image="web:2", paused=True))
    stage.settle()
    assert sizes(stage) == {"1": 3}


def test_old_replica_sets_beyond_the_history_go(stage: Stage):
    for number in range(4):
        stage.apply(deployment(1, image=f"web:{number}", revisionHistoryLimit=1))
        roll_on(stage, most=2, least_available=0)
    assert sizes(stage) == {"3": 0, "4": 1}


def test_a_template_of_the_same_name_counts_as_a_collision(stage: Stage):
    stage.apply(deployment(1))
    stage.settle()
    (first,) = stage.all("replicasets")
    stage.remove("deployments", "web")
    freed = {"ownerReferences": [], "labels": {"app": "other"}}
    stage.change("replicasets", first["metadata"]["name"], lambda document: document["metadata"].update(freed))
    stage.apply(deployment(1))
    stage.settle()
    names = {found["metadata"]["name"] for found in stage.all("replicasets")}
    assert len(names) == 2


def test_everything_goes_with_the_deployment(stage: Stage):
    stage.apply(deployment(2))
    stage.settle()
    stage.remove("deployments", "web")
    stage.settle()
    assert not stage.all("replicasets")
    assert not stage.pods()


@pytest.mark.parametrize(
    ("value", "total", "up", "expected"),
    [(3, 10, True, 3), ("25%", 10, True, 3), ("25%", 10, False, 2), ("0%", 10, True, 0), ("100%", 7, False, 7)],
)
def test_percentages(value, total: int, up: bool, expected: int):
    assert rollout.scaled(value, total, up=up) == expected


def test_surge_and_unavailable_of_zero_would_stand_still():
    document = {"spec": {"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}}}
    assert rollout.bounds(convert(Deployment, document)) == rollout.Bounds(3, 0, 1)


def sized(name: str, replicas: int, available: int = 0) -> ReplicaSet:
    document = {
        "metadata": {"name": name, "uid": name},
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas, "availableReplicas": available},
    }
    return convert(ReplicaSet, document)


def test_pods_that_are_not_healthy_anyway_go_first():
    limits = rollout.Bounds(10, 0, 4)
    old = [sized("oldest", 4, available=4), sized("older", 4, available=1)]
    assert rollout.shrink_old(limits, sized("new", 2), old) == {"older": 2}


def test_healthy_pods_go_as_far_as_may_be_missing_oldest_first():
    limits = rollout.Bounds(10, 0, 4)
    old = [sized("oldest", 3, available=3), sized("older", 5, available=5)]
    assert rollout.shrink_old(limits, sized("new", 2, available=2), old) == {"oldest": 0, "older": 4}


def test_what_rounding_leaves_goes_to_the_first():
    sets = [sized(name, 1) for name in ("a", "b", "c")]
    sizes = rollout.spread(rollout.Bounds(4, 0, 1), sets, {"a": 3, "b": 3, "c": 3})
    assert sum(sizes.values()) == 4
    assert sizes == {"a": 2, "b": 1, "c": 1}


def test_a_condition_that_keeps_its_status_keeps_its_time(stage: Stage):
    stage.apply(deployment(1))
    stage.settle()
    since = {c["type"]: c["lastTransitionTime"] for c in stage.document("deployments", "web")["status"]["conditions"]}
    stage.pass_time(100)
    stage.run_all()
    after = {c["type"]: c["lastTransitionTime"] for c in stage.document("deployments", "web")["status"]["conditions"]}
    assert after["Progressing"] == since["Progressing"]  # another reason, the same status
    assert after["Available"] != since["Available"]
