"""Nodes, pods and tables for tests, in as few words as possible."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.snapshot import Snapshot
from podyard.objects import decoding
from podyard.objects.core import Node
from podyard.plugins import defaults, registry
from podyard.plugins.defaults import default_profile
from podyard.proto.placement import BoundPod


def make_node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[tuple[str, str, str]] = (),
    unschedulable: bool = False,
    **more: str,
) -> Node:
    """A node. `taints` are (key, value, effect); further resources as keywords, `_` for `/` and `-` left out."""
    document = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})},
        "spec": {
            "unschedulable": unschedulable,
            "taints": [{"key": key, "value": value, "effect": effect} for key, value, effect in taints],
        },
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": str(pods)}
            | {key.replace("__", "/").replace("_", "-"): value for key, value in more.items()}
        },
    }
    return decoding.decode("nodes", msgspec.json.encode(document))


def make_pod(
    name: str,
    *,
    cpu: str = "",
    memory: str = "",
    requests: Mapping[str, str] | None = None,
    priority: int = 0,
    uid: str = "",
    nominated: str = "",
    spec: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    deleting: bool = False,
) -> PodView:
    """A pending pod with one container; `spec` is merged over what the other arguments make."""
    wanted = dict(requests or {})
    wanted |= {"cpu": cpu} if cpu else {}
    wanted |= {"memory": memory} if memory else {}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": uid or f"uid-{name}",
        "labels": dict(labels or {}),
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    document = {
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "resources": {"requests": wanted}}], "priority": priority}
        | dict(spec or {}),
        "status": {"nominatedNodeName": nominated} if nominated else {},
    }
    pod = decoding.decode("pods", msgspec.json.encode(document))
    return PodView(pod, ("default", name), pod.metadata.uid, 1)


def toleration(key: str = "", operator: str = "", value: str = "", effect: str = "") -> dict[str, str]:
    """A toleration as a manifest has it."""
    given = {"key": key, "operator": operator, "value": value, "effect": effect}
    return {name: text for name, text in given.items() if text}


def required(*terms: Mapping[str, Any]) -> dict[str, Any]:
    """Required node affinity, for `spec`."""
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": rules}}


def preferred(*weighted: tuple[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Preferred node affinity, for `spec`."""
    terms = [{"weight": weight, "preference": term} for weight, term in weighted]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def term(key: str, operator: str, *values: str, field: bool = False) -> dict[str, Any]:
    """A term with one requirement."""
    requirement = {"key": key, "operator": operator, "values": list(values)}
    return {"matchFields" if field else "matchExpressions": [requirement]}


def on(pod: PodView, node: str) -> PodView:
    """The pod placed on a node."""
    bound = BoundPod(namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node, labels=pod.labels, usage=pod.usage)
    return pod.with_placement(bound, None)


def table_of(*nodes: Node) -> NodeTable:
    """A table of these nodes."""
    table = NodeTable()
    for node in nodes:
        table.set_node(node)
    return table


def snapshot_of(*nodes: Node) -> Snapshot:
    """A snapshot of these nodes."""
    return Snapshot(table_of(*nodes))


def profile(args: Mapping[str, Any] | None = None) -> Profile:
    """The default profile, with arguments by plugin name."""
    return default_profile(args=args)


def profile_of(*names: str, args: Mapping[str, Any] | None = None) -> Profile:
    """A profile of these plugins only, in the order and with the weights of the default one."""
    given = args or {}
    entries = [entry for entry in registry.IN_TREE if entry.name in names]
    enabled = [
        Enabled(plugin=registry.create(entry, given.get(entry.name)), weight=defaults.WEIGHTS.get(entry.name, 0))
        for entry in entries
    ]
    return resolve("some", enabled)
