"""May this pod be on that node? The rules once more, plainly, on documents: nothing of this is shared with
the framework."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from podyard.objects import quantity
from tests.simulation import storage_rules
from tests.simulation.history import Document, State


class Placed(NamedTuple):
    """A pod on a node."""

    uid: str
    pod: Document
    node: str
    gone: bool = False
    """Its object is deleted, its binding still takes room."""
    bound: Mapping[str, int] | None = None
    """What its binding says that it takes: what counts once its object is gone. Until then its object counts,
    which may be resized."""

    def takes(self) -> Counter[str]:
        """What it takes from its node now."""
        if self.gone and self.bound is not None:
            return Counter({"pods": 1, **self.bound})
        return requests(self.pod)


def requests(pod: Document) -> Counter[str]:
    """What a pod takes: cpu in milli-CPU, others whole."""
    found: Counter[str] = Counter({"pods": 1})
    for container in pod["spec"]["containers"]:
        for name, text in container.get("resources", {}).get("requests", {}).items():
            found[name] += quantity.milli(text) if name == "cpu" else quantity.value(text)
    return found


def overload(node: Document, takers: Iterable[Counter[str]]) -> dict[str, tuple[int, int]]:
    """Of what a node would give more than it has: taken, there."""
    taken: Counter[str] = Counter()
    for one in takers:
        taken.update(one)
    room = node["status"]["allocatable"]
    has = {name: quantity.milli(text) if name == "cpu" else quantity.value(text) for name, text in room.items()}
    return {name: (amount, has.get(name, 0)) for name, amount in taken.items() if amount > has.get(name, 0)}


def ports(pod: Document) -> set[int]:
    """Host ports that a pod takes."""
    return {port["hostPort"] for container in pod["spec"]["containers"] for port in container.get("ports", ())}


def labels(document: Document) -> Mapping[str, str]:
    """An object's labels."""
    return document["metadata"].get("labels", {})


def selected(selector: Document, pod: Document) -> bool:
    """Whether a selector of `matchLabels` takes the pod."""
    return all(labels(pod).get(key) == value for key, value in selector["matchLabels"].items())


def required(pod: Document, kind: str) -> list[Document]:
    """Required terms of `podAffinity` or `podAntiAffinity`."""
    return pod["spec"].get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])


def why_not(pod: Document, node: Document, state: State, others: Sequence[Placed], *, bound: bool = False) -> str:
    """Why `pod` may not be placed on `node` beside all `others`; empty if it may.

    :param bound: its claims must be bound by now; else it is enough that they can be
    """
    if node["spec"].get("unschedulable"):
        return "cordoned"
    if any(labels(node).get(key) != value for key, value in pod["spec"].get("nodeSelector", {}).items()):
        return "node selector"
    nodes = state.nodes
    there = [one for one in others if one.node == node["metadata"]["name"]]
    over = overload(node, [requests(pod), *(one.takes() for one in there)])
    if over:
        return f"overload {over}"
    if any(ports(pod) & ports(one.pod) for one in there):
        return "host port"
    users = [storage_rules.User(one.pod, one.node) for one in others]
    return (
        _repelled(pod, node, nodes, others)
        or _lonely(pod, node, nodes, others)
        or _uneven(pod, node, nodes, others)
        or storage_rules.why_not(pod, node, state, users, bound=bound)
    )


def _lonely(pod: Document, node: Document, nodes: Mapping[str, Document], others: Sequence[Placed]) -> str:
    """Each term needs, in the node's domain, a pod that all terms select. The first of a group that selects
    itself may go anywhere.

    Source: kube-scheduler v1.36.2, plugins/interpodaffinity/filtering.go, satisfyPodAffinity.
    """
    terms = required(pod, "podAffinity")
    if not terms:
        return ""
    domains: set[tuple[str, str]] = set()
    for one in others:
        there = nodes.get(one.node)
        if there is not None and all(selected(term["labelSelector"], one.pod) for term in terms):
            keys = (term["topologyKey"] for term in terms)
            domains.update((key, labels(there)[key]) for key in keys if key in labels(there))
    if not domains and all(selected(term["labelSelector"], pod) for term in terms):
        return ""
    missing = [key for key in (term["topologyKey"] for term in terms) if (key, labels(node).get(key)) not in domains]
    return f"required affinity, nobody in this {missing[0]}" if missing else ""


def _repelled(pod: Document, node: Document, nodes: Mapping[str, Document], others: Sequence[Placed]) -> str:
    own = required(pod, "podAntiAffinity")
    for one in others:
        there = nodes.get(one.node)
        if there is None:
            continue
        for owner, other in ((pod, one.pod), (one.pod, pod)):
            for term in own if owner is pod else required(owner, "podAntiAffinity"):
                key = term["topologyKey"]
                same = labels(node).get(key) is not None and labels(node).get(key) == labels(there).get(key)
                if same and selected(term["labelSelector"], other):
                    return f"anti-affinity with {one.pod['metadata']['name']}"
    return ""


def _uneven(pod: Document, node: Document, nodes: Mapping[str, Document], others: Sequence[Placed]) -> str:
    for constraint in pod["spec"].get("topologySpreadConstraints", ()):
        key = constraint["topologyKey"]
        counts: Counter[str] = Counter()
        for one in nodes.values():
            domain = labels(one).get(key)
            if domain is not None:
                counts[domain] += 0
        for one in others:
            there = nodes.get(one.node)
            going = one.gone or "deletionTimestamp" in one.pod["metadata"]
            if there is not None and not going and selected(constraint["labelSelector"], one.pod):
                counts[labels(there)[key]] += 1
        if counts[labels(node)[key]] + 1 - min(counts.values()) > constraint["maxSkew"]:
            return f"spread {dict(counts)}"
    return ""
