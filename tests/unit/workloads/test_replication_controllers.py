"""ReplicationController: a ReplicaSet under its older name."""

from tests.unit.workloads.stage import Stage, replication_controller


def test_it_keeps_as_many_pods_as_it_wants():
    stage = Stage()
    stage.apply(replication_controller(3))
    stage.settle()
    names = stage.run_all()
    assert stage.document("replicationcontrollers", "web")["status"] == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
    }
    stage.evict(names[0])
    stage.settle()
    assert len(stage.active()) == 3
    stage.apply(replication_controller(1))
    stage.settle()
    assert len(stage.active()) == 1
    assert "terminatingReplicas" not in stage.document("replicationcontrollers", "web")["status"]


def test_its_pods_go_with_it():
    stage = Stage()
    stage.apply(replication_controller(2))
    stage.settle()
    assert {pod.stored.metadata.controller.kind for pod in stage.pods()} == {"ReplicationController"}
    stage.remove("replicationcontrollers", "web")
    stage.settle()
    assert stage.pods() == []
