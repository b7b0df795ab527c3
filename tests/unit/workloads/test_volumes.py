"""Claims that wait for no pod get their volume; simulated volumes are made when they are wanted, and go with
their claims."""

from typing import Any

import pytest

from podyard.workloads.core.volumes import SIMULATED
from tests.unit.workloads.stage import Stage

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
ZONE = "topology.kubernetes.io/zone"


def storage_class(name: str, provisioner: str = SIMULATED, *, waits: bool = False, **more: Any) -> dict[str, Any]:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def claim(name: str, of: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
            "resources": {"requests": {"storage": size}},
            **spec,
        },
    }


def volume(name: str, of: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
            "hostPath": {"path": "/x"},
            **spec,
        },
    }


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.apply(storage_class("fast"))
    stage.apply(storage_class("local", "kubernetes.io/no-provisioner"))
    stage.apply(storage_class("later", waits=True, parameters={"topologyKey": ZONE}))
    stage.settle()
    return stage


def document(stage: Stage, resource: str, name: str) -> dict[str, Any]:
    namespace = "default" if resource == "persistentvolumeclaims" else ""
    return stage.stored(resource, name, namespace).document()


def bound(stage: Stage, name: str) -> str:
    """The volume of a claim that is bound on both sides; empty if it is not."""
    found = document(stage, "persistentvolumeclaims", name)
    if COMPLETED not in (found["metadata"].get("annotations") or {}):
        return ""
    volume_name = found["spec"]["volumeName"]
    there = document(stage, "persistentvolumes", volume_name)
    assert there["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]
    assert (there["status"]["phase"], found["status"]["phase"]) == ("Bound", "Bound")
    assert found["status"]["capacity"] == there["spec"]["capacity"]
    return volume_name


def volumes(stage: Stage) -> list[str]:
    return sorted(name for _, name in stage.cluster.objects("persistentvolumes"))


def test_a_claim_that_waits_for_no_pod_gets_the_smallest_volume_that_will_do(stage: Stage) -> None:
    for name, size in (("small", "1Gi"), ("large", "100Gi"), ("middle", "10Gi")):
        stage.apply(volume(name, "local", size))
    stage.apply(volume("other", "another", "5Gi"))
    stage.apply(claim("c", "local", "5Gi"))
    stage.settle()
    assert bound(stage, "c") == "middle"


@pytest.mark.parametrize("said", ["Available", "Bound"])
def test_a_new_volume_is_available_whatever_its_creator_says(stage: Stage, said: str) -> None:
    stage.apply(volume("v", "local") | {"status": {"phase": said}})
    assert document(stage, "persistentvolumes", "v")["status"] == {"phase": "Pending"}
    stage.settle()
    assert document(stage, "persistentvolumes", "v")["status"] == {"phase": "Available"}


def test_a_new_volume_that_its_claim_has_already_is_bound(stage: Stage) -> None:
    made = stage.apply(claim("c", "elsewhere", volumeName="v"))
    reference = {"namespace": "default", "name": "c"}
    stage.apply(volume("v", "elsewhere", claimRef={**reference, "uid": made["metadata"]["uid"]}))
    stage.apply(volume("another", "elsewhere", claimRef={**reference, "uid": "of-one-before"}))
    stage.settle()
    assert document(stage, "persistentvolumes", "v")["status"]["phase"] == "Bound"
    assert document(stage, "persistentvolumes", "another")["status"]["phase"] == "Pending"


def test_a_volume_that_comes_later_is_taken_and_by_one_claim_only(stage: Stage) -> None:
    stage.apply(claim("one", "local"))
    stage.apply(claim("two", "local"))
    stage.settle()
    assert (bound(stage, "one"), bound(stage, "two")) == ("", "")
    stage.apply(volume("v", "local"))
    stage.settle()
    assert sorted((bound(stage, "one"), bound(stage, "two"))) == ["", "v"]
    stage.apply(volume("w", "local"))
    stage.settle()
    assert sorted((bound(stage, "one"), bound(stage, "two"))) == ["v", "w"]


def test_a_claim_that_names_its_volume_gets_that_or_none(stage: Stage) -> None:
    stage.apply(volume("a", "local"))
    stage.apply(volume("b", "local", "50Gi"))
    stage.apply(claim("c", "local", volumeName="b"))
    stage.settle()
    stage.apply(claim("d", "local", volumeName="b"))
    stage.settle()
    assert (bound(stage, "c"), bound(stage, "d")) == ("b", "")
    assert [work.owner.name for work in stage.works if work.owner.resource == "persistentvolumeclaims"] == ["c"]


def test_a_volume_that_is_meant_for_a_claim_is_kept_for_it(stage: Stage) -> None:
    stage.apply(volume("v", "local", claimRef={"namespace": "default", "name": "mine"}))
    stage.apply(claim("other", "local"))
    stage.settle()
    assert bound(stage, "other") == ""
    stage.apply(claim("mine", "local"))
    stage.settle()
    assert bound(stage, "mine") == "v"


def test_a_simulated_volume_is_made_where_there_is_none(stage: Stage) -> None:
    uid = stage.apply(claim("c", "fast", "3Gi"))["metadata"]["uid"]
    stage.settle()
    assert bound(stage, "c") == f"pvc-{uid}"
    made = document(stage, "persistentvolumes", f"pvc-{uid}")
    assert made["spec"]["capacity"] == {"storage": "3Gi"}
    assert "nodeAffinity" not in made["spec"]


def test_a_claim_that_waits_for_a_pod_gets_none_before_it_names_a_node(stage: Stage) -> None:
    stage.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "labels": {ZONE: "east"}},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}},
        }
    )
    stage.apply(volume("there", "later"))
    stage.apply(claim("c", "later"))
    stage.settle()
    assert (bound(stage, "c"), volumes(stage)) == ("", ["there"])
    stage.change("persistentvolumeclaims", "c", lambda one: one["metadata"].update(annotations={SELECTED: "n1"}))
    stage.settle()
    made = document(stage, "persistentvolumes", bound(stage, "c"))
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["east"]}]
    annotations = document(stage, "persistentvolumeclaims", "c")["metadata"]["annotations"]
    assert annotations[SELECTED] == "n1", "who waits for the volume still finds the node there"


