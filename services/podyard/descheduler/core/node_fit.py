"""Whether another node would take a pod, as the descheduler estimates it: coarser than the scheduler
(docs/rules.md, node-fit-is-coarse).

It looks at the running pod's spec, at node selector and affinity, taints, requests, cordons, and the pod's
own anti-affinity against pods on that very node; not at topology spread, pod affinity, volumes, ports.
Source: pkg/descheduler/node/node.go, NodeFit, PodFitsAnyNode and PodFitsAnyOtherNode (v0.36.0).
"""

from collections.abc import Iterable
from itertools import chain
from typing import Final, NamedTuple

from podyard.descheduler.core import tolerations
from podyard.descheduler.core.state import CycleState
from podyard.objects import quantity, selectors, taints
from podyard.objects.affinity import Affinity, PodAffinityTerm, Taint
from podyard.objects.errors import SelectorError
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.selectors import Selector

CPU: Final = "cpu"
PODS: Final = "pods"


class NodeFit:
    """Whether one of these nodes would take a pod.

    Each search begins at the node that took the pod before: in a cluster that is nearly full, one that has
    room left is found at once.
    """

    def __init__(self, nodes: Iterable[Node], state: CycleState) -> None:
        self._nodes = list(nodes)
        self._state = state
        self._begin = 0

    def elsewhere(self, pod: Pod) -> bool:
        """Whether one other than its own would."""
        return self._found(pod, pod.spec.node_name)

    def somewhere(self, pod: Pod) -> bool:
        """Whether any would; its own, too, where it need not find room."""
        return self._found(pod, "")

    def _found(self, pod: Pod, but: str) -> bool:
        wanted = _Wanted(pod, self._state)
        for at in chain(range(self._begin, len(self._nodes)), range(self._begin)):
            node = self._nodes[at]
            if node.metadata.name != but and not wanted.misfit(node):
                self._begin = at
                return True
        return False


def is_hard(taint: Taint) -> bool:
    """Whether the taint keeps pods off its node."""
    return taint.effect in taints.HARD_EFFECTS


class _Repelling(NamedTuple):
    """One term of the pod's anti-affinity. Namespace selectors and matchLabelKeys are not looked at."""

    topology_key: str
    namespaces: tuple[str, ...]
    selector: Selector


class _Wanted:
    """What one pod needs of a node, made ready once to be asked of many."""

    def __init__(self, pod: Pod, state: CycleState) -> None:
        self._pod = pod
        self._state = state
        self._affinity = selectors.required_node_affinity(pod)
        self._requests = state.requests(pod)
        self._terms, self._nowhere = _terms(pod)

    def misfit(self, node: Node) -> str:
        """Why the node would not take the pod; empty if it would. What is quick to find out comes first."""
        if node.spec.unschedulable:
            return "node is not schedulable"
        if not self._selected(node):
            return "pod node selector does not match the node label"
        if node.spec.taints and not tolerations.all_tolerated(self._pod.spec.tolerations, node.spec.taints, is_hard):
            return "pod does not tolerate taints on the node"
        if self._pod.spec.node_name != node.metadata.name and (short := self._insufficient(node)):
            return f"insufficient {short}"
        if self._nowhere:
            return self._nowhere
        if any(self._repelled(term, node) for term in self._terms):
            return "pod matches inter-pod anti-affinity rule of other pod on node"
        return ""

    def _selected(self, node: Node) -> bool:
        try:
            return self._affinity.matches(node.metadata.labels, node.metadata.name)
        except SelectorError:
            return False

    def _insufficient(self, node: Node) -> str:
        """A resource of which the node has too little left; empty if it has enough."""
        taken = self._state.taken(node.metadata.name)
        if _allocatable(node, PODS) <= taken.pods:
            return PODS
        for name, wanted in self._requests.items():
            if quantity.Quantity(wanted).milli() > _left_milli(node, name, taken.amounts.get(name, 0)):
                return name
        return ""

    def _repelled(self, term: _Repelling, node: Node) -> bool:
        """A pod of the same name never conflicts."""
        return term.topology_key in node.metadata.labels and any(
            other.metadata.name != self._pod.metadata.name
            and other.metadata.namespace in term.namespaces
            and term.selector.matches(other.metadata.labels)
            for other in self._state.pods_on(node.metadata.name)
        )


def _left_milli(node: Node, name: str, taken: int) -> int:
    """Thousandths that are left of a resource. Of all but cpu, what is there and what is taken are whole
    units, rounded up."""
    used = quantity.Quantity(taken)
    if name == CPU:
        return _allocatable(node, name) - used.milli()
    return 1000 * (_allocatable(node, name) - used.value())


def _allocatable(node: Node, name: str) -> int:
    """Milli-CPU, or whole units."""
    text = node.status.allocatable.get(name, "0")
    return quantity.milli(text) if name == CPU else quantity.value(text)


def anti_affinity_terms(affinity: Affinity | None) -> tuple[PodAffinityTerm, ...]:
    """The required terms; preferences play no part."""
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution


def term_namespaces(pod: Pod, term: PodAffinityTerm) -> tuple[str, ...]:
    """The namespaces that a term is about: the pod's own if it names none."""
    return tuple(dict.fromkeys(term.namespaces)) or (pod.metadata.namespace,)


def _terms(pod: Pod) -> tuple[list[_Repelling], str]:
    """The terms, and why no node would do: one of them makes no sense."""
    found: list[_Repelling] = []
    for term in anti_affinity_terms(pod.spec.affinity):
        try:
            selector = selectors.compile_labels(term.label_selector)
        except SelectorError as error:
            return [], f"the pod's anti-affinity makes no sense: {error}"
        found.append(_Repelling(term.topology_key, term_namespaces(pod, term), selector))
    return found, ""
