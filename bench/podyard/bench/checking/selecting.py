"""What pods say of other objects: selectors, node affinity, tolerations, claims. Plainly, on documents."""

from collections.abc import Mapping
from typing import Final

from podyard.bench.checking.history import Document, State
from podyard.objects.documents import content, mapping, mappings

CORDON: Final[Document] = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint that an unschedulable node has, whether it says it or not."""
KEPT_AWAY: Final = ("NoSchedule", "NoExecute")
NAME_LABEL: Final = "kubernetes.io/metadata.name"
EVERYWHERE: Final = "*"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class UnreadError(Exception):
    """These rules do not read a field that is used; the text names it."""


def labels(document: Document) -> Mapping[str, str]:
    """An object's labels."""
    return mapping(document, "metadata", "labels")


def namespace(document: Document) -> str:
    """An object's namespace."""
    found: str = document["metadata"].get("namespace") or ""
    return found


def claims(pod: Document) -> list[str]:
    """Names of the claims that a pod uses."""
    return [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in mappings(pod["spec"], "volumes")
        if "persistentVolumeClaim" in volume
    ]


def selects(selector: Document | None, found: Mapping[str, str]) -> bool:
    """Whether a label selector takes these labels; one that is not there takes none.

    Source: apimachinery v1.36.2, pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector.
    """
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    return all(found.get(key) == value for key, value in wanted.items()) and all(
        _expressed(one, found) for one in selector.get("matchExpressions") or ()
    )


def _expressed(expression: Document, found: Mapping[str, str]) -> bool:
    value, values, operator = found.get(expression["key"]), expression.get("values") or (), expression["operator"]
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            raise UnreadError(f"operator {operator}")


def selects_node(pod: Document, node: Document) -> bool:
    """Whether a pod's node selector and required node affinity take a node."""
    if any(labels(node).get(key) != value for key, value in mapping(pod, "spec", "nodeSelector").items()):
        return False
    wanted = node_affinity(pod)
    return not wanted or takes(wanted, node)


def takes(selector: Document, node: Document) -> bool:
    """Whether a node selector takes a node."""
    return any(_term_takes(term, node) for term in selector["nodeSelectorTerms"])


def _term_takes(term: Document, node: Document) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    name = {"metadata.name": node["metadata"]["name"]}
    return (
        bool(expressions or fields)
        and all(_expressed(one, labels(node)) for one in expressions)
        and all(_expressed(one, name) for one in fields)
    )


def node_affinity(pod: Document) -> Document:
    """The required one; empty: none."""
    return mapping(_affinity(pod, "nodeAffinity"), REQUIRED)


def required(pod: Document, kind: str) -> list[Document]:
    """Required terms of `podAffinity` or `podAntiAffinity`."""
    return mappings(_affinity(pod, kind), REQUIRED)


def _affinity(pod: Document, kind: str) -> Document:
    return mapping(pod, "spec", "affinity", kind)


def not_tolerated(pod: Document, node: Document, *more: Document) -> Document | None:
    """A taint of a node, or one of `more`, that keeps a pod away; None: none does."""
    tolerations = mappings(pod["spec"], "tolerations")
    for taint in (*mappings(mapping(node, "spec"), "taints"), *more):
        if taint["effect"] in KEPT_AWAY and not any(_tolerates(one, taint) for one in tolerations):
            return taint
    return None


def _tolerates(toleration: Document, taint: Document) -> bool:
    """Source: kubernetes v1.36.2, staging/src/k8s.io/api/core/v1/toleration.go, ToleratesTaint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator not in ("Equal", "Exists"):
        raise UnreadError(f"operator {operator} of a toleration")
    return operator == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def namespaces(term: Document, owner: Document, state: State) -> frozenset[str]:
    """Namespaces in which a term of pod affinity looks; `EVERYWHERE` stands for all.

    :param owner: the pod that has the term
    """
    named, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if selector is None:
        return frozenset(named or (namespace(owner),))
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return frozenset((EVERYWHERE,))
    there = state.namespaces
    kind = content(selector)
    if kind not in there.chosen:
        there.chosen[kind] = frozenset(
            name for name, one in there.documents.items() if selects(selector, {NAME_LABEL: name, **labels(one)})
        )
    return there.chosen[kind] | frozenset(named) if named else there.chosen[kind]


def reaches(term: Document, places: frozenset[str], pod: Document) -> bool:
    """Whether a term that looks in `places` selects a pod."""
    return (EVERYWHERE in places or namespace(pod) in places) and selects(term.get("labelSelector"), labels(pod))
