"""A document that was read here and comes back: what readers joined to it is nobody's wish. Pure.

`podyard get -o yaml` shows what others say of a pod or node: its place, its status, conditions and the taints
that go with them. Where such a document is applied, these are left out again, or every one that was read and
not changed would count as a change.
"""

from collections.abc import Callable

from podyard.objects.documents import Document, mapping, mappings
from podyard.objects.pod import ENDED
from podyard.proto import subjects

_TOLD_TAINTS = "node.kubernetes.io/"
"""What taints begin with that tell a node's conditions. Source: kubernetes v1.36.2,
staging/src/k8s.io/api/core/v1/well_known_taints.go."""


def without_joined(resource: str, document: Document, old: Document, node_of: Callable[[str], str]) -> Document:
    """The document without what was joined to it; the same if it was not read here (its uid says so).

    :param old: the version that is stored
    :param node_of: the node on which the pod with this uid takes room, empty if there is none
    """
    uid = mapping(document, "metadata").get("uid")
    if not uid or uid != mapping(old, "metadata").get("uid"):
        return document
    if resource == subjects.PODS:
        return _pod(document, old, node_of(uid))
    return _node(document, old) if resource == subjects.NODES else document


def _pod(document: Document, old: Document, node: str) -> Document:
    spec = dict(mapping(document, "spec"))
    # of a pod that has ended the place is shown, although it takes no room any more
    ended = not node and mapping(document, "status").get("phase") in ENDED
    if (ended or spec.get("nodeName") == node) and "nodeName" not in mapping(old, "spec"):
        spec.pop("nodeName", None)
    return {**{key: value for key, value in document.items() if key != "status"}, "spec": spec}


def _node(document: Document, old: Document) -> Document:
    spec, status = dict(mapping(document, "spec")), dict(mapping(document, "status"))
    there = mappings(mapping(old, "spec"), "taints")
    told = [taint for taint in mappings(spec, "taints") if _is_told(taint) and taint not in there]
    if told:
        spec["taints"] = [taint for taint in mappings(spec, "taints") if taint not in told]
        if not spec["taints"] and "taints" not in mapping(old, "spec"):
            del spec["taints"]
    status.pop("conditions", None)
    left = {**document, "spec": spec, "status": status}
    for key in ("spec", "status"):
        if not left[key] and key not in old:
            del left[key]
    return left


def _is_told(taint: Document) -> bool:
    return str(taint.get("key", "")).startswith(_TOLD_TAINTS)
