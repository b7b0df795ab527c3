import pytest

LABEL = {"matchLabels": {"app": "web"}}


def container(**more):
    return {"name": "c", "image": "x", **more}


def resources(requests=None, limits=None):
    return {"containers": [container(resources={"requests": requests or {}, "limits": limits or {}})]}


def node_affinity(term):
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


def pod_affinity(**term):
    required = [{"topologyKey": "zone", "labelSelector": LABEL, **term}]
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def spread(**more):
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": LABEL}
    return {"topologySpreadConstraints": [{**base, **more}]}


def toleration(**fields):
    return {"tolerations": [fields]}


TERM = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
PREFERRED = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
POD_TERM = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
EMPTY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'

FAULTS = {
    "container without name": ({"containers": [{"name": "", "image": "x"}]}, "spec.containers[0].name: Required value"),
    "container without image": ({"containers": [{"name": "c"}]}, "spec.containers[0].image: Required value"),
    "two containers of one name": (
        {"containers": [container(), container()]},
        'spec.containers[1].name: Duplicate value: "c"',
    ),
    "init container of the same name": (
        {"initContainers": [container()]},
        'spec.initContainers[0].name: Duplicate value: "c"',
    ),
    "request above limit": (
        resources({"cpu": "2"}, {"cpu": "1"}),
        'spec.containers[0].resources.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    "negative request": (
        resources({"memory": "-1Gi"}),
        'spec.containers[0].resources.requests[memory]: Invalid value: "-1Gi": must be greater than or equal to 0',
    ),
    "half a gpu": (
        resources({"nvidia.com/gpu": "500m"}, {"nvidia.com/gpu": "500m"}),
        'spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
    ),
    "gpu request without limit": (
        resources({"nvidia.com/gpu": "1"}),
        "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
    ),
    "gpu request that is not the limit": (
        resources({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"}),
        'spec.containers[0].resources.requests[nvidia.com/gpu]: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2',
    ),
    "resource nobody knows": (
        resources({"cpus": "1"}),
        'spec.containers[0].resources.requests[cpus]: Invalid value: "cpus": must be a standard resource for containers',
    ),
    "huge pages alone": (
        resources({"hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "2Mi"}),
        "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
    ),
    "pod-level request below its containers": (
        {**resources({"cpu": "2"}), "resources": {"requests": {"cpu": "1"}}},
        'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2',
    ),
    "pod-level storage": (
        {"resources": {"requests": {"ephemeral-storage": "1"}}},
        "spec.resources.requests[ephemeral-storage]: Unsupported value",
    ),
    "port too high": (
        {"containers": [container(ports=[{"containerPort": 70000}])]},
        "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ),
    "host port twice": (
        {
            "containers": [
                container(ports=[{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}])
            ]
        },
        'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"',
    ),
    "protocol": (
        {"containers": [container(ports=[{"containerPort": 80, "protocol": "HTTP"}])]},
        'spec.containers[0].ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
    ),
    "restart policy": (
        {"restartPolicy": "Maybe"},
        'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "Never", "OnFailure"',
    ),
    "negative grace period": (
        {"terminationGracePeriodSeconds": -1},
        "spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0",
    ),
    "deadline 0": (
        {"activeDeadlineSeconds": 0},
        "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647",
    ),
    "gate with node name": (
        {"schedulingGates": [{"name": "g"}], "nodeName": "n1"},
        "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ),
    "gate twice": (
        {"schedulingGates": [{"name": "g"}, {"name": "g"}]},
        'spec.schedulingGates[1]: Duplicate value: "g"',
    ),
    "node selector": (
        {"nodeSelector": {"a b": "c"}},
        'spec.nodeSelector: Invalid value: "a b": name part must consist of',
    ),
    "volume twice": (
        {"volumes": [{"name": "v"}, {"name": "v"}]},
        'spec.volumes[1].name: Duplicate value: "v"',
    ),
    "unknown claim": (
        {"containers": [container(resources={"claims": [{"name": "gpu"}]})]},
        'spec.containers[0].resources.claims[0].name: Not found: "gpu"',
    ),
    "toleration without key": (toleration(value="x"), f'spec.tolerations[0].operator: Invalid value: "": {EMPTY_KEY}'),
    "toleration seconds": (
        toleration(key="a", operator="Exists", effect="NoSchedule", tolerationSeconds=1),
        "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
    ),
    "toleration value with Exists": (
        toleration(key="a", operator="Exists", value="b"),
        "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
    ),
    "toleration operator that is off by default": (
        toleration(key="a", operator="Gt", value="1"),
        'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"',
    ),
    "toleration effect": (
        toleration(key="a", operator="Exists", effect="Never"),
        'spec.tolerations[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "PreferNoSchedule"',
    ),
    "no node selector terms": (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
        f"{TERM}: Required value: must have at least one node selector term",
    ),
    "In without values": (
        node_affinity({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        f"{TERM}[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    ),
    "Gt with text": (
        node_affinity({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}),
        f"{TERM}[0].matchExpressions[0].values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
    ),
    "field other than the name": (
        node_affinity({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["x"]}]}),
        f'{TERM}[0].matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key',
    ),
    "weight 0": (
        {
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}]}
            }
        },
        f"{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100",
    ),
    "pod affinity without topology key": (
        pod_affinity(topologyKey=""),
        f"{POD_TERM}.topologyKey: Required value: can not be empty",
    ),
    "pod affinity with a node's operator": (
        pod_affinity(labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
        f'{POD_TERM}.labelSelector.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator',
    ),
    "a key in both lists": (
        pod_affinity(matchLabelKeys=["k"], mismatchLabelKeys=["k"]),
        f'{POD_TERM}.matchLabelKeys[0]: Invalid value: "k": exists in both matchLabelKeys and mismatchLabelKeys',
    ),
    "label keys without selector": (
        pod_affinity(labelSelector=None, matchLabelKeys=["k"]),
        f"{POD_TERM}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
    ),
    "skew 0": (
        spread(maxSkew=0),
        "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ),
    "minDomains of a soft constraint": (
        spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2),
        "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNot",
    ),
    "constraint twice": (
        {"topologySpreadConstraints": spread()["topologySpreadConstraints"] * 2},
        'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"',
    ),
}


@pytest.mark.parametrize(("spec", "fault"), FAULTS.values(), ids=FAULTS)
def test_pods_that_are_refused(refused, make_pod, spec, fault):
    found = refused(make_pod(**spec))
    assert any(item.startswith(fault) for item in found), found


def test_a_pod_without_containers_is_refused(refused):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
    assert refused(pod) == ["spec.containers: Required value"]


def test_a_rich_pod_passes(admit, make_pod):
    fine = {
        **resources({"cpu": "1", "nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}),
        **node_affinity({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
        **spread(minDomains=2),
        **toleration(operator="Exists", effect="NoExecute", tolerationSeconds=-1),
        "resources": {"requests": {"cpu": "2"}},
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    }
    assert admit(make_pod(**fine))["metadata"]["uid"] == "uid-1"


def document(kind, api_version="v1", name="x", spec=None, labels=None, **top):
    body = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
    }
    return {**body, **({"spec": spec} if spec is not None else {}), **top}


def template(labels=None, restart="Always"):
    return {
        "metadata": {"labels": labels or {"app": "web"}},
        "spec": {"containers": [container()], "restartPolicy": restart},
    }


TAINT = {"key": "a", "effect": "NoSchedule"}
KINDS = {
    "node name": (document("Node", name="N1"), 'metadata.name: Invalid value: "N1": a lowercase RFC 1123 subdomain'),
    "namespace name with dot": (
        document("Namespace", name="a.b"),
        'metadata.name: Invalid value: "a.b": a lowercase RFC 1123 label',
    ),
    "name too long": (document("Node", name="a" * 254), "metadata.name: Invalid value"),
    "label value": (document("Node", labels={"a": "-"}), 'metadata.labels: Invalid value: "-": a valid label must be'),
    "label key": (document("Node", labels={"a/b/c": ""}), 'metadata.labels: Invalid value: "a/b/c": a qualified name'),
    "taint twice": (
        document("Node", spec={"taints": [TAINT, TAINT]}),
        'spec.taints[1]: Duplicate value: "a:NoSchedule"',
    ),
    "taint effect": (
        document("Node", spec={"taints": [{"key": "a", "effect": "No"}]}),
        'spec.taints[0].effect: Unsupported value: "No"',
    ),
    "negative capacity": (
        document("Node", status={"capacity": {"cpu": "-1"}}),
        'status.capacity[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ),
    "priority too high": (
        document("PriorityClass", "scheduling.k8s.io/v1", value=1_000_000_001),
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
    ),
    "reserved class name": (
        document("PriorityClass", "scheduling.k8s.io/v1", name="system-mine", value=1),
        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only",
    ),
    "budget with both": (
        document("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1, "maxUnavailable": 1}),
        'spec: Invalid value: "minAvailable 1": minAvailable and maxUnavailable cannot be both set',
    ),
    "budget of 200%": (
        document("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "200%"}),
        'spec.minAvailable: Invalid value: "200%": must not be greater than 100%',
    ),
    "budget of some": (
        document("PodDisruptionBudget", "policy/v1", spec={"maxUnavailable": "some"}),
        "spec.maxUnavailable: Invalid value: \"some\": must be an integer or percentage (e.g '5%')",
    ),
    "deployment without selector": (
        document("Deployment", "apps/v1", spec={"template": template()}),
        "spec.selector: Required value",
    ),
    "selector that misses the template": (
        document("ReplicaSet", "apps/v1", spec={"selector": {"matchLabels": {"app": "db"}}, "template": template()}),
        'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ),
    "negative replicas": (
        document("Deployment", "apps/v1", spec={"replicas": -1, "selector": LABEL, "template": template()}),
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ),
    "template restart policy": (
        document("Deployment", "apps/v1", spec={"selector": LABEL, "template": template(restart="Never")}),
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ),
    "job restart policy": (
        document("Job", "batch/v1", spec={"template": template()}),
        'spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: "Never", "OnFailure"',
    ),
    "indexed job without completions": (
        document(
            "Job",
            "batch/v1",
            spec={"completionMode": "Indexed", "parallelism": 1, "template": template(restart="Never")},
        ),
        "spec.completions: Required value: when completion mode is Indexed",
    ),
    "deployment that can never move": (
        document(
            "Deployment",
            "apps/v1",
            spec={
                "selector": LABEL,
                "template": template(),
                "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
            },
        ),
        "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
    ),
    "claim without size": (
        document("PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"]}),
        "spec.resources[storage]: Required value",
    ),
    "volume without capacity": (
        document("PersistentVolume", spec={"accessModes": ["ReadWriteOnce"]}),
        'spec.capacity: Required value: the resource "storage" must be set',
    ),
    "class without provisioner": (document("StorageClass", "storage.k8s.io/v1"), "provisioner: Required value"),
}


@pytest.mark.parametrize(("given", "fault"), KINDS.values(), ids=KINDS)
def test_other_kinds_that_are_refused(refused, given, fault):
    found = refused(given)
    assert any(item.startswith(fault) for item in found), found


def test_a_second_global_default_is_refused(refused, cluster):
    first = document("PriorityClass", "scheduling.k8s.io/v1", name="first", value=1, globalDefault=True)
    cluster.add("priorityclasses", first)
    assert refused({**first, "metadata": {"name": "second"}}) == [
        "globalDefault: Forbidden: PriorityClass first is already marked as default. Only one default can exist"
    ]


def test_too_many_controllers(refused, make_pod):
    pod = make_pod()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner, {**owner, "uid": ""}]
    found = refused(pod)
    assert len(found) == 2
    assert "uid must not be empty" in found[0]
    assert "Only one reference can have Controller set to true" in found[1]
