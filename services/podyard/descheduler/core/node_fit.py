"""Whether another node would take a pod, as the descheduler estimates it: coarser than the scheduler
(docs/rules.md, node-fit-is-coarse).

It looks at the running pod's spec, at node selector and affinity, taints, requests, cordons, and the pod's
own anti-affinity against pods on that very node; not at topology spread, pod affinity, volumes, ports.
Source: pkg/descheduler/node/node.go, NodeFit, PodFitsAnyNode and PodFitsAnyOtherNode (v0.36.0).
"""

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from podyard.descheduler.core import tolerations
from podyard.descheduler.core.state import CycleState
from podyard.objects import quantity, selectors, taints
from podyard.objects.affinity import Taint
from podyard.objects.errors import SelectorError
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.selectors import NodeTerms, RequiredNodeAffinity, Selector

CPU: Final = "cpu"
PODS: Final = "pods"


class _Refused(NamedTuple):
    """No node took a pod of this kind, as far as they were asked."""

    open: frozenset[int]
    """Nodes that were not asked."""
    freed: int
    """How much of `CycleState.freed` was there."""


class NodeFit:
    """Whether one of these nodes would take a pod.

    Each search begins at the node that took the pod before: in a cluster that is nearly full, one that has
    room left is found at once. Where none has, a pod that asks for the same is not searched for again; only
    nodes that have become freer since are asked.
    """

    def __init__(self, nodes: Iterable[Node], state: CycleState) -> None:
        self._nodes = list(nodes)
        self._rows = {node.metadata.name: row for row, node in enumerate(self._nodes)}
        self._state = state
        self._begin = 0
        self._refused: dict[Hashable, _Refused] = {}

    def elsewhere(self, pod: Pod) -> bool:
        """Whether one other than its own would."""
        return self._others(_Wanted(pod, self._state), self._rows.get(pod.spec.node_name))

    def somewhere(self, pod: Pod) -> bool:
        """Whether any would; its own, too, where it need not find room."""
        wanted, own = _Wanted(pod, self._state), self._rows.get(pod.spec.node_name)
        return (own is not None and wanted.fits(self._nodes[own])) or self._others(wanted, own)

    def _others(self, wanted: "_Wanted", own: int | None) -> bool:
        repelled = False
        for row in self._open(self._refused.get(wanted.kind)):
            if row == own or wanted.misfit(self._nodes[row]):
                continue
            if not wanted.repelled(self._nodes[row]):
                self._begin = row
                return True
            repelled = True
        if not repelled:
            unasked = frozenset[int]() if own is None else frozenset((own,))
            self._refused[wanted.kind] = _Refused(unasked, len(self._state.freed))
        return False

    def _open(self, refused: _Refused | None) -> Iterable[int]:
        """The nodes that have to be asked, the likely ones first."""
        if refused is None:
            return chain(range(self._begin, len(self._nodes)), range(self._begin))
        freed = (self._rows.get(name) for name in self._state.freed[refused.freed :])
        return refused.open.union(row for row in freed if row is not None)


def is_hard(taint: Taint) -> bool:
    """Whether the taint keeps pods off its node."""
    return taint.effect in taints.HARD_EFFECTS


def holds(terms: NodeTerms | RequiredNodeAffinity, node: Node) -> bool:
    """Whether the node fulfils them; what makes no sense is fulfilled by no node."""
    try:
        return terms.matches(node.metadata.labels, node.metadata.name)
    except SelectorError:
        return False


class Repelling(NamedTuple):
    """One term of a pod's anti-affinity: the pods that it keeps away. Terms of different pods are often the
    same."""

    topology_key: str
    namespaces: tuple[str, ...]
    selector: Selector

    def takes(self, pod: Pod) -> bool:
        """Whether the pod is one of those, wherever it is."""
        return pod.metadata.namespace in self.namespaces and self.selector.matches(pod.metadata.labels)


def repelling(pod: Pod) -> Iterator[Repelling]:
    """The required terms of its anti-affinity, in order, each about the pod's own namespace if it names none.
    Preferences, namespace selectors and matchLabelKeys are not looked at.

    :raises SelectorError: at a term that makes no sense, after those before it
    """
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return
    for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
        namespaces = tuple(dict.fromkeys(term.namespaces)) or (pod.metadata.namespace,)
        yield Repelling(term.topology_key, namespaces, selectors.compile_labels(term.label_selector))


class _Wanted:
    """What one pod needs of a node, made ready once to be asked of many."""

    def __init__(self, pod: Pod, state: CycleState) -> None:
        self._pod = pod
        self._state = state
        self._affinity = selectors.required_node_affinity(pod)
        self._requests = state.requests(pod)
        self._repelling = _all_repelling(pod)
        self.kind: Hashable = (self._affinity, pod.spec.tolerations, tuple(sorted(self._requests.items())))
        """Pods of the same kind have the same misfits, but on their own nodes."""

    def fits(self, node: Node) -> bool:
        """Whether the node would take the pod."""
        return not self.misfit(node) and not self.repelled(node)

    def misfit(self, node: Node) -> str:
        """Why the node would not take the pod, whoever is there; empty if it would. What is quick to find out
        comes first."""
        if node.spec.unschedulable:
            return "node is not schedulable"
        if not holds(self._affinity, node):
            return "pod node selector does not match the node label"
        if node.spec.taints and not tolerations.all_tolerated(self._pod.spec.tolerations, node.spec.taints, is_hard):
            return "pod does not tolerate taints on the node"
        if self._pod.spec.node_name != node.metadata.name and (short := self._insufficient(node)):
            return f"insufficient {short}"
        return ""

    def repelled(self, node: Node) -> bool:
        """Whether its anti-affinity keeps the pod off the node; off every node if it makes no sense."""
        return self._repelling is None or any(self._repelled(term, node) for term in self._repelling)

    def _insufficient(self, node: Node) -> str:
        """A resource of which the node has too little left; empty if it has enough."""
        taken = self._state.taken(node.metadata.name)
        if _allocatable(node, PODS) <= taken.pods:
            return PODS
        for name, wanted in self._requests.items():
            if quantity.Quantity(wanted).milli() > _left_milli(node, name, taken.amounts.get(name, 0)):
                return name
        return ""

    def _repelled(self, term: Repelling, node: Node) -> bool:
        """A pod of the same name never conflicts."""
        return term.topology_key in node.metadata.labels and any(
            other.metadata.name != self._pod.metadata.name and term.takes(other)
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


def _all_repelling(pod: Pod) -> tuple[Repelling, ...] | None:
    """None if one of the terms makes no sense."""
    try:
        return tuple(repelling(pod))
    except SelectorError:
        return None
