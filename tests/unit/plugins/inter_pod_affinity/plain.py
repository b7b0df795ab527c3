"""Pod affinity read one node at a time, from manifests: slow, and written from the rules alone.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/interpodaffinity; documentation of pod
affinity.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Manifest = dict[str, Any]
Labels = Mapping[str, str]

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


class Cluster(NamedTuple):
    """Labels of nodes and namespaces by name; pods by uid with their nodes (a node may be unknown)."""

    nodes: dict[str, Labels]
    namespaces: dict[str, Labels]
    placed: dict[str, tuple[Manifest, str]]

    def pods(self) -> Iterable[tuple[Manifest, Labels]]:
        """Pods on known nodes, with the labels of their nodes."""
        return [(pod, self.nodes[node]) for pod, node in self.placed.values() if node in self.nodes]


def selects(selector: Manifest | None, labels: Labels) -> bool:
    """A label selector; an absent one selects nothing."""
    if selector is None:
        return False
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for line in selector.get("matchExpressions", []):
        key, values, there = line["key"], line.get("values", []), line["key"] in labels
        holds = {
            "In": there and labels.get(key) in values,
            "NotIn": not (there and labels.get(key) in values),
            "Exists": there,
            "DoesNotExist": not there,
        }
        if not holds[line["operator"]]:
            return False
    return True


def listed(pod: Manifest, kind: str, need: str) -> list[Manifest]:
    """`kind` podAffinity or podAntiAffinity, `need` required or preferred."""
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return affinity.get(f"{need}DuringSchedulingIgnoredDuringExecution") or []


def labelled(owner: Manifest, term: Manifest, other: Manifest) -> bool:
    """Whether the term of `owner` means the labels of `other`; keys to match are merged unless they were."""
    mine, theirs, selector = owner["metadata"]["labels"], other["metadata"]["labels"], term.get("labelSelector")
    if not selects(selector, theirs):
        return False
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field, []):
            merged = any(
                line["key"] == key and line["operator"] == operator for line in selector.get("matchExpressions", [])
            ) or (operator == "In" and key in selector.get("matchLabels", {}))
            if key in mine and not merged and (theirs.get(key) == mine[key]) != (operator == "In"):
                return False
    return True


def of_placed(cluster: Cluster, owner: Manifest, term: Manifest, incoming: Manifest) -> bool:
    """Whether the term of a placed pod means the incoming pod."""
    space = incoming["metadata"]["namespace"]
    own_only = not term.get("namespaces") and term.get("namespaceSelector") is None
    names = [owner["metadata"]["namespace"]] if own_only else term.get("namespaces", [])
    there = space in names or selects(term.get("namespaceSelector"), cluster.namespaces.get(space, {}))
    return there and labelled(owner, term, incoming)


def of_incoming(cluster: Cluster, incoming: Manifest, term: Manifest, placed: Manifest) -> bool:
    """Whether the term of the incoming pod means a placed pod (or the incoming pod itself).

    The namespaces that the selector chooses are listed; and the selector is asked about no labels besides
    (kubernetes#141526).
    """
    space, chooses = placed["metadata"]["namespace"], term.get("namespaceSelector")
    there = of_placed_namespace(incoming, term, space) or selects(chooses, {})
    if space in cluster.namespaces:
        there = there or selects(chooses, cluster.namespaces[space])
    return there and labelled(incoming, term, placed)


def of_placed_namespace(owner: Manifest, term: Manifest, space: str) -> bool:
    """Whether a namespace is listed, or is the owner's if nothing is said."""
    if not term.get("namespaces") and term.get("namespaceSelector") is None:
        return space == owner["metadata"]["namespace"]
    return space in term.get("namespaces", [])


def verdicts(cluster: Cluster, pod: Manifest) -> dict[str, str]:
    """By node: why it does not take the pod, empty if it does."""
    return {name: verdict(cluster, pod, labels) for name, labels in cluster.nodes.items()}


def verdict(cluster: Cluster, pod: Manifest, node: Labels) -> str:
    """Why a node of these labels does not take the pod."""
    wanted = listed(pod, "podAffinity", "required")
    if wanted and not near(cluster, pod, wanted, node):
        return AFFINITY
    for term in listed(pod, "podAntiAffinity", "required"):
        key = term["topologyKey"]
        for other, where in cluster.pods():
            if of_incoming(cluster, pod, term, other) and key in node and where.get(key) == node[key]:
                return ANTI_AFFINITY
    for other, where in cluster.pods():
        for term in listed(other, "podAntiAffinity", "required"):
            key = term["topologyKey"]
            if of_placed(cluster, other, term, pod) and key in node and where.get(key) == node[key]:
                return EXISTING
    return ""


def near(cluster: Cluster, pod: Manifest, wanted: list[Manifest], node: Labels) -> bool:
    """Every key is there, and for each of them a pod that all terms mean is in the domain; or the pod begins
    its group."""
    if any(term["topologyKey"] not in node for term in wanted):
        return False
    mates = [where for other, where in cluster.pods() if all(of_incoming(cluster, pod, term, other) for term in wanted)]
    keys = [term["topologyKey"] for term in wanted]
    if all(any(where.get(key) == node[key] for where in mates) for key in keys):
        return True
    nobody = not any(key in where for where in mates for key in keys)
    return nobody and all(of_incoming(cluster, pod, term, pod) for term in wanted)


def points(cluster: Cluster, pod: Manifest, hard_weight: int, ignore: bool) -> dict[str, int] | None:
    """Points by node before normalisation; None: the plugin sits out."""
    preferred = [(kind, term) for kind in ("podAffinity", "podAntiAffinity") for term in listed(pod, kind, "preferred")]
    if ignore and not preferred:
        return None
    worth: Counter[tuple[str, str]] = Counter()
    seen = False
    for other, where in cluster.pods():
        for key, weight in meetings(cluster, pod, other, hard_weight):
            if key in where:
                seen = True
                worth[key, where[key]] += weight
    if not seen:
        return None
    return {name: sum(worth[label] for label in labels.items()) for name, labels in cluster.nodes.items()}


def meetings(cluster: Cluster, pod: Manifest, other: Manifest, hard_weight: int) -> Iterable[tuple[str, int]]:
    """Topology keys and weights for each term by which the two pods attract or repel."""
    for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        for line in listed(pod, kind, "preferred"):
            if of_incoming(cluster, pod, line["podAffinityTerm"], other):
                yield line["podAffinityTerm"]["topologyKey"], sign * line["weight"]
        for line in listed(other, kind, "preferred"):
            if of_placed(cluster, other, line["podAffinityTerm"], pod):
                yield line["podAffinityTerm"]["topologyKey"], sign * line["weight"]
    for term in listed(other, "podAffinity", "required"):
        if hard_weight and of_placed(cluster, other, term, pod):
            yield term["topologyKey"], hard_weight


def normalized(raw: Mapping[str, int]) -> dict[str, int]:
    """From lowest to highest, 0 to 100, cut off."""
    low, high = min(raw.values()), max(raw.values())
    return {
        name: 0 if low == high else int(100.0 * (float(value - low) / float(high - low))) for name, value in raw.items()
    }
