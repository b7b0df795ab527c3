"""Nodes, pods and tables for tests, in as few words as possible."""

from collections.abc import Mapping, Sequence
from typing import Any

from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.snapshot import Snapshot
from podyard.objects.core import Node
from podyard.plugins import defaults, registry
from podyard.plugins.defaults import default_profile
from podyard.proto.placement import BoundPod
from tests.support.objects import pod, typed_node, view


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
    """A node without labels of its own. `taints` are (key, value, effect); further resources as keywords, `_`
    for `/` and `-` left out."""
    return typed_node(
        name,
        cpu=cpu,
        memory=memory,
        pods=str(pods),
        amounts={key.replace("__", "/").replace("_", "-"): value for key, value in more.items()},
        bare=True,
        labels=labels,
        taints=[{"key": key, "value": value, "effect": effect} for key, value, effect in taints],
        unschedulable=unschedulable,
    )


def make_pod(name: str, *, spec: Mapping[str, Any] | None = None, **more: Any) -> PodView:
    """A pending pod as readers see it; `more` as of the builder of pods, `spec` further fields of its
    spec."""
    return view(pod(name, **{"priority": 0, **more, **(spec or {})}))


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


def on(one: PodView, node: str) -> PodView:
    """The pod placed on a node."""
    bound = BoundPod(namespace=one.namespace, name=one.name, uid=one.uid, node=node, labels=one.labels, usage=one.usage)
    return one.with_placement(bound, None)


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
