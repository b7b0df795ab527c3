"""What is stored of a status that somebody writes: what he changed of the one that he was shown. Pure.

A status that is read is joined: of what its creator and others wrote into the object with facts of agents,
binder and queue. What stays as it was shown is nobody's wish, and is not stored; what others keep cannot be
changed here.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.kube_api.core.errors import ApiError
from podyard.objects.documents import Document, copy, mapping, mappings
from podyard.telling.pod_conditions import POD_SCHEDULED

CONDITIONS: Final = "conditions"
NOMINATED: Final = "nominatedNodeName"
FREE: Final = frozenset(
    (CONDITIONS, NOMINATED, "resourceClaimStatuses", "extendedResourceClaimStatus", "observedGeneration")
)
"""Fields of a pod's status that not its kubelet writes, but schedulers and controllers."""
KUBELETS: Final = frozenset(
    ("Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers", "PodResizePending", "PodResizeInProgress")
)
"""Conditions of a pod that its kubelet writes. Source: kubernetes v1.36.2, pkg/kubelet/types/pod_status.go,
PodConditionByKubelet."""


class Kept(NamedTuple):
    """What others keep of a status, each with who does, as a sentence's end."""

    fields: Mapping[str, str] = {}
    rest: str = ""
    """Who keeps all other fields but `FREE`; empty: nobody."""
    conditions: Mapping[str, str] = {}
    """By type."""

    def keeper(self, field: str) -> str:
        """Who keeps a field; empty: nobody."""
        return self.fields.get(field) or ("" if field in FREE else self.rest)


NOTHING: Final = Kept()


def kept_of(viewed: object, node_of: Callable[[str], NodeView | None]) -> Kept:
    """What others keep of an object's status.

    :param viewed: its typed view
    :param node_of: the node of that name, if it is there
    """
    if isinstance(viewed, PodView):
        return _of_pod(viewed, node_of(viewed.node_name) if viewed.node_name else None)
    if isinstance(viewed, NodeView) and viewed.status is not None:
        agent = f"the agent of node {viewed.name} keeps it"
        return Kept(conditions={one.type: agent for one in viewed.status.conditions})
    return NOTHING


def _of_pod(pod: PodView, node: NodeView | None) -> Kept:
    fields: dict[str, str] = {}
    conditions: dict[str, str] = {}
    if pod.nomination is not None:
        fields[NOMINATED] = "the queue of Podyard keeps it"
    if pod.node_name:
        fields[NOMINATED] = "may not be set on pods that are already bound to a node"
        conditions[POD_SCHEDULED] = f"the pod is bound to node {pod.node_name}"
    if node is None or node.status is None:
        return Kept(fields, "", conditions)
    agent = f"the agent of node {node.name} keeps it"
    said = () if pod.status is None else pod.status.conditions
    theirs = {*KUBELETS, *(one.type for one in said)}
    return Kept(fields, agent, {**dict.fromkeys(theirs, agent), **conditions})


def to_store(shown: Document, wanted: Document, stored: Document, kept: Kept, about: str) -> Document:
    """The object that was wanted, with the status that is to be stored.

    :param shown: the object as it was shown to whoever wants another
    :param stored: the same as it is stored
    :param about: what it is called in a refusal: `pods "a"`
    :raises ApiError: 403, somebody else keeps what is to be changed
    """
    before, after, status = (copy(mapping(one, "status")) for one in (shown, wanted, stored))
    for field in before.keys() | after.keys():
        if field == CONDITIONS or before.get(field) == after.get(field):
            continue
        if keeper := kept.keeper(field):
            raise _forbidden(about, f"status.{field}", keeper)
        status.pop(field, None)
        if field in after:
            status[field] = after[field]
    conditions = _conditions(before, after, status, kept, about)
    if conditions or CONDITIONS in status:
        status[CONDITIONS] = conditions
    return {**wanted, "status": status}


def _conditions(before: Document, after: Document, status: Document, kept: Kept, about: str) -> list[Any]:
    was, wanted = _by_type(before), _by_type(after)
    found = _by_type(status)
    for kind in dict.fromkeys((*was, *wanted)):
        if was.get(kind) == wanted.get(kind):
            continue
        if keeper := kept.conditions.get(kind, ""):
            raise _forbidden(about, f"status.conditions[{kind}]", keeper)
        if kind in wanted:
            found[kind] = wanted[kind]
        else:
            found.pop(kind, None)
    return list(found.values())


def _by_type(status: Document) -> dict[str, Document]:
    return {str(one.get("type")): one for one in mappings(status, CONDITIONS)}


def _forbidden(about: str, field: str, keeper: str) -> ApiError:
    return ApiError(403, "Forbidden", f"{about} is forbidden: {field}: {keeper}")
