"""Changes of nodes and pods as kube-scheduler v1.36 names them: one aspect at a time, and what must not
count."""

from functools import partial
from typing import Any

import pytest

from podyard.cluster import classify
from podyard.proto import actions
from tests.support import objects


def node(**more: Any) -> Any:
    """A node with something everywhere; `part_field=...` says it otherwise."""
    status = {
        "allocatable": {"cpu": "1", "memory": "1Gi"},
        "capacity": {"cpu": "1"},
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
        "declaredFeatures": ["A", "B"],
    }
    taints = [{"key": "t", "effect": "NoSchedule"}]
    document = objects.node("n", bare=True, labels={"zone": "a"}, taints=taints, status=status)
    for path, value in more.items():
        part, field = path.split("_", 1)
        document[part] = document[part] | {field: value}
    return objects.decoded("nodes", document)


pod = partial(objects.typed_pod, "p", cpu="500m", memory="256Mi")


def labels(events: tuple[classify.Event, ...]) -> list[str]:
    return [actions.label(resource, action) for resource, action in events]


TAINT = {"key": "t", "effect": "NoSchedule"}
NODE_CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing": ({}, {}, []),
    "cordoned": ({}, {"spec_unschedulable": True}, []),
    "uncordoned": ({"spec_unschedulable": True}, {}, ["NodeUpdateNodeTaint"]),
    "uncordoned and untainted": (
        {"spec_unschedulable": True},
        {"spec_taints": []},
        ["NodeUpdateNodeTaint", "NodeUpdateNodeTaint"],
    ),
    "the same amount in other words": ({}, {"status_allocatable": {"cpu": "1000m", "memory": "1024Mi"}}, []),
    "less to give": ({}, {"status_allocatable": {"cpu": "1", "memory": "1Mi"}}, ["NodeUpdateNodeAllocatable"]),
    "a resource gone": ({}, {"status_allocatable": {"cpu": "1"}}, ["NodeUpdateNodeAllocatable"]),
    "capacity only": ({}, {"status_capacity": {"cpu": "9"}}, []),
    "label": ({}, {"metadata_labels": {"zone": "b"}}, ["NodeUpdateNodeLabel"]),
    "labels empty and absent": ({"metadata_labels": {}}, {"metadata_labels": None}, []),
    "taint added": ({}, {"spec_taints": [TAINT, TAINT | {"key": "u"}]}, ["NodeUpdateNodeTaint"]),
    "taint's time": ({}, {"spec_taints": [TAINT | {"timeAdded": "2026-01-01T00:00:00Z"}]}, ["NodeUpdateNodeTaint"]),
    "condition's status": (
        {},
        {"status_conditions": [{"type": "Ready", "status": "False"}]},
        ["NodeUpdateNodeCondition"],
    ),
    "condition's reason": ({}, {"status_conditions": [{"type": "Ready", "status": "True", "reason": "x"}]}, []),
    "annotation": ({}, {"metadata_annotations": {"a": "b"}}, ["NodeUpdateNodeAnnotation"]),
    "features in another order": ({}, {"status_declaredFeatures": ["B", "A"]}, ["NodeUpdateNodeDeclaredFeature"]),
    "all at once": (
        {"spec_unschedulable": True},
        {"status_allocatable": {}, "metadata_labels": {}, "spec_taints": [], "metadata_annotations": {"a": "b"}},
        [
            "NodeUpdateNodeTaint",
            "NodeUpdateNodeAllocatable",
            "NodeUpdateNodeLabel",
            "NodeUpdateNodeTaint",
            "NodeUpdateNodeAnnotation",
        ],
    ),
}


@pytest.mark.parametrize("case", NODE_CASES.values(), ids=NODE_CASES)
def test_nodes(case: tuple[dict[str, Any], dict[str, Any], list[str]]) -> None:
    old, new, expected = case
    assert labels(classify.classify_node(node(**old), node(**new))) == expected


GATES = [{"name": "g"}, {"name": "h"}]
CLAIM = {"resourceClaimStatuses": [{"name": "gpu"}]}
POD_CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing": ({}, {}, ["Update"]),
    "label": ({}, {"labels": {"a": "b"}}, ["UpdatePodLabel"]),
    "one byte less": ({}, {"memory": "268435455"}, ["UpdatePodScaleDown"]),
    "more cpu": ({}, {"cpu": "1"}, ["Update"]),
    "less of one, more of the other": ({}, {"cpu": "1", "memory": "1Mi"}, ["UpdatePodScaleDown"]),
    "overhead gone": ({"overhead": {"cpu": "1"}}, {}, ["UpdatePodScaleDown"]),
    "one gate of two gone": ({"schedulingGates": GATES}, {"schedulingGates": GATES[:1]}, ["Update"]),
    "last gate gone": ({"schedulingGates": GATES}, {}, ["UpdatePodSchedulingGatesEliminated"]),
    "toleration added": ({}, {"tolerations": [{"operator": "Exists"}]}, ["UpdatePodToleration"]),
    "toleration changed": ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, ["Update"]),
    "claim made": ({}, {"status": CLAIM}, ["UpdatePodGeneratedResourceClaim"]),
    "phase": ({}, {"status": {"phase": "Running"}}, ["Update"]),
    "all at once": (
        {"schedulingGates": GATES, "labels": {"a": "b"}},
        {"cpu": "1m", "tolerations": [{"key": "b"}], "status": CLAIM},
        [
            "UpdatePodLabel",
            "UpdatePodScaleDown",
            "UpdatePodSchedulingGatesEliminated",
            "UpdatePodToleration",
            "UpdatePodGeneratedResourceClaim",
        ],
    ),
}


@pytest.mark.parametrize("node_name", ["", "n1"], ids=["pending", "assigned"])
@pytest.mark.parametrize("case", POD_CASES.values(), ids=POD_CASES)
def test_pods(case: tuple[dict[str, Any], dict[str, Any], list[str]], node_name: str) -> None:
    old, new, expected = case
    resource = "AssignedPod" if node_name else "UnschedulablePod"
    found = classify.classify_pod(pod(nodeName=node_name, **old), pod(nodeName=node_name, **new))
    assert labels(found) == [resource + action for action in expected]


def test_a_binding_is_an_event_of_the_assigned_pod() -> None:
    assert labels(classify.classify_pod(pod(), pod(nodeName="n1"))) == ["AssignedPodUpdate"]


def test_every_kind_has_its_name_in_events() -> None:
    names = ["nodes", "persistentvolumes", "csinodes", "resourceclaims", "widgets.v1.example.com"]
    assert [classify.event_resource(name) for name in names] == [
        "Node",
        "PersistentVolume",
        "storage.k8s.io/CSINode",
        "resource.k8s.io/ResourceClaim",
        "widgets.v1.example.com",
    ]
