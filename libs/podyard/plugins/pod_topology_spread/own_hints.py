"""What may help a pod that hard spread constraints kept off nodes, which the reference's hints do not know
of.

A constraint that honors the pod's node selector and affinity counts only nodes that match them. A node that
matches no more may have been the emptiest domain: without it the others may take the pod. The reference
(kube-scheduler v1.36.2, podtopologyspread/plugin.go, isSchedulableAfterNodeChange) looks at topology labels
and taints alone.
"""

from collections.abc import Hashable, Iterable
from typing import Any, Final

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, OwnRegistration
from podyard.framework.hint_sharing import OwnRead
from podyard.objects import selectors
from podyard.objects.core import Node, Pod
from podyard.plugins import hinted
from podyard.plugins.hint_indexes import KeyIndex
from podyard.plugins.pod_topology_spread.reading import ReadOfPod
from podyard.plugins.pod_topology_spread.skew import Skews
from podyard.proto.actions import ActionType

NODES_IT_CHOOSES: Final = "too few on nodes that it chooses"
"""A constraint counts only nodes that match the pod's node selector and affinity, and one of them has too few
pods.
"""


def obstacles(skews: Skews) -> tuple[str, ...]:
    """Of a node that would have too many pods."""
    return (NODES_IT_CHOOSES,) if any(one.planned.chosen for one in skews) else ()


def after_node_change(pod: Pod, named: tuple[str, ...], old: object | None, new: object | None) -> HintResult:
    """Queue if the node matched the pod's node selector and affinity, and does no more.

    :raises SelectorError: if the pod's affinity cannot be read; counts as Queue
    """
    before, node = hinted.present(Node, old, new)
    name, required = node.metadata.name, selectors.required_node_affinity(pod)
    if before is None or not required.matches(before.metadata.labels, name):
        return events.skip(f"{name} did not count for the pod's spread before")
    if required.matches(node.metadata.labels, name):
        return events.skip(f"{name} counts for the pod's spread, as before")
    return events.queue(f"{name} counts no more for the pod's spread: the pod may not be on it any more")


def new_index() -> KeyIndex[Any]:
    """An empty index: by labels that parked pods ask for, and that a node does not have any more."""
    return KeyIndex(_keys_of, _keys_of_event)


def _keys_of(signature: Any) -> Iterable[Hashable] | None:
    read = signature.read if isinstance(signature, OwnRead) else None
    if not isinstance(read, ReadOfPod):
        return None
    terms = () if read.needs.affinity is None else selectors.compile_nodes(read.needs.affinity).terms
    if any(term.fault is not None for term in terms):
        return None  # its hint may raise, which counts as Queue
    return [*read.needs.selector, *((requirement.key,) for term in terms for requirement in term.labels)]


def _keys_of_event(old: object | None, new: object | None) -> Iterable[Hashable] | None:
    if not isinstance(old, Node | None) or not isinstance(new, Node):
        return None
    if old is None:
        return ()
    was, now = old.metadata.labels, new.metadata.labels
    changed = [key for key in {*was, *now} if was.get(key) != now.get(key)]
    return [*((key,) for key in changed), *((key, was[key]) for key in changed if key in was)]


def registrations() -> tuple[OwnRegistration, ...]:
    """Nodes with other labels."""
    return (OwnRegistration(ClusterEvent(events.NODE, ActionType.UPDATE_NODE_LABEL), after_node_change, new_index),)