def test_a_class_that_somebody_else_serves_is_left_alone(stage: Stage) -> None:
    stage.apply(storage_class("theirs", "csi.example.com"))
    stage.apply(claim("c", "theirs"))
    stage.apply(claim("d", "nobody knows"))
    stage.settle()
    assert (bound(stage, "c"), bound(stage, "d"), volumes(stage)) == ("", "", [])


def test_a_class_that_comes_later_is_served(stage: Stage) -> None:
    stage.apply(claim("c", "new"))
    stage.settle()
    stage.apply(storage_class("new"))
    stage.settle()
    assert bound(stage, "c").startswith("pvc-")


def test_a_simulated_volume_goes_with_its_claim_unless_it_is_to_be_kept(stage: Stage) -> None:
    stage.apply(storage_class("kept", reclaimPolicy="Retain"))
    stage.apply(volume("mine", "local", persistentVolumeReclaimPolicy="Delete"))
    for name, of in (("gone", "fast"), ("stays", "kept"), ("own", "local")):
        stage.apply(claim(name, of))
    stage.settle()
    kept = [bound(stage, "stays"), bound(stage, "own")]
    for name in ("gone", "stays", "own"):
        stage.remove("persistentvolumeclaims", name)
    stage.settle()
    assert volumes(stage) == sorted(kept)
    stage.begin()  # looks at everything
    stage.settle()
    assert volumes(stage) == sorted(kept)


def test_a_namesake_gets_a_volume_of_its_own(stage: Stage) -> None:
    first = stage.apply(claim("c", "fast"))["metadata"]["uid"]
    stage.settle()
    stage.remove("persistentvolumeclaims", "c")
    second = stage.apply(claim("c", "fast"))["metadata"]["uid"]
    stage.settle()
    assert first != second
    assert volumes(stage) == [bound(stage, "c")] == [f"pvc-{second}"]


def test_a_leader_that_dies_between_making_and_binding_leaves_one_volume(stage: Stage) -> None:
    stage.hold = True
    stage.apply(claim("c", "fast"))
    stage.settle()
    (work,) = stage.held
    stage.carry_out(work)  # made, and the answer never comes
    stage.hold = False
    stage.begin()
    stage.settle()
    assert volumes(stage) == [bound(stage, "c")]
