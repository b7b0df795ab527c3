"""A cluster in memory for `bench deschedule`: it has drifted, so that every plugin has something to find.

Some nodes are nearly empty, others hold twice as much as the rest. A few workloads have too many pods in one
zone, on one node, or on nodes that they do not want.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from podyard.bench import cluster
from podyard.bench.versions import version
from podyard.bus import Delivery
from podyard.cluster.view import ClusterView
from podyard.objects import times
from podyard.proto import codec, headers, subjects
from podyard.proto.placement import BoundPod, binding_of

NOW: Final = 1_800_000_000.0
NAMESPACES: Final = 50
REPLICAS: Final = 20
"""Pods of a workload."""
_LONG_AGO: Final = times.rfc3339(NOW - 30 * 86400)
_RECENT: Final = times.rfc3339(NOW - 86400)
_ODD_EACH: Final = 400
"""Of so many pods one has failed, one restarts all the time, one is very old."""
_FIRST: Final = {headers.EXPECTED_LAST_SUBJECT_SEQUENCE: "0"}
"""What the first version of anything says."""
_KINDS: Final = (*("plain",) * 6, *cluster.KINDS[1:])
"""Of workloads, in turn."""

Plugins = Mapping[str, dict[str, Any]]
"""Arguments by name."""

_DESCHEDULE: Final[Plugins] = {
    "PodLifeTime": {"maxPodLifeTimeSeconds": 7 * 86400},
    "RemoveFailedPods": {},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 100},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "RemovePodsViolatingNodeAffinity": {
        "nodeAffinityType": [
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        ]
    },
    "RemovePodsViolatingNodeTaints": {},
}
_BALANCE: Final[Plugins] = {
    "RemoveDuplicates": {},
    "RemovePodsViolatingTopologySpreadConstraint": {"constraints": ["DoNotSchedule", "ScheduleAnyway"]},
    "LowNodeUtilization": {"thresholds": {"cpu": 8}, "targetThresholds": {"cpu": 40}},
}
_PACKING: Final[Plugins] = {"HighNodeUtilization": {"thresholds": {"cpu": 2}}}


def policy() -> dict[str, Any]:
    """All plugins; the two that move pods in opposite directions in a profile each."""
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [_profile("moving", _DESCHEDULE, _BALANCE), _profile("packing", {}, _PACKING)],
    }


def _profile(name: str, deschedule: Plugins, balance: Plugins) -> dict[str, Any]:
    given = {"DefaultEvictor": {"nodeFit": True}, **deschedule, **balance}
    return {
        "name": name,
        "pluginConfig": [{"name": plugin, "args": args} for plugin, args in given.items()],
        "plugins": {"deschedule": {"enabled": list(deschedule)}, "balance": {"enabled": list(balance)}},
    }


def view(nodes: int, pods: int, *, full: bool = False) -> ClusterView:
    """The cluster as a service reads it.

    :param full: pods ask for so much that, with ten of them a node, hardly a node has room for one more
    """
    found = ClusterView()
    found.begin_listing()
    sequence = 0
    for sequence, (subject, payload) in enumerate(itertools.chain(_nodes(nodes), _pods(nodes, pods, full)), 1):
        found.apply(Delivery(subject, payload, sequence, NOW, _FIRST))
    found.end_listing(sequence)
    return found


def _nodes(count: int) -> Iterator[tuple[str, bytes]]:
    for number in range(count):
        document = cluster.node(number)
        document["spec"]["unschedulable"] = number % 50 == 3
        yield _stored(subjects.NODES, document)


def _pods(nodes: int, count: int, full: bool) -> Iterator[tuple[str, bytes]]:
    for number in range(count):
        document = _pod(number, full)
        yield _stored(subjects.PODS, document)
        metadata = document["metadata"]
        named = {field: metadata[field] for field in ("namespace", "name", "uid")}
        bound = BoundPod(**named, node=cluster.node_name(_place(number, nodes, full)), attempt=f"a-{number}")
        yield subjects.binding(bound.namespace, bound.name, bound.uid), codec.encode(binding_of(bound, bound_at=NOW))


def _stored(resource: str, document: dict[str, Any]) -> tuple[str, bytes]:
    found = version(resource, document)
    return found.subject, found.payload


def _pod(number: int, full: bool) -> dict[str, Any]:
    workload, odd = number // REPLICAS, number % _ODD_EACH
    kind = _KINDS[workload % len(_KINDS)]
    app = f"app-{workload}"
    cpu_milli = 5000 + workload % 997 if full else 400 + 200 * (workload % 4)
    document = cluster.pod(kind if kind != "selector" else "plain", f"{app}-{number:06}", app, cpu_milli)
    document["metadata"] |= {
        "namespace": f"ns-{workload % NAMESPACES}",
        "creationTimestamp": _LONG_AGO if odd == 0 else _RECENT,
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": f"uid-{app}", "controller": True}
        ],
    }
    document["spec"]["priority"] = workload % 3 * 1000
    if kind == "selector":
        pool = [{"matchExpressions": [{"key": "rack", "operator": "In", "values": [cluster.rack(_rack(workload))]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": pool}}
        document["spec"]["affinity"] = {"nodeAffinity": required}
    elif workload % 100 == 5:
        zone = {"matchExpressions": [{"key": cluster.ZONE, "operator": "In", "values": [cluster.ZONES[0]]}]}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": zone}]}
        document["spec"]["affinity"] = {"nodeAffinity": preferred}
    restarts = {"name": "main", "restartCount": 150 if odd == 1 else number % 3}
    document["status"] = {
        "phase": "Failed" if odd == 2 else "Running",
        "startTime": document["metadata"]["creationTimestamp"],
        "containerStatuses": [restarts],
    }
    return document


def _rack(workload: int) -> int:
    """That a workload needs, if it needs one: a hundredth of the cluster."""
    return workload // len(_KINDS) % cluster.RACKS


def _in_each_rack(nodes: int) -> int:
    """How many nodes every rack has."""
    return max(1, nodes // (len(cluster.ZONES) * cluster.RACKS)) * len(cluster.ZONES)


def _place(number: int, nodes: int, full: bool) -> int:
    """The node of a pod: those of a workload are on many nodes, but where it has drifted."""
    workload = number // REPLICAS
    at = number * 7
    match workload % 50:
        case 7:  # in one zone, and it spreads over zones
            at -= at % len(cluster.ZONES)
        case 8:  # two on a node, which keep apart
            at = number // 2 * 14
        case 10:  # four on a node
            at = number // 4 * 28
        case 16 | 26 | 36 | 46:  # on the rack that it needs; those of 6 are not
            at = cluster.in_rack(_rack(workload), number % _in_each_rack(nodes))
        case _:
            pass
    at %= nodes
    if not full and number // 10 % 10 and (at % 10 == 0 or at % 20 == 2):
        at = (at + 1) % nodes  # hardly any are on nodes with a taint, and on some others
    return at
