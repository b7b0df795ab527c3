import pytest

from podyard.objects import decoding, kinds, times
from podyard.telling import node_room, tables
from podyard.telling.node_room import TakenNode
from tests.support import objects

NOW = 1_700_000_000.0
MADE = {"creationTimestamp": times.rfc3339(NOW - 3600)}


def for_table(kind, item):
    """What a row is made of: of a node with what is requested of it."""
    return TakenNode(item, {}, 0) if kind.resource == "nodes" else item


def shown(resource, document, **choices):
    """One object's row, by header."""
    kind = kinds.resource_for(resource)
    meta = {"name": "x", **MADE, **document.get("metadata", {})}
    item = for_table(kind, decoding.view(kind, {**document, "metadata": meta}))
    return dict(zip(tables.headers(kind, **choices), tables.row(kind, item, NOW, **choices), strict=True))


def container_status(name="c", ready=False, restarts=0, **state):
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state}


def pod(status=None, metadata=None, **spec):
    return {**objects.pod(status=status, **spec), "metadata": metadata or {}}


STATUSES = {
    "pending": (pod({"phase": "Pending"}), "Pending"),
    "gated": (pod({"phase": "Pending"}, schedulingGates=[{"name": "g"}]), "SchedulingGated"),
    "running": (pod({"phase": "Running"}), "Running"),
    "evicted": (pod({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
    "terminating": (pod({"phase": "Running"}, {"deletionTimestamp": "2023-01-01T00:00:00Z"}), "Terminating"),
    "deleted when ended": (pod({"phase": "Succeeded"}, {"deletionTimestamp": "2023-01-01T00:00:00Z"}), "Succeeded"),
    "node lost": (
        pod({"phase": "Running", "reason": "NodeLost"}, {"deletionTimestamp": "2023-01-01T00:00:00Z"}),
        "Unknown",
    ),
    "pulling": (
        pod({"phase": "Pending", "containerStatuses": [container_status(waiting={"reason": "ImagePullBackOff"})]}),
        "ImagePullBackOff",
    ),
    "completed": (
        pod({"phase": "Succeeded", "containerStatuses": [container_status(terminated={"reason": "Completed"})]}),
        "Completed",
    ),
    "killed": (
        pod({"phase": "Failed", "containerStatuses": [container_status(terminated={"exitCode": 137, "signal": 9})]}),
        "Signal:9",
    ),
    "starting": (
        pod(
            {
                "phase": "Pending",
                "initContainerStatuses": [container_status("a", terminated={}), container_status("b")],
            },
            initContainers=[{"name": "a"}, {"name": "b"}],
        ),
        "Init:1/2",
    ),
    "failed to start": (
        pod(
            {"phase": "Pending", "initContainerStatuses": [container_status("a", terminated={"exitCode": 1})]},
            initContainers=[{"name": "a"}],
        ),
        "Init:ExitCode:1",
    ),
    "completed beside a sidecar": (
        pod(
            {
                "phase": "Succeeded",
                "conditions": [{"type": "Initialized", "status": "True"}],
                "initContainerStatuses": [container_status("s", terminated={"exitCode": 143, "reason": "Error"})],
                "containerStatuses": [container_status(terminated={"reason": "Completed"})],
            },
            initContainers=[{"name": "s", "restartPolicy": "Always"}],
        ),
        "Completed",
    ),
}


@pytest.mark.parametrize(("document", "status"), STATUSES.values(), ids=STATUSES)
def test_the_status_of_a_pod(document, status):
    assert shown("pods", document)["STATUS"] == status


def test_a_pod_in_all_columns():
    status = {
        "phase": "Running",
        "podIP": "10.0.0.7",
        "nominatedNodeName": "n2",
        "containerStatuses": [
            {
                **container_status(ready=True, restarts=2, running={}),
                "lastState": {"terminated": {"finishedAt": times.rfc3339(NOW - 300)}},
            }
        ],
    }
    assert shown("po", pod(status, {"namespace": "shop"}, nodeName="n1"), wide=True, namespace=True) == {
        "NAMESPACE": "shop",
        "NAME": "x",
        "READY": "1/1",
        "STATUS": "Running",
        "RESTARTS": "2 (5m ago)",
        "AGE": "60m",
        "IP": "10.0.0.7",
        "NODE": "n1",
        "NOMINATED NODE": "n2",
        "READINESS GATES": "<none>",
    }


def test_where_nobody_reports_containers_the_ready_condition_speaks_for_them():
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    sidecar = [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]
    assert shown("pods", pod(ready, initContainers=sidecar))["READY"] == "2/2"
    assert shown("pods", pod({"phase": "Running"}))["READY"] == "0/1"


def test_nodes():
    node = {
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.36.2"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "::1"}],
        },
    }
    assert shown("nodes", node) == {
        "NAME": "x",
        "STATUS": "Ready,SchedulingDisabled",
        "ROLES": "gpu,worker",
        "AGE": "60m",
        "VERSION": "v1.36.2",
        "CPU": "0/0",
        "MEMORY": "0/0",
        "PODS": "0/0",
    }
    wide = shown("nodes", node, wide=True)
    assert (wide["INTERNAL-IP"], wide["EXTERNAL-IP"], wide["OS-IMAGE"]) == ("10.0.0.1", "<none>", "<unknown>")
    assert shown("nodes", {})["STATUS"] == "Unknown"
    assert shown("nodes", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})["STATUS"] == "NotReady"


@pytest.mark.parametrize(
    ("allocatable", "requested", "told"),
    [
        ({"cpu": "8", "memory": "16Gi"}, {"cpu": 2500, "memory": 4 << 30}, ("2.5/8 31%", "4/16Gi 25%")),
        ({"cpu": "1930m", "memory": "500Mi"}, {"cpu": 1930, "memory": 1 << 28}, ("1.93/1.93 100%", "256/500Mi 51%")),
        ({"cpu": "1", "memory": "1Ki"}, {"cpu": 1500, "memory": 1 << 20}, ("1.5/1 150%", "1024/1Ki 102400%")),
        ({"cpu": "8", "memory": "1e9"}, {}, ("0/8 0%", "0/953.67Mi 0%")),
        ({}, {"cpu": 100, "memory": 10}, ("0.1/0", "10/0")),
        ({"cpu": "x", "memory": "y"}, {}, ("<unknown>", "<unknown>")),
    ],
)
def test_how_full_a_node_is(allocatable, requested, told):
    node = decoding.view(
        kinds.resource_for("nodes"), {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
    )
    assert node_room.room_cells(TakenNode(node, requested, 3))[:2] == told


def test_the_pods_on_a_node_are_counted():
    node = decoding.view(
        kinds.resource_for("nodes"), {"metadata": {"name": "n"}, "status": {"allocatable": {"pods": "110"}}}
    )
    assert node_room.room_cells(TakenNode(node, {}, 30))[2] == "30/110"


TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j:2"}]}}
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "old", "operator": "DoesNotExist"},
    ],
}
ROWS = {
    "deployments": (
        {
            "spec": {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR},
            "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
        },
        ["x", "2/3", "1", "2", "60m", "a,b", "i:1,j:2", "!old,app=web,tier in (a,b)"],
    ),
    "replicasets": (
        {"spec": {"template": TEMPLATE}, "status": {"replicas": 1}},
        ["x", "1", "1", "0", "60m", "a,b", "i:1,j:2", "<none>"],
    ),
    "statefulsets": ({"spec": {"replicas": 0, "template": TEMPLATE}}, ["x", "0/0", "60m", "a,b", "i:1,j:2"]),
    "replicationcontrollers": (
        {"spec": {"replicas": 2, "template": TEMPLATE, "selector": {"a": "b"}}},
        ["x", "2", "0", "0", "60m", "a,b", "i:1,j:2", "a=b"],
    ),
    "daemonsets": (
        {
            "spec": {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"disk": "ssd"}}}},
            "status": {
                "desiredNumberScheduled": 5,
                "currentNumberScheduled": 4,
                "numberReady": 3,
                "updatedNumberScheduled": 2,
                "numberAvailable": 1,
            },
        },
        ["x", "5", "4", "3", "2", "1", "disk=ssd", "60m", "a,b", "i:1,j:2", "<none>"],
    ),
    "controllerrevisions": (
        {
            "metadata": {
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "controller": True}]
            },
            "revision": 3,
        },
        ["x", "daemonset.apps/web", "3", "60m"],
    ),
    "cronjobs": (
        {
            "spec": {"schedule": "@daily", "suspend": False, "jobTemplate": {"spec": {"template": TEMPLATE}}},
            "status": {"active": [{"name": "x-1"}], "lastScheduleTime": times.rfc3339(NOW - 90)},
        },
        ["x", "@daily", "<none>", "False", "1", "90s", "60m", "a,b", "i:1,j:2", "<none>"],
    ),
    "jobs": (
        {
            "spec": {"completions": 3, "template": TEMPLATE},
            "status": {"succeeded": 1, "startTime": times.rfc3339(NOW - 90)},
        },
        ["x", "Running", "1/3", "90s", "60m", "a,b", "i:1,j:2", "<none>"],
    ),
    "persistentvolumeclaims": (
        {
            "spec": {"volumeName": "v", "storageClassName": "fast", "volumeMode": "Block"},
            "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1024Mi"}},
        },
        ["x", "Bound", "v", "1Gi", "RWO", "fast", "<unset>", "60m", "Block"],
    ),
    "persistentvolumes": (
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadOnlyMany", "ReadWriteOncePod"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "shop", "name": "c"},
                "storageClassName": "fast",
            },
            "status": {"phase": "Bound"},
        },
        ["x", "1Gi", "ROX,RWOP", "Retain", "Bound", "shop/c", "fast", "<unset>", "", "60m", "<unset>"],
    ),
    "poddisruptionbudgets": (
        {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
        ["x", "50%", "N/A", "1", "60m"],
    ),
    "priorityclasses": (
        {"value": -5, "globalDefault": True, "preemptionPolicy": "Never"},
        ["x", "-5", "true", "60m", "Never"],
    ),
    "namespaces": ({"status": {"phase": "Active"}}, ["x", "Active", "60m"]),
    "services": (
        {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]}},
        ["x", "ClusterIP", "<none>", "<none>", "80/TCP,53:30053/UDP", "60m", "a=b"],
    ),
    "storageclasses": (
        {"provisioner": "p", "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
        ["x (default)", "p", "Delete", "Immediate", "false", "60m"],
    ),
    "csinodes": ({"spec": {"drivers": [{"name": "d"}]}}, ["x", "1", "60m"]),
    "volumeattachments": (
        {
            "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
            "status": {"attached": True},
        },
        ["x", "d", "v", "n", "true", "60m"],
    ),
    "resourceclaims": (
        {"status": {"allocation": {}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}},
        ["x", "allocated,reserved", "60m"],
    ),
    "widgets.v1.e.com": ({"apiVersion": "e.com/v1", "kind": "Widget"}, ["x", "60m"]),
}


