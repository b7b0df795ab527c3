import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.objects import admission, quantity
from podyard.objects.errors import UnknownKindError

QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
DEFAULT_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]


def priority_class(name, value, **more):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def workload(kind, api_version="apps/v1", restart=None, **spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    if restart:
        template["spec"]["restartPolicy"] = restart
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "w"},
        "spec": {
            "template": template,
            **({} if kind == "Job" else {"selector": {"matchLabels": {"app": "web"}}}),
            **spec,
        },
    }


def test_a_plain_pod_gets_what_the_api_server_gives_it(admit, make_pod):
    given = make_pod()
    before = copy.deepcopy(given)
    stored = admit(given)
    assert given == before
    assert stored["metadata"] == {
        "name": "web",
        "namespace": "default",
        "labels": {"app": "web"},
        "uid": "uid-1",
        "creationTimestamp": "2023-11-14T22:13:20Z",
        "generation": 1,
    }
    assert stored["spec"] == {
        "containers": [{"name": "c", "image": "nginx:1"}],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": DEFAULT_TOLERATIONS,
    }
    assert stored["status"] == {"phase": "Pending"}


def test_what_creators_may_not_set_is_dropped(admit, make_pod):
    pod = make_pod()
    pod["metadata"] |= {
        "uid": "mine",
        "resourceVersion": "7",
        "creationTimestamp": None,
        "deletionTimestamp": "2020-01-01T00:00:00Z",
        "managedFields": [{}],
        "selfLink": "/x",
    }
    meta = admit(pod)["metadata"]
    assert meta["uid"] == "uid-1"
    assert not {"resourceVersion", "deletionTimestamp", "managedFields", "selfLink"} & meta.keys()


def test_what_is_set_is_kept_but_not_what_the_kind_does_not_have(admit, make_pod):
    pod = make_pod(
        terminationGracePeriodSeconds=0,
        restartPolicy="Never",
        schedulerName="mine",
        dnsPolicy="Default",
        futureField={"x": [1, None]},
        tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
    )
    spec = admit(pod)["spec"]
    assert (spec["terminationGracePeriodSeconds"], spec["restartPolicy"], spec["schedulerName"]) == (0, "Never", "mine")
    assert (spec["dnsPolicy"], "futureField" in spec) == ("Default", False)
    assert spec["tolerations"] == [pod["spec"]["tolerations"][0], DEFAULT_TOLERATIONS[1]]


def test_a_toleration_of_everything_covers_the_two_default_ones(admit, make_pod):
    everything = [{"operator": "Exists"}]
    assert admit(make_pod(tolerations=everything))["spec"]["tolerations"] == everything


def test_generated_names_are_cut_to_length(admit, make_pod):
    pod = make_pod()
    pod["metadata"] = {"generateName": "x" * 70}
    name = admit(pod)["metadata"]["name"]
    assert len(name) == 63
    assert name.startswith("x" * 58)


def test_a_generated_name_that_is_taken_is_made_again(admit, make_pod, cluster, monkeypatch):
    asked = []

    def get(resource, namespace, name):
        if resource != "pods":
            return None
        asked.append(name)
        return {"metadata": {}} if len(asked) < 4 else None

    monkeypatch.setattr(cluster, "get", get)
    pod = make_pod()
    pod["metadata"] = {"generateName": "web-"}
    assert admit(pod)["metadata"]["name"] == asked[3]
    assert len(set(asked)) == 4


def test_limits_are_requests_and_quantities_become_canonical(admit, make_pod):
    resources = {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"memory": "0.5Gi"}}
    container = {"name": "c", "image": "x", "resources": resources}
    stored = admit(make_pod(containers=[container], initContainers=[{**container, "name": "i"}]))
    for part in ("containers", "initContainers"):
        assert stored["spec"][part][0]["resources"] == {
            "limits": {"cpu": "500m", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "512Mi"},
        }


def test_requests_of_the_pod_as_a_whole_come_from_its_containers_else_its_limits(admit, make_pod):
    containers = [{"name": name, "image": "x", "resources": {"requests": {"cpu": "250m"}}} for name in ("a", "b")]
    stored = admit(make_pod(containers=containers, resources={"limits": {"cpu": "2", "memory": "1Gi"}}))
    assert stored["spec"]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_ports_of_a_pod_in_the_host_network_are_host_ports(admit, make_pod):
    container = {"name": "c", "image": "x", "ports": [{"containerPort": 80}]}
    ports = admit(make_pod(containers=[container], hostNetwork=True))["spec"]["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    ports = admit(make_pod(containers=[container]))["spec"]["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "protocol": "TCP"}]


