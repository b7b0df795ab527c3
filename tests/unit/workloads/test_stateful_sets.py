"""StatefulSet: which pod comes next, and goes; claims; a new template; what is told of it."""

from typing import Any

import pytest

from podyard.workloads.core.stateful_sets import ordinal_of
from tests.unit.workloads.stage import Stage, claim_template, stateful_set

PARALLEL = {"podManagementPolicy": "Parallel"}
HASH = "controller-revision-hash"


def begin(replicas: int = 3, **spec: Any) -> Stage:
    stage = Stage()
    stage.apply(stateful_set(replicas, **spec))
    stage.settle()
    return stage


def running(replicas: int = 3, **spec: Any) -> Stage:
    stage = begin(replicas, **spec)
    for _ in range(replicas):
        stage.run_all()
    return stage


def again(stage: Stage, replicas: int = 3, **spec: Any) -> None:
    stage.apply(stateful_set(replicas, **spec))
    stage.settle()


def names(stage: Stage) -> list[str]:
    return [pod.name for pod in stage.active()]


def leaving(stage: Stage) -> list[str]:
    return [pod.name for pod in stage.pods() if pod.deleting]


def end(stage: Stage, *pods: str) -> None:
    for name in pods:
        stage.release_pod(name)
    stage.settle()


def images(stage: Stage) -> list[str]:
    return [pod.stored.spec.containers[0].image for pod in stage.active()]


def claims(stage: Stage) -> list[str]:
    return sorted(one["metadata"]["name"] for one in stage.all("persistentvolumeclaims"))


def owners(stage: Stage, claim: str) -> list[tuple[str, str]]:
    found = stage.document("persistentvolumeclaims", claim)["metadata"].get("ownerReferences", [])
    return [(one["kind"], one["name"]) for one in found]


def status(stage: Stage) -> dict[str, Any]:
    return stage.document("statefulsets", "db")["status"]


# ---- one after another -------------------------------------------------------------------------------------


