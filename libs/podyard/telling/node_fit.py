"""What keeps a pod off one node now, as far as pod and node alone decide it, with numbers and names. Pure.

What other nodes and other objects decide (affinity between pods, spreading, volumes, devices) is left to the
records of attempts. Sources: those of the plugins of these names.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from podyard.cluster.pods import PodView
from podyard.objects import host_ports, quantity, selectors, taints
from podyard.objects.affinity import Taint
from podyard.objects.errors import QuantityError, SelectorError
from podyard.objects.node import Node
from podyard.objects.pod_requests import CPU, PODS
from podyard.objects.spoken_amounts import number, spoken

CORDON: Final = Taint(key=taints.UNSCHEDULABLE, effect=taints.NO_SCHEDULE)
DECIDED_HERE: Final = frozenset(
    {"NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"}
)
"""Plugins whose rule is looked at."""


def in_the_way(pod: PodView, node: Node, pods: Sequence[PodView], requested: Mapping[str, int]) -> dict[str, str]:
    """What each of these plugins has against the pod, by plugin.

    :param pods: that take room on the node
    :param requested: by them, by resource; milli-CPU, bytes, pieces
    """
    found = {
        "NodeUnschedulable": _cordon(pod, node),
        "TaintToleration": _taints(pod, node),
        "NodeAffinity": _labels(pod, node),
        "NodePorts": next(_ports(pod, pods), ""),
        "NodeResourcesFit": ", ".join(_amounts(pod, node, len(pods), requested)),
    }
    return {plugin: text for plugin, text in found.items() if text}


def _cordon(pod: PodView, node: Node) -> str:
    cordoned = node.spec.unschedulable and not taints.tolerated(pod.stored.spec.tolerations, CORDON)
    return "the node is cordoned (spec.unschedulable)" if cordoned else ""


def _taints(pod: PodView, node: Node) -> str:
    found = taints.all_untolerated(node.spec.taints, pod.stored.spec.tolerations)
    return f"does not tolerate {', '.join(map(taints.spelled, found))}" if found else ""


def _labels(pod: PodView, node: Node) -> str:
    try:
        required = selectors.required_node_affinity(pod.stored)
        if required.matches(node.metadata.labels, node.metadata.name):
            return ""
    except SelectorError as error:
        return f"its node affinity cannot be read: {error}"
    unmet = [str(one) for one in required.selector.requirements if not one.matches(node.metadata.labels)]
    return f"wants {', '.join(unmet)}" if unmet else "its node affinity names other nodes"


def _ports(pod: PodView, pods: Iterable[PodView]) -> Iterator[str]:
    wanted = pod.usage.ports
    for other in pods if wanted else ():
        for port in wanted:
            if not host_ports.fits((port,), other.usage.ports):
                yield f"host port {host_ports.spelled(port)} is taken by {other.namespace}/{other.name}"


def _amounts(pod: PodView, node: Node, count: int, requested: Mapping[str, int]) -> Iterator[str]:
    most = allocatable(node, PODS)
    if count >= most:
        yield f"has {count} of at most {most} pods"
    for resource, amount in pod.usage.requests.items():
        whole = allocatable(node, resource)
        free = whole - requested.get(resource, 0)
        if amount > whole:
            yield f"wants {spoken(resource, amount)}, the whole node has {number(resource, whole)}"
        elif amount and amount > free:
            yield f"wants {spoken(resource, amount)}, free {number(resource, max(free, 0))} of {number(resource, whole)}"


def allocatable(node: Node, resource: str) -> int:
    """Milli-CPU, bytes or pieces; 0 if the node has none, or says what cannot be read."""
    text = node.status.allocatable.get(resource, "0")
    try:
        return quantity.milli(text) if resource == CPU else quantity.value(text)
    except QuantityError:
        return 0
