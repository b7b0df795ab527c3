"""May this pod be on that node? The rules once more, plainly, on documents: nothing of this is shared with
the framework."""

from collections import Counter
from typing import Final

from podyard.bench.checking import storage_rules
from podyard.bench.checking.history import Chosen, Document, Nodes, State, UnknownError
from podyard.bench.checking.selecting import (
    CORDON,
    UnreadError,
    labels,
    namespace,
    namespaces,
    node_affinity,
    not_tolerated,
    reaches,
    required,
    selects,
    selects_node,
)
from podyard.bench.checking.standing import Placed, Standing, Tally, requests
from podyard.objects import quantity
from podyard.objects.documents import content, mapping, mappings

UNREAD: Final = ("initContainers", "overhead", "resources", "resourceClaims")
"""Fields of a pod that say what else it takes."""
UNREAD_OF_SPREAD: Final = ("matchLabelKeys",)
UNREAD_OF_TERMS: Final = ("matchLabelKeys", "mismatchLabelKeys")


def overload(node: Document, taken: Counter[str]) -> dict[str, tuple[int, int]]:
    """Of what a node would give more than it has: taken, there."""
    room = mapping(node, "status", "allocatable")
    has = {name: quantity.milli(text) if name == "cpu" else quantity.value(text) for name, text in room.items()}
    return {name: (amount, has.get(name, 0)) for name, amount in taken.items() if amount > has.get(name, 0)}


