"""When a `wait` step's condition holds. Pure."""

from podyard.cli.scenario.model import Wait
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView


def holds(wait: Wait, view: ClusterView) -> bool:
    """Whether enough pods or nodes are in the wanted state."""
    states = [pod_is(pod, wait.state) for pod in _pods(wait, view)]
    if wait.what == "nodes":
        states = [node_is(node, wait.state) for node in _nodes(wait, view)]
    if wait.state == "Gone":
        return len(states) <= (wait.count or 0)
    if wait.count is None:
        return bool(states) and all(states)
    return sum(states) >= wait.count


def progress(wait: Wait, view: ClusterView) -> str:
    """How far it is, for the message when time is up."""
    found = _pods(wait, view) if wait.what == "pods" else _nodes(wait, view)
    if wait.state == "Gone":
        return f"{len(found)} are still there"
    good = sum(pod_is(one, wait.state) if isinstance(one, PodView) else node_is(one, wait.state) for one in found)
    return f"{good} of {len(found)} are"


def _pods(wait: Wait, view: ClusterView) -> list[PodView]:
    return [
        pod
        for pod in view.pods.values()
        if pod.namespace == wait.namespace and wait.name in ("", pod.name) and wait.selector.matches(pod.labels)
    ]


def _nodes(wait: Wait, view: ClusterView) -> list[NodeView]:
    return [node for node in view.nodes.values() if wait.name in ("", node.name) and wait.selector.matches(node.labels)]


def pod_is(pod: PodView, state: str) -> bool:
    """Whether a pod is in a state; Unschedulable: unbound and its PodScheduled condition, if known, is not
    True."""
    if state == "Bound":
        return pod.bound is not None
    if state == "Unschedulable":
        return pod.bound is None and not pod.released and not pod.ended
    phase = pod.pod.status.phase or "Pending"
    return phase == state


def node_is(node: NodeView, state: str) -> bool:
    """Whether a node has a condition, or is (not) Ready."""
    conditions = {condition.type: condition.status for condition in node.node.status.conditions}
    if state == "NotReady":
        return conditions.get("Ready") != "True"
    return conditions.get(state) == "True"
