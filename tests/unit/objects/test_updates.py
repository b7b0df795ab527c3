import copy
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from podyard.objects.updates import merge_apply

GATED = {"schedulingGates": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"zone": "z1"}}


def changed(document, **spec):
    """`document` with other fields in its spec; None takes one away."""
    new = copy.deepcopy(document)
    for key, value in spec.items():
        if value is None:
            new["spec"].pop(key)
        else:
            new["spec"][key] = value
    return new


def test_applying_the_same_manifest_changes_nothing(admit, make_pod):
    pod = make_pod()
    stored = admit(pod)
    assert admit(pod, stored) == stored


def test_what_others_wrote_stays(admit, make_pod, cluster):
    pod = make_pod()
    old = admit(pod)
    old["metadata"] |= {
        "deletionTimestamp": "2024-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}],
        "annotations": {"deployment.kubernetes.io/revision": "3", "mine": "old"},
    }
    old["status"] = {"phase": "Running", "reason": "x"}
    pod["metadata"]["labels"] = {"new": "label"}
    pod["status"] = {"reason": "y"}
    new = admit(pod, old)
    kept = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences")
    assert [new["metadata"][key] for key in kept] == [old["metadata"][key] for key in kept]
    assert new["metadata"]["labels"] == {"new": "label"}
    assert new["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "3"}
    assert new["status"] == {"phase": "Running", "reason": "y"}


def test_the_priority_stays_when_its_class_changes(admit, make_pod, cluster):
    value = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5}
    cluster.add("priorityclasses", value)
    pod = make_pod(priorityClassName="high")
    old = admit(pod)
    cluster.add("priorityclasses", {**value, "value": 9})
    assert admit(pod, old)["spec"]["priority"] == 5


def test_the_namespace_of_the_stored_version_counts(admit, make_pod):
    old = admit(make_pod(namespace="kube-system"))
    assert admit(make_pod(), old)["metadata"]["namespace"] == "kube-system"


def test_a_claims_volume_stays():
    old = {"metadata": {"uid": "u"}, "spec": {"volumeName": "pv1", "storageClassName": "c"}}
    new = {"metadata": {}, "spec": {"accessModes": []}}
    merged = merge_apply(old, new, "persistentvolumeclaims")
    assert merged["spec"] == {"accessModes": [], "volumeName": "pv1", "storageClassName": "c"}
    merged["spec"]["accessModes"].append("x")
    assert new["spec"]["accessModes"] == []