def test_label_keys_are_merged_into_selectors_once(admit, make_pod):
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"x": "y"}}, "matchLabelKeys": ["app", "gone"]}
    other = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["app"]}
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": other}]
        },
    }
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    constraint = {**spread, "labelSelector": {}, "matchLabelKeys": ["app"]}
    stored = admit(make_pod(affinity=affinity, topologySpreadConstraints=[constraint]))
    spec = stored["spec"]
    merged = {"key": "app", "operator": "In", "values": ["web"]}
    required = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert required["labelSelector"] == {"matchLabels": {"x": "y"}, "matchExpressions": [merged]}
    preferred = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
    assert preferred["podAffinityTerm"]["labelSelector"] == {"matchExpressions": [{**merged, "operator": "NotIn"}]}
    assert spec["topologySpreadConstraints"][0] == {
        **constraint,
        "labelSelector": {"matchExpressions": [merged]},
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Ignore",
    }
    assert admit(stored, stored)["spec"] == spec


def test_priority_comes_from_the_class(admit, make_pod, cluster):
    cluster.add("priorityclasses", priority_class("high", 1000, preemptionPolicy="Never"))
    spec = admit(make_pod(priorityClassName="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    spec = admit(make_pod(priorityClassName="system-node-critical", namespace="kube-system"))["spec"]
    assert spec["priority"] == 2_000_001_000


def test_without_a_class_the_lowest_global_default_counts(admit, make_pod, cluster):
    cluster.add("priorityclasses", priority_class("b", 50, globalDefault=True))
    cluster.add("priorityclasses", priority_class("a", 70, globalDefault=True))
    spec = admit(make_pod())["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (50, "b")


def test_priorities_that_the_class_does_not_give_are_refused(refused, make_pod, cluster):
    assert refused(make_pod(priorityClassName="gone")) == [
        "spec.priorityClassName: Forbidden: no PriorityClass with name gone was found"
    ]
    (fault,) = refused(make_pod(priority=5))
    assert fault == (
        "spec.priority: Forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission "
        "controller computed 0 from the given PriorityClass name"
    )
    assert "PreemptionPolicy (Never)" in refused(make_pod(preemptionPolicy="Never"))[0]


def test_namespaces_must_exist(admit, refused, make_pod, cluster):
    assert admit(make_pod(namespace="kube-system"))["metadata"]["namespace"] == "kube-system"
    assert refused(make_pod(namespace="shop")) == ['metadata.namespace: namespaces "shop" not found: create it first']
    cluster.add("namespaces", {"metadata": {"name": "shop"}})
    assert admit(make_pod(namespace="shop"))["metadata"]["namespace"] == "shop"
    cluster.add("namespaces", {"metadata": {"name": "shop", "deletionTimestamp": "2020-01-01T00:00:00Z"}})
    assert "being terminated" in refused(make_pod(namespace="shop"))[0]


@pytest.mark.parametrize("nothing", ["", None])
def test_what_names_no_namespace_belongs_to_the_default_one(admit, make_pod, nothing):
    pod = make_pod()
    pod["metadata"]["namespace"] = nothing
    assert admit(pod)["metadata"]["namespace"] == "default"


def test_cluster_scoped_kinds_lose_their_namespace(admit):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "namespace": "x"}}
    assert "namespace" not in admit(node)["metadata"]


def test_a_nodes_allocatable_comes_from_its_capacity(admit):
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"capacity": {"cpu": 4, "pods": "110"}, "allocatable": {"cpu": "3500m"}},
    }
    assert admit(node)["status"]["allocatable"] == {"cpu": "3500m", "pods": "110"}


