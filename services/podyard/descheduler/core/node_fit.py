"""Whether another node would take a pod, as the descheduler estimates it: coarser than the scheduler
(docs/rules.md, node-fit-is-coarse).

It looks at the running pod's spec, at node selector and affinity, taints, requests, cordons, and the pod's
own anti-affinity against pods on that very node; not at topology spread, pod affinity, volumes, ports.
Source: pkg/descheduler/node/node.go, NodeFit.
"""

from podyard.descheduler.core import tolerations
from podyard.descheduler.core.state import CycleState
from podyard.objects import pod_requests, quantity, selectors, taints
from podyard.objects.affinity import PodAffinityTerm
from podyard.objects.errors import SelectorError
from podyard.objects.node import Node
from podyard.objects.pod import Pod


def fits_elsewhere(pod: Pod, nodes: list[Node], state: CycleState) -> bool:
    """Whether one of `nodes` other than its own would take the pod."""
    return any(node.metadata.name != pod.spec.node_name and not misfit(pod, node, state) for node in nodes)


def misfit(pod: Pod, node: Node, state: CycleState) -> str:
    """Why the node would not take the pod; empty if it would."""
    if not _selected(pod, node):
        return "pod node selector does not match the node label"
    if not tolerations.all_tolerated(
        pod.spec.tolerations, node.spec.taints, lambda taint: taint.effect in taints.HARD_EFFECTS
    ):
        return "pod does not tolerate taints on the node"
    if pod.spec.node_name != node.metadata.name and (short := _insufficient(pod, node, state)):
        return f"insufficient {short}"
    if node.spec.unschedulable:
        return "node is not schedulable"
    if _repelled(pod, node, state):
        return "pod matches inter-pod anti-affinity rule of other pod on node"
    return ""


def _selected(pod: Pod, node: Node) -> bool:
    try:
        return selectors.required_node_affinity(pod).matches(node.metadata.labels, node.metadata.name)
    except SelectorError:
        return False


def _insufficient(pod: Pod, node: Node, state: CycleState) -> str:
    """The first resource of which the node has too little left; empty if it has enough."""
    present = state.pods_on(node.metadata.name)
    for name, wanted in sorted(pod_requests.pod_requests(pod).items()):
        taken = sum(pod_requests.pod_requests(one).get(name, 0) for one in present)
        if wanted > _allocatable(node, name) - taken:
            return name
    return "" if _allocatable(node, "pods") > len(present) else "pods"


def _allocatable(node: Node, name: str) -> int:
    """Milli-CPU, or whole units."""
    text = node.status.allocatable.get(name, "0")
    return quantity.milli(text) if name == "cpu" else quantity.value(text)


def _repelled(pod: Pod, node: Node, state: CycleState) -> bool:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return False
    terms = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    return any(_term_repels(term, pod, node, state) for term in terms)


def _term_repels(term: PodAffinityTerm, pod: Pod, node: Node, state: CycleState) -> bool:
    """Namespace selectors and matchLabelKeys are not looked at; a pod of the same name never conflicts."""
    if term.topology_key not in node.metadata.labels:
        return False
    namespaces = term.namespaces or (pod.metadata.namespace,)
    try:
        selector = selectors.compile_labels(term.label_selector)
    except SelectorError:
        return False
    return any(
        other.metadata.name != pod.metadata.name
        and other.metadata.namespace in namespaces
        and selector.matches(other.metadata.labels)
        for other in state.pods_on(node.metadata.name)
    )