def test_each_pod_waits_for_the_one_before():
    stage = begin()
    assert names(stage) == ["db-0"]
    stage.bind("db-0")
    stage.report("db-0", ready=False)
    stage.settle()
    assert names(stage) == ["db-0"]
    stage.report("db-0")
    stage.settle()
    assert names(stage) == ["db-0", "db-1"]
    stage.run_all()
    stage.run_all()
    revision = stage.all("controllerrevisions")[0]["metadata"]["name"]
    assert status(stage) == {
        "observedGeneration": 1,
        "replicas": 3,
        "availableReplicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }


def test_a_pod_has_its_name_its_number_and_its_revision():
    stage = begin(1)
    [pod] = stage.all("pods")
    [revision] = stage.all("controllerrevisions")
    assert pod["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "db-0",
        "apps.kubernetes.io/pod-index": "0",
        HASH: revision["metadata"]["name"],
    }
    assert "generateName" not in pod["metadata"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "db")
    assert revision["metadata"]["labels"]["controller.kubernetes.io/hash"] in revision["metadata"]["name"]


def test_all_at_once_if_they_may():
    assert names(begin(**PARALLEL)) == ["db-0", "db-1", "db-2"]


def test_the_first_number_may_be_another():
    assert names(begin(2, ordinals={"start": 5}, **PARALLEL)) == ["db-5", "db-6"]


def test_min_ready_seconds_keep_the_next_one_back():
    stage = begin(2, minReadySeconds=30)
    stage.run_all()
    assert names(stage) == ["db-0"]
    stage.pass_time(30)
    assert names(stage) == ["db-0", "db-1"]


def test_scaled_down_from_the_top_one_after_another():
    stage = running()
    again(stage, 1)
    assert leaving(stage) == ["db-2"]
    end(stage, "db-2")
    assert leaving(stage) == ["db-1"]
    end(stage, "db-1")
    assert names(stage) == ["db-0"]


def test_scaled_down_at_once_if_they_may():
    stage = running(**PARALLEL)
    again(stage, 1, **PARALLEL)
    assert leaving(stage) == ["db-1", "db-2"]


def test_nothing_goes_while_one_before_it_is_unavailable():
    stage = running()
    stage.report("db-0", ready=False)
    again(stage, 1)
    assert leaving(stage) == []
    stage.report("db-0")
    stage.settle()
    assert leaving(stage) == ["db-2"]


def test_the_first_that_is_unavailable_may_go_when_it_is_surplus():
    stage = running()
    stage.report("db-2", ready=False)
    again(stage, 2)
    assert leaving(stage) == ["db-2"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ended_is_made_again_under_its_name(phase: str):
    stage = running()
    before = stage.uid("pods", "db-1")
    stage.report("db-1", phase=phase, ready=False, ended=True)
    stage.release_pod("db-1", "completed")
    stage.settle()
    assert names(stage) == ["db-0", "db-1", "db-2"]
    assert stage.uid("pods", "db-1") != before


def test_a_pod_that_its_node_refuses_is_made_again_ever_more_slowly():
    stage = begin(1)
    waits: list[int] = []
    for _ in range(4):
        refused = stage.uid("pods", "db-0")
        before = stage.now
        stage.refuse("db-0")
        while not stage.exists("pods", "db-0") or stage.uid("pods", "db-0") == refused:
            stage.pass_time(0.25)
        waits.append(round(stage.now - before))
    assert waits == [0, 1, 2, 4]


def test_a_pod_that_is_leaving_is_waited_for():
    stage = running()
    stage.evict("db-1")
    stage.settle()
    assert (names(stage), leaving(stage)) == (["db-0", "db-2"], ["db-1"])
    end(stage, "db-1")
    assert names(stage) == ["db-0", "db-1", "db-2"]


def test_a_label_that_was_taken_away_comes_back():
    stage = running(1)
    stage.change("pods", "db-0", lambda found: found["metadata"]["labels"].pop("statefulset.kubernetes.io/pod-name"))
    stage.settle()
    assert stage.document("pods", "db-0")["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-0"


# ---- a new template ----------------------------------------------------------------------------------------


def test_a_new_template_from_the_top_one_after_another():
    stage = running()
    again(stage, image="web:2")
    for name in ("db-2", "db-1", "db-0"):
        assert leaving(stage) == [name]
        end(stage, name)
        assert images(stage)[ordinal_of(name)] == "web:2"
        stage.run_all()
    assert leaving(stage) == []
    assert status(stage)["currentRevision"] == status(stage)["updateRevision"]
    assert status(stage)["currentReplicas"] == 3


def test_pods_below_the_partition_keep_their_template_also_when_made_again():
    partition = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}
    stage = running(**partition)
    again(stage, image="web:2", **partition)
    end(stage, *leaving(stage))
    stage.run_all()
    assert (leaving(stage), images(stage)) == ([], ["web:1", "web:1", "web:2"])
    stage.evict("db-0")
    end(stage, "db-0")
    assert images(stage) == ["web:1", "web:1", "web:2"]
    assert status(stage)["currentRevision"] != status(stage)["updateRevision"]


def test_on_delete_waits_for_people():
    stage = running(updateStrategy={"type": "OnDelete"})
    again(stage, image="web:2", updateStrategy={"type": "OnDelete"})
    assert leaving(stage) == []
    stage.evict("db-1")
    end(stage, "db-1")
    assert images(stage) == ["web:1", "web:2", "web:1"]


def test_several_may_be_missing_if_it_says_so():
    rolling = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}
    stage = running(**rolling)
    again(stage, image="web:2", **rolling)
    assert leaving(stage) == ["db-1", "db-2"]


def test_history_is_cut():
    stage = running(1, revisionHistoryLimit=1)
    for image in ("web:2", "web:3", "web:4"):
        again(stage, 1, image=image, revisionHistoryLimit=1)
        end(stage, *leaving(stage))
        stage.run_all()
    assert sorted(one["revision"] for one in stage.all("controllerrevisions")) == [3, 4]


# ---- claims ------------------------------------------------------------------------------------------------


def retention(deleted: str, scaled: str) -> dict[str, Any]:
    return {
        "volumeClaimTemplates": [claim_template()],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled},
    }