ALLOWED = {
    "image": {"containers": [{"name": "c", "image": "nginx:2"}]},
    "resize": {
        "containers": [
            {"name": "c", "image": "nginx:1", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
        ]
    },
    "deadline": {"activeDeadlineSeconds": 10},
    "toleration": {"tolerations": [{"key": "x", "operator": "Exists"}]},
}


@pytest.mark.parametrize("spec", ALLOWED.values(), ids=ALLOWED)
def test_a_pod_may_change(admit, make_pod, spec):
    old = admit(make_pod())
    new = admit(make_pod(**spec), old)
    assert new["metadata"]["generation"] == 2
    assert new["metadata"]["uid"] == old["metadata"]["uid"]


FORBIDDEN = {
    "hostNetwork": ({"hostNetwork": True}, "changed: hostNetwork"),
    "nodeSelector": ({"nodeSelector": {"a": "b"}}, "changed: nodeSelector"),
    "nodeName": ({"nodeName": "n1"}, "changed: nodeName"),
    "containers": ({"containers": [{"name": "d", "image": "x"}]}, "changed: containers"),
    "gpu": (
        {"containers": [{"name": "c", "image": "x", "resources": {"limits": {"e.com/gpu": "1"}}}]},
        "changed: containers",
    ),
    "priority class": ({"priorityClassName": "high"}, "changed: priorityClassName"),
    "new gate": ({"schedulingGates": [{"name": "g"}]}, "only deletion is allowed, but found new scheduling gate 'g'"),
}


@pytest.mark.parametrize(("spec", "says"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_pod_may_not_change(admit, refused, make_pod, spec, says):
    old = admit(make_pod())
    (fault,) = refused(make_pod(**spec), old)
    assert fault.startswith("spec")
    assert "Forbidden" in fault
    assert says in fault


def test_tolerations_may_only_be_added(admit, refused, make_pod):
    old = admit(
        make_pod(tolerations=[{"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}])
    )
    assert refused(make_pod(), old) == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]
    longer = [{"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}]
    assert admit(make_pod(tolerations=longer), old)["spec"]["tolerations"][0]["tolerationSeconds"] == 9


def test_a_gated_pod_may_be_narrowed_and_freed(admit, refused, make_pod):
    pod = make_pod(**GATED)
    old = admit(pod)
    narrower = changed(pod, nodeSelector={"zone": "z1", "disk": "ssd"}, schedulingGates=[{"name": "b"}])
    assert admit(narrower, old)["spec"]["nodeSelector"] == {"zone": "z1", "disk": "ssd"}
    assert "schedulingGates" not in admit(changed(pod, schedulingGates=None), old)["spec"]
    (fault,) = refused(changed(pod, nodeSelector={"zone": "z2"}), old)
    assert fault.startswith("spec.nodeSelector: Invalid value")


def test_a_gated_pods_node_affinity_may_only_gain_requirements(admit, refused, make_pod):
    def affinity(*expressions):
        terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    one = {"key": "a", "operator": "Exists"}
    two = {"key": "b", "operator": "Exists"}
    pod = make_pod(**GATED, affinity=affinity(one))
    old = admit(pod)
    assert admit(changed(pod, affinity=affinity(one, two)), old)["metadata"]["generation"] == 2
    assert "only additions are allowed" in refused(changed(pod, affinity=affinity(two)), old)[0]


def test_a_uid_of_a_namesake_is_refused(admit, refused, make_pod):
    old = admit(make_pod())
    pod = make_pod()
    pod["metadata"]["uid"] = "another"
    (fault,) = refused(pod, old)
    assert "UID in precondition: another, UID in object meta: uid-1" in fault


def template():
    return {"metadata": {"labels": {"app": "web", "x": "y"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_selectors_of_workloads_are_immutable(admit, refused, kind):
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template()}
    given = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": spec}
    old = admit(given)
    assert admit(changed(given, replicas=7), old)["spec"]["replicas"] == 7
    (fault,) = refused(changed(given, selector={"matchLabels": {"x": "y"}}), old)
    assert fault.startswith("spec.selector: Invalid value")
    assert fault.endswith("field is immutable")


def test_a_jobs_template_is_immutable_unless_it_is_suspended(admit, refused):
    pod = template()
    pod["spec"]["restartPolicy"] = "Never"
    given = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": pod}}
    old = admit(given)
    assert admit(given, old) == old
    other = copy.deepcopy(given)
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "y"
    assert refused(other, old)[0].startswith("spec.template: Invalid value")
    suspended = admit(changed(given, suspend=True))
    other["spec"]["suspend"] = True
    assert admit(other, suspended)["spec"]["template"]["spec"]["containers"][0]["image"] == "y"
    assert refused(changed(given, completions=3), old)[0].startswith("spec.completions")


def test_a_claim_may_only_grow(admit, refused):
    def claim(size):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}

    old = admit(claim("1Gi"))
    assert admit(claim("2Gi"), old)["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert "can not be less than" in refused(claim("1Mi"), old)[0]


def test_a_priority_class_keeps_its_value(admit, refused):
    given = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 1}
    old = admit(given)
    assert refused({**given, "value": 2}, old)[0].startswith("value: Invalid value")


def test_a_node_may_change_all_but_its_identity(admit):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
    old = admit(node)
    new = admit({**node, "spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": "8"}}}, old)
    assert (new["spec"], new["status"]["allocatable"]) == ({"unschedulable": True}, {"cpu": "8"})
    assert new["metadata"] == old["metadata"]


def seconds(work: Callable[[], Any]) -> float:
    """CPU of the fastest of ten runs: what else runs on the machine makes it longer, never shorter. Without
    the garbage collector, which would walk through all that the tests before this one have left."""
    found: list[float] = []
    gc.disable()
    try:
        for _ in range(10):
            started = time.process_time()
            work()
            found.append(time.process_time() - started)
    finally:
        gc.enable()
    return min(found)


@pytest.mark.parametrize("field", ["tolerations", "node affinity", "label keys"])
def test_four_times_as_long_a_list_takes_four_times_as_long(admit, make_pod, field: str):
    """Not sixteen times: an object may have lists of tens of thousands."""

    def one(count: int, more: int) -> dict[str, Any]:
        keys = [f"k{at}" for at in range(count)]
        if field == "tolerations":
            return make_pod(tolerations=[{"key": key, "operator": "Exists"} for key in keys][::-1])
        if field == "label keys":
            spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            spread |= {"labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": keys}
            return make_pod(labels=dict.fromkeys(keys, "v"), topologySpreadConstraints=[spread])
        expressions = [{"key": key, "operator": "Exists"} for key in (*keys, *("more",) * more)][::-1]
        required = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        }
        return make_pod(affinity={"nodeAffinity": required}, schedulingGates=[{"name": "example.com/wait"}])

    def update(count: int) -> Callable[[], Any]:
        stored = admit(one(count, 0))
        return lambda: admit(one(count, 1), stored)

    assert seconds(update(8_000)) < 8 * seconds(update(2_000))