def test_defaults_of_workloads(admit):
    spec = admit(workload("Deployment"))["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert "tolerations" not in spec["template"]["spec"]
    assert admit(workload("ReplicaSet", replicas=0))["spec"]["replicas"] == 0
    assert admit(workload("Deployment", strategy={"type": "Recreate"}))["spec"]["strategy"] == {"type": "Recreate"}


def test_defaults_of_jobs(admit):
    stored = admit(workload("Job", "batch/v1", restart="Never"))
    spec = stored["spec"]
    numbers = {key: spec[key] for key in ("completions", "parallelism", "backoffLimit", "completionMode", "suspend")}
    assert numbers == {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
    }
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-1"}}
    assert spec["template"]["metadata"]["labels"] == {
        "app": "web",
        "batch.kubernetes.io/controller-uid": "uid-1",
        "controller-uid": "uid-1",
        "batch.kubernetes.io/job-name": "w",
        "job-name": "w",
    }
    queue = admit(workload("Job", "batch/v1", restart="Never", parallelism=3))["spec"]
    assert "completions" not in queue


def test_a_namespace_gets_its_name_as_label(admit):
    stored = admit({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    assert stored["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}
    assert stored["status"] == {"phase": "Active"}


def test_claims_get_the_newest_default_class(admit, cluster):
    for name, year, default in (("old", 2020, "true"), ("new", 2022, "true"), ("no", 2023, "false")):
        annotations = {"storageclass.kubernetes.io/is-default-class": default}
        meta = {"name": name, "annotations": annotations, "creationTimestamp": f"{year}-01-01T00:00:00Z"}
        cluster.add("storageclasses", {"metadata": meta})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    assert admit(claim)["spec"]["storageClassName"] == "new"
    claim["spec"] = {**spec, "storageClassName": ""}
    assert admit(claim)["spec"]["storageClassName"] == ""


def test_custom_kinds_are_stored_as_they_are(admit):
    widget = {"apiVersion": "e.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": None, "b": 1.5}}
    stored = admit(widget)
    assert stored["spec"] == {"a": None, "b": 1.5}
    assert stored["metadata"] == {
        "name": "w",
        "uid": "uid-1",
        "creationTimestamp": "2023-11-14T22:13:20Z",
        "generation": 1,
    }


def test_wrong_types_and_quantities_are_refused_with_their_path(refused, make_pod):
    assert refused(make_pod(priority="high")) == ["spec.priority: must be a whole number, is text"]
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1K"}, "limits": {"memory": "x"}}}
    assert refused(make_pod(containers=[container])) == [
        'spec.containers[0].resources.requests[cpu]: Invalid value: "1K": unable to parse quantity\'s suffix',
        f'spec.containers[0].resources.limits[memory]: Invalid value: "x": {QUANTITY_RULE}',
    ]
    assert refused({"apiVersion": "v1", "kind": "Pod", "metadata": "x"}) == ["metadata: must be a mapping, is text"]
    with pytest.raises(UnknownKindError):
        refused({"metadata": {"name": "x"}})


def test_all_faults_are_reported_together(refused, make_pod):
    pod = make_pod(name="Bad_", containers=[{"name": "c"}], restartPolicy="Sometimes", namespace="gone")
    assert [fault.partition(":")[0] for fault in refused(pod)] == [
        "metadata.name",
        "metadata.namespace",
        "spec.containers[0].image",
        "spec.restartPolicy",
    ]


requests = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 10**6).map(lambda milli: f"{milli}m"))


@given(requests, requests)
def test_admission_is_idempotent_and_requests_never_exceed_limits(wanted, limits):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": wanted, "limits": limits}}]},
    }

    class Nothing:
        def get(self, resource, namespace, name):
            return None

        def list(self, resource):
            return ()

    def run(document, old=None):
        return admission.admit(document, Nothing(), old=old, now=0, new_uid=lambda: "u", random=None)

    try:
        stored = run(pod)
    except admission.AdmissionError:
        assert any(quantity.nano(wanted[name]) > quantity.nano(limits[name]) for name in wanted.keys() & limits.keys())
        return
    resources = stored["spec"]["containers"][0]["resources"]
    for name, limit in resources["limits"].items():
        assert quantity.nano(resources["requests"][name]) <= quantity.nano(limit)
    assert run(pod, stored) == stored
    assert run(stored, stored) == stored


@pytest.mark.parametrize("field", ["labels", "annotations", "ownerReferences", "finalizers"])
def test_what_is_empty_in_metadata_is_left_out(admit, make_pod, field: str):
    empty = {} if field in ("labels", "annotations") else []
    document = make_pod()
    document["metadata"][field] = empty
    assert field not in admit(document)["metadata"]