def ports(pod: Document) -> set[tuple[int, str]]:
    """Host ports that a pod takes, with their protocols."""
    return {
        (port["hostPort"], port.get("protocol") or "TCP")
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def check_read(pod: Document) -> None:
    """Whether these rules read all that a pod says of where it may be.

    :raises UnreadError: they do not
    """
    spec = pod["spec"]
    found = [field for field in UNREAD if spec.get(field)]
    for constraint in mappings(spec, "topologySpreadConstraints"):
        found += [f"topologySpreadConstraints: {field}" for field in UNREAD_OF_SPREAD if constraint.get(field)]
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in required(pod, kind):
            found += [f"{kind}: {field}" for field in UNREAD_OF_TERMS if term.get(field)]
    if any(port.get("hostIP") for container in spec["containers"] for port in container.get("ports") or ()):
        found.append("hostIP")
    if found:
        raise UnreadError(found[0])


def why_not(pod: Document, node: Document, state: State, others: Standing, *, bound: bool = False) -> str:
    """Why `pod` may not be placed on `node` beside all `others`; empty if it may.

    :param bound: its claims must be bound by now; else it is enough that they can be
    :raises UnknownError: it depends on what nobody can read any more
    :raises UnreadError: it depends on a field that these rules do not read
    """
    check_read(pod)
    cordoned = [CORDON] if mapping(node, "spec").get("unschedulable") else []
    taint = not_tolerated(pod, node, *cordoned)
    if taint is not None:
        return "cordoned" if taint is CORDON else f"taint {taint['key']}"
    if not selects_node(pod, node):
        return "node selector"
    name: str = node["metadata"]["name"]
    over = overload(node, requests(pod) + others.taken(name))
    if over:
        return f"overload {over}"
    taken = ports(pod)
    if taken and any(taken & ports(one.pod) for one in others.on(name)):
        return "host port"
    return (
        _repelled(pod, node, state, others)
        or _lonely(pod, node, state, others)
        or _uneven(pod, node, state, others)
        or storage_rules.why_not(pod, node, state, others, bound=bound)
    )


def _selected_by(terms: list[Document], owner: Document, state: State, others: Standing) -> Tally:
    """Pods that all of these terms select, as far as their labels are known."""
    places = [namespaces(term, owner, state) for term in terms]

    def counts(one: Placed) -> bool:
        selected = (reaches(term, found, one.pod) for term, found in zip(terms, places, strict=True))
        return not one.unknown and all(selected)

    return others.tally(
        ("selected", tuple(places), content({"of": [term.get("labelSelector") for term in terms]})), counts
    )


def _lonely(pod: Document, node: Document, state: State, others: Standing) -> str:
    """Each term needs, in the node's domain, a pod that all terms select. The first of a group that selects
    itself may go anywhere.

    Source: kube-scheduler v1.36.2, plugins/interpodaffinity/filtering.go, satisfyPodAffinity.
    """
    terms = required(pod, "podAffinity")
    if not terms:
        return ""
    tally = _selected_by(terms, pod, state, others)
    keys = [term["topologyKey"] for term in terms]
    domains = {key: tally.by_domain(key, state.nodes) for key in keys}
    if not any(number for counts in domains.values() for number in counts.values()) and all(
        reaches(term, namespaces(term, pod, state), pod) for term in terms
    ):
        return ""
    missing = [key for key in keys if not domains[key].get(labels(node).get(key, ""))]
    if missing and others.unknown:
        raise UnknownError("of some pods it is not known which labels they had")
    return f"required affinity, nobody in this {missing[0]}" if missing else ""


def _repelled(pod: Document, node: Document, state: State, others: Standing) -> str:
    own = required(pod, "podAntiAffinity")
    if not own and not others.repelling:
        return ""
    for term in own:
        value = labels(node).get(term["topologyKey"])
        counts = _selected_by([term], pod, state, others).by_domain(term["topologyKey"], state.nodes)
        if value is not None and counts[value]:
            places = namespaces(term, pod, state)
            return f"anti-affinity with {_somebody(others, term, value, state.nodes, places)}"
    for kind, (term, owners) in others.repelling.items():
        owner = next(iter(owners.values()))
        key = term["topologyKey"]
        value = labels(node).get(key)
        if value is None or not reaches(term, namespaces(term, owner.pod, state), pod):
            continue
        tally = others.tally(("repelling", kind), lambda one, kind=kind: others.repels(one.uid, kind))
        if tally.by_domain(key, state.nodes)[value]:
            return f"anti-affinity of {owner.pod['metadata']['name']} or its like"
    return ""


def _somebody(others: Standing, term: Document, value: str, nodes: Nodes, places: frozenset[str]) -> str:
    values = nodes.values(term["topologyKey"])
    names = (
        one.pod["metadata"]["name"]
        for one in others
        if values.get(one.node) == value and not one.unknown and reaches(term, places, one.pod)
    )
    return next(names, "")


def _uneven(pod: Document, node: Document, state: State, others: Standing) -> str:
    """Source: kube-scheduler v1.36.2, plugins/podtopologyspread/filtering.go, calPreFilterState, Filter."""
    hard = [
        one
        for one in mappings(pod["spec"], "topologySpreadConstraints")
        if (one.get("whenUnsatisfiable") or "DoNotSchedule") == "DoNotSchedule"
    ]
    if hard and others.unknown:
        raise UnknownError("pods that are being deleted do not count, and of some it is not known")
    for constraint in hard:
        key, selector = constraint["topologyKey"], constraint.get("labelSelector")
        counts = _spread(pod, [one["topologyKey"] for one in hard], constraint, state, others)
        value = labels(node).get(key)
        if value is None:
            return f"spread, no {key}"
        least = min(counts.values(), default=0)
        if len(counts) < (constraint.get("minDomains") or 1):
            least = 0
        itself = 1 if selects(selector, labels(pod)) else 0
        if counts.get(value, 0) + itself - least > constraint["maxSkew"]:
            return f"spread {counts}"
    return ""


def _spread(pod: Document, keys: list[str], constraint: Document, state: State, others: Standing) -> dict[str, int]:
    """How many pods of the constraint are in each domain."""
    selector, place = constraint.get("labelSelector"), namespace(pod)

    def counts(one: Placed) -> bool:
        going = one.gone or "deletionTimestamp" in one.pod["metadata"]
        return not going and namespace(one.pod) == place and selects(selector, labels(one.pod))

    tally = others.tally(("spread", place, content({"of": selector})), counts)
    kind, chosen = _counted(pod, keys, constraint, state.nodes)
    found = tally.by(kind, chosen.values, state.nodes)
    return {domain: found[domain] for domain in sorted(chosen.domains)}


def _counted(pod: Document, keys: list[str], constraint: Document, nodes: Nodes) -> tuple[bytes, Chosen]:
    """Nodes that count, and what they are chosen by: they have all the labels, and the pod's node selector,
    node affinity and, if it is to be so, tolerations take them.

    Source: kube-scheduler v1.36.2, plugins/podtopologyspread/common.go, matchNodeInclusionPolicies.
    """
    by_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
    by_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
    kind = content(
        {
            "keys": keys,
            "key": constraint["topologyKey"],
            "selector": [mapping(pod, "spec", "nodeSelector"), node_affinity(pod)] if by_affinity else None,
            "tolerations": mappings(pod["spec"], "tolerations") if by_taints else None,
        }
    )
    if kind not in nodes.chosen:
        values = {
            name: labels(one)[constraint["topologyKey"]]
            for name, one in nodes.documents.items()
            if all(label in labels(one) for label in keys)
            and (not by_affinity or selects_node(pod, one))
            and (not by_taints or not_tolerated(pod, one) is None)
        }
        nodes.chosen[kind] = Chosen(values, frozenset(values.values()))
    return kind, nodes.chosen[kind]
