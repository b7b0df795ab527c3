"""nodeFit as the reference has it: node by node, pod by pod. What columns say is held against it.

Source: pkg/descheduler/node/node.go, NodeFit (descheduler v0.36.0).
"""

from collections.abc import Iterable

from podyard.descheduler.core import anti_affinity, node_fit, tolerations
from podyard.descheduler.core.columns import is_hard
from podyard.descheduler.core.state import CycleState
from podyard.objects import quantity, selectors
from podyard.objects.errors import SelectorError
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.quantity import Quantity


def elsewhere(pod: Pod, nodes: Iterable[Node], state: CycleState) -> bool:
    """Whether a node other than its own would take it."""
    return any(fits(pod, node, state) for node in nodes if node.metadata.name != pod.spec.node_name)


def somewhere(pod: Pod, nodes: Iterable[Node], state: CycleState) -> bool:
    """Whether any would."""
    return any(fits(pod, node, state) for node in nodes)


def fits(pod: Pod, node: Node, state: CycleState) -> bool:
    """Whether this one would."""
    return (
        not node.spec.unschedulable
        and node_fit.holds(selectors.required_node_affinity(pod), node)
        and tolerations.all_tolerated(pod.spec.tolerations, node.spec.taints, is_hard)
        and (pod.spec.node_name == node.metadata.name or _has_room(pod, node, state))
        and not _repelled(pod, node, state)
    )


def allowed_but_for_faults(pod: Pod, node: Node) -> bool:
    """Whether RemoveDuplicates counts the node: a selector that makes no sense keeps no node away, nor does a
    cordon. Source: pkg/framework/plugins/removeduplicates, getTargetNodes."""
    if not tolerations.all_tolerated(pod.spec.tolerations, node.spec.taints, is_hard):
        return False
    try:
        return selectors.required_node_affinity(pod).matches(node.metadata.labels, node.metadata.name)
    except SelectorError:
        return True


def _has_room(pod: Pod, node: Node, state: CycleState) -> bool:
    there = state.pods_on(node.metadata.name)
    allocatable = node.status.allocatable
    if quantity.value(allocatable.get("pods", "0")) <= len(there):
        return False
    for name, wanted in state.requests(pod).items():
        taken = Quantity(sum(state.requests(other).get(name, 0) for other in there))
        text = allocatable.get(name, "0")
        whole = 1000 * (quantity.value(text) - taken.value())
        left = quantity.milli(text) - taken.milli() if name == "cpu" else whole
        if Quantity(wanted).milli() > left:
            return False
    return True


def _repelled(pod: Pod, node: Node, state: CycleState) -> bool:
    try:
        terms = tuple(anti_affinity.repelling(pod))
    except SelectorError:
        return True
    return any(
        term.topology_key in node.metadata.labels
        and any(
            other.metadata.name != pod.metadata.name and term.takes(other)
            for other in state.pods_on(node.metadata.name)
        )
        for term in terms
    )