def test_each_pod_has_its_claim_which_stays():
    stage = running(2, volumeClaimTemplates=[claim_template(), claim_template("logs")])
    assert claims(stage) == ["data-db-0", "data-db-1", "logs-db-0", "logs-db-1"]
    volumes = stage.document("pods", "db-1")["spec"]["volumes"]
    assert [(one["name"], one["persistentVolumeClaim"]["claimName"]) for one in volumes] == [
        ("data", "data-db-1"),
        ("logs", "logs-db-1"),
    ]
    labels = stage.document("persistentvolumeclaims", "data-db-0")["metadata"]["labels"]
    assert labels == {"of": "tests", "app": "web"}
    again(stage, 1, volumeClaimTemplates=[claim_template(), claim_template("logs")])
    end(stage, "db-1")
    stage.remove("statefulsets", "db")
    stage.settle()
    assert len(claims(stage)) == 4


@pytest.mark.parametrize(
    ("deleted", "scaled", "wanted"),
    [
        ("Retain", "Retain", ([], [])),
        ("Delete", "Retain", ([("StatefulSet", "db")], [("StatefulSet", "db")])),
        ("Retain", "Delete", ([], [("Pod", "db-1")])),
        ("Delete", "Delete", ([("StatefulSet", "db")], [("Pod", "db-1")])),
    ],
)
def test_who_owns_a_claim_while_its_pod_is_wanted_and_while_it_goes(deleted: str, scaled: str, wanted: Any):
    stage = running(2, **retention(deleted, scaled))
    assert (owners(stage, "data-db-0"), owners(stage, "data-db-1")) == (wanted[0], wanted[0])
    again(stage, 1, **retention(deleted, scaled))
    assert (owners(stage, "data-db-0"), owners(stage, "data-db-1")) == wanted


def test_a_claim_goes_with_the_pod_that_was_scaled_down():
    stage = running(2, **retention("Retain", "Delete"))
    again(stage, 1, **retention("Retain", "Delete"))
    end(stage, "db-1")
    assert claims(stage) == ["data-db-0"]


def test_claims_go_with_the_set():
    stage = running(2, **retention("Delete", "Retain"))
    stage.remove("statefulsets", "db")
    stage.settle()
    assert claims(stage) == []


def test_a_claim_that_another_manages_is_left_alone():
    stage = running(1, **retention("Delete", "Delete"))
    other = {"apiVersion": "example.com/v1", "kind": "Backup", "name": "b", "uid": "b", "controller": True}
    stage.change("persistentvolumeclaims", "data-db-0", lambda found: found["metadata"].update(ownerReferences=[other]))
    stage.settle()
    assert owners(stage, "data-db-0") == [("Backup", "b")]


def test_a_claim_of_a_pod_that_is_no_more_is_waited_for():
    """As the reference: else the new pod would get a claim that goes."""
    stage = begin(0, **retention("Retain", "Delete"))
    stage.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data-db-0",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "db-0", "uid": "before", "controller": True},
                    {"apiVersion": "v1", "kind": "Mystery", "name": "m", "uid": "m"},  # so nobody collects it
                ],
            },
            "spec": claim_template()["spec"],
        }
    )
    again(stage, 1, **retention("Retain", "Delete"))
    assert names(stage) == []
    stage.change("persistentvolumeclaims", "data-db-0", lambda found: found["metadata"].pop("ownerReferences"))
    stage.settle()
    assert names(stage) == ["db-0"]


def test_a_number_is_what_follows_the_last_dash():
    assert [ordinal_of(name) for name in ("db-0", "a-1-20", "db", "db-x", "db-", "db-12345678901")] == [
        0,
        20,
        -1,
        -1,
        -1,
        -1,
    ]
