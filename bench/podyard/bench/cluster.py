"""A cluster in memory for `bench cycle`, and parts for `bench deschedule`: nodes in three zones, pods of five
kinds."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.objects import decoding

PODS_A_NODE: Final = 2
ZONES: Final = ("zone-a", "zone-b", "zone-c")
RACKS: Final = 100
WORKLOADS: Final = 50
NAMESPACE: Final = "default"
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
KINDS: Final = ("plain", "selector", "spread", "anti-affinity", "affinity")
"""A plain pod; a node selector and tolerations; a hard spread over zones; required anti-affinity to its own
kind on a host; preferred affinity to its own kind in a zone."""

_MIX: Final = (*("plain",) * 6, *KINDS[1:])
"""Of ten placed pods six are plain."""


def table(nodes: int) -> NodeTable:
    """A cluster with placed pods, of workloads in all kinds."""
    found = NodeTable()
    for number in range(nodes):
        made: Any = decoding.decode("nodes", msgspec.json.encode(node(number)))
        found.set_node(made)
    for number in range(nodes * PODS_A_NODE):
        workload = number // len(_MIX) % WORKLOADS
        view = _view(pod(_MIX[number % len(_MIX)], f"placed-{number:06}", f"app-{workload}", 100 + 50 * (workload % 4)))
        found.place(view.with_placement(view.bound_to(node_name(number * 7 % nodes)), None))
    return found


def different(kind: str, count: int) -> Iterator[PodView]:
    """Pods each of another workload: other labels, requests and selectors."""
    for number in range(count):
        yield _view(pod(kind, f"first-{kind}-{number:04}", f"first-{kind}-{number}", 101 + number, number))


def alike(kind: str, count: int) -> Iterator[PodView]:
    """Pods of one workload."""
    for number in range(count):
        yield _view(pod(kind, f"seen-{kind}-{number:04}", f"seen-{kind}", 90))


def node(number: int) -> dict[str, Any]:
    """32 CPUs (every fourth: 16), 128 GiB; every tenth with a taint, every seventh with a soft one."""
    size = {"cpu": "16" if number % 4 == 0 else "32", "memory": "128Gi", "pods": "110"}
    name = node_name(number)
    taints: list[dict[str, str]] = []
    if number % 10 == 0:
        taints.append({"key": "dedicated", "value": "batch", "effect": "NoSchedule"})
    if number % 7 == 0:
        taints.append({"key": "spot", "value": "", "effect": "PreferNoSchedule"})
    labels = {HOST: name, ZONE: ZONES[number % len(ZONES)], "rack": rack(number // len(ZONES))}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {"taints": taints},
        "status": {"capacity": size, "allocatable": size},
    }


def pod(kind: str, name: str, app: str, cpu_milli: int, number: int = 0) -> dict[str, Any]:
    """A pod of a workload.

    :param number: makes other selectors
    """
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": "main",
                "image": f"registry.example/{app}:1",
                "resources": {"requests": {"cpu": f"{cpu_milli}m", "memory": f"{cpu_milli * 2}Mi"}},
            }
        ]
    }
    own = {"matchLabels": {"app": app}}
    if kind == "selector":
        spec["nodeSelector"] = {"rack": rack(number)}
        spec["tolerations"] = [
            {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
            {"key": f"for-{app}", "operator": "Exists"},
        ]
    elif kind == "spread":
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own}
        ]
    elif kind == "anti-affinity":
        required = [{"topologyKey": HOST, "labelSelector": own}]
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    elif kind == "affinity":
        preferred = [{"weight": 50, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": own}}]
        spec["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": {"app": app}},
        "spec": spec,
    }


def _view(document: dict[str, Any]) -> PodView:
    found: Any = decoding.decode("pods", msgspec.json.encode(document))
    return PodView(found, (NAMESPACE, found.metadata.name), found.metadata.uid, 1)


def node_name(number: int) -> str:
    """Of the node of this number."""
    return f"node-{number:05}"


def rack(number: int) -> str:
    """Of this number; they repeat."""
    return f"rack-{number % RACKS:02}"


def in_rack(number: int, position: int) -> int:
    """The node of a rack in this position, if the cluster is large enough to have it: three side by side,
    one in each zone, then the three after the next of all racks."""
    turn, zone = divmod(position, len(ZONES))
    return len(ZONES) * (number + RACKS * turn) + zone