@pytest.mark.parametrize("resource", ROWS)
def test_rows(resource):
    document, cells = ROWS[resource]
    assert list(shown(resource, document, wide=True).values()) == cells


def test_every_kind_has_as_many_cells_as_headers():
    for kind in kinds.KINDS:
        document = {"metadata": {"name": "x"}}
        if kind.kind == "ResourceSlice":
            document["spec"] = {"driver": "d", "pool": {"name": "p"}}
        item = for_table(kind, decoding.view(kind, document))
        for wide in (False, True):
            for namespace in (False, True):
                choices = {"wide": wide, "namespace": namespace}
                assert len(tables.row(kind, item, NOW, **choices)) == len(tables.headers(kind, **choices))


@pytest.mark.parametrize("written", ["garbage", "2023-13-01T00:00:00Z"])
def test_a_time_that_is_none_is_shown_as_such(written):
    row = shown("jobs", {"metadata": {"creationTimestamp": written}, "status": {"startTime": written}})
    assert (row["DURATION"], row["AGE"]) == ("<invalid>", "<invalid>")


def test_the_state_of_jobs():
    done = {"type": "Complete", "status": "True"}
    end = times.rfc3339(NOW - 60)
    status = {"conditions": [done], "startTime": times.rfc3339(NOW - 100), "completionTime": end, "succeeded": 1}
    row = shown("jobs", {"spec": {"parallelism": 3}, "status": status})
    assert (row["STATUS"], row["COMPLETIONS"], row["DURATION"]) == ("Complete", "1/1 of 3", "40s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_lengths_of_time_as_kubectl_writes_them(seconds, text):
    assert times.duration(seconds) == text


def test_ages_and_times():
    assert times.age(None, NOW) == "<unknown>"
    assert times.age("soon", NOW) == "<invalid>"
    assert times.rfc3339(NOW + 0.9) == "2023-11-14T22:13:20Z"
    assert times.seconds_of("2023-11-14T22:13:20Z") == NOW
    assert times.rfc3339(1e12) == "9999-12-31T23:59:59Z"
    assert times.seconds_of("2023-11-14T23:13:20.5+01:00") == NOW + 0.5
    assert times.seconds_of(f"2023-11-14T22:13:20.{'5' * 100}Z") == pytest.approx(NOW + 0.555555, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "2023-11-14T22:13:20",
        "2023-11-14 22:13:20Z",
        "2023-11-14",
        "2023-11-14T22:13Z",
        "2023-11-14T22:61:20Z",
        "20231114T221320Z",
    ],
)
def test_what_the_api_server_takes_for_no_time_is_none(text):
    """Source: apimachinery v0.34.1, metav1.Time: each of these was given to it."""
    with pytest.raises(ValueError, match=r"no time|must be in"):
        times.seconds_of(text)
    assert times.seconds_or(text, None) is None
    assert times.age(text, NOW) == "<invalid>"
