"""Whether a node takes a pod that is bound to it.

In the kubelet's order: eviction is asked before everything else, and the first that objects gives the
reason (docs/rules.md, admission-asks-eviction-first). A critical pod that lacks nothing but room has others
go for it.

Sources: kubernetes v1.36.2, pkg/kubelet/kubelet.go (rejectPod and the order of its admit handlers),
pkg/kubelet/lifecycle/predicate.go, pkg/scheduler/eventhandlers.go (AdmissionCheck),
pkg/scheduler/framework/plugins/noderesources/fit.go (fitsRequest).
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from podyard.node_agent.core import preemption
from podyard.node_agent.core.eviction import admission as eviction
from podyard.node_agent.core.eviction import critical
from podyard.node_agent.core.eviction.messages import REASON as EVICTED
from podyard.node_agent.core.preemption import PreemptionError, Shortage
from podyard.node_agent.core.virtual_pod import VirtualPod
from podyard.objects import host_ports, pod_requests, quantity, selectors, taints
from podyard.objects.core import Node
from podyard.objects.errors import SelectorError
from podyard.objects.resource_validation import is_extended
from podyard.proto.operations import Reason

OS_LABEL: Final = "kubernetes.io/os"
USUAL_OS: Final = "linux"
"""Of a virtual node whose labels name none."""

INVALID_NODE: Final = Reason("InvalidNodeInfo")
OS_SELECTOR: Final = Reason("PodOSSelectorNodeLabelDoesNotMatch")
OS_FIELD: Final = Reason("PodOSNotSupported")
UNEXPECTED: Final = Reason("UnexpectedAdmissionError")
OUT_OF: Final = "OutOf"
OUT_OF_EXTENDED: Final = Reason("OutOfExtendedResources")
AFFINITY: Final = Reason("NodeAffinity")
PORTS: Final = Reason("NodePorts")
TAINTS: Final = Reason("TaintToleration")

_NATIVE: Final = (pod_requests.CPU, pod_requests.MEMORY, pod_requests.EPHEMERAL_STORAGE)


class Refusal(NamedTuple):
    """The node does not take the pod; `message` is that of its event."""

    reason: Reason
    message: str


class Admitted(NamedTuple):
    """The node takes the pod, once these have gone for it."""

    victims: tuple[VirtualPod, ...] = ()
    short: str = ""
    """The first resource that they go for; empty if none is short."""


Verdict: TypeAlias = Refusal | Admitted
ADMITTED: Final = Admitted()


def judge(
    node: Node | None,
    conditions: Collection[str],
    pod: VirtualPod,
    others: Sequence[VirtualPod],
    most: int | None = None,
) -> Verdict:
    """Whether the node takes the pod now.

    :param node: joined with what is said of it; None if nothing is known of it
    :param conditions: its pressure
    :param others: pods of which something runs there, or will
    :param most: how many pods its kubelet is configured to take; None: as many as the node's object says
    """
    under_pressure = eviction.refusal(pod.pod, conditions)
    if under_pressure:
        return Refusal(EVICTED, under_pressure)
    if node is None:
        return Refusal(INVALID_NODE, "Kubelet cannot get node info.")
    hopeless = _wrong_os(node, pod)
    if hopeless is not None:
        return hopeless
    short = shortages(node, pod, others, most)
    misfit = next(_misfits(node, pod, others), None)
    if not critical.is_critical(pod.pod):
        return _lack(short[0]) if short else misfit or ADMITTED
    if misfit is not None:
        return misfit
    try:
        return Admitted(preemption.victims(pod, others, short), short[0].resource if short else "")
    except PreemptionError as error:
        return Refusal(UNEXPECTED, f"Unexpected error while attempting to recover from admission failure: {error}")


def shortages(node: Node, pod: VirtualPod, others: Sequence[VirtualPod], most: int | None = None) -> list[Shortage]:
    """What the node has too little of beside its other pods: pods, cpu, memory, ephemeral storage, then the
    others by name.

    Extended resources that the node does not know are left out: something beyond the node provides them.
    """
    allocatable = node.status.allocatable
    found: list[Shortage] = []
    says = quantity.value(allocatable.get(pod_requests.PODS, "0"))
    limit = says if most is None else min(says, most)
    if len(others) >= limit:
        found.append(Shortage(pod_requests.PODS, 1, len(others), limit))
    wanted = pod.usage.requests
    for name in (*_NATIVE, *sorted(wanted.keys() - set(_NATIVE))):
        amount = wanted.get(name, 0)
        if not amount or (name not in allocatable and is_extended(name)):
            continue
        text = allocatable.get(name, "0")
        has = quantity.milli(text) if name == pod_requests.CPU else quantity.value(text)
        used = sum(other.usage.requests.get(name, 0) for other in others)
        if amount > has - used:
            found.append(Shortage(name, amount, used, has))
    return found


def counted_as(reason: str) -> str:
    """The reason by which refusals are counted: there are as many extended resources as people think of."""
    known = not reason.startswith(OUT_OF) or reason[len(OUT_OF) :] in (*_NATIVE, pod_requests.PODS)
    return reason if known else OUT_OF_EXTENDED


def _lack(short: Shortage) -> Refusal:
    return Refusal(
        Reason(f"{OUT_OF}{short.resource}"),
        f"Node didn't have enough resource: {short.resource}, requested: {short.requested}, "
        f"used: {short.used}, capacity: {short.capacity}",
    )


def _wrong_os(node: Node, pod: VirtualPod) -> Refusal | None:
    """A virtual node is of the system that its label names."""
    system = node.metadata.labels.get(OS_LABEL, USUAL_OS)
    if pod.pod.metadata.labels.get(OS_LABEL, system) != system:
        return Refusal(OS_SELECTOR, "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label")
    if pod.pod.spec.os is not None and pod.pod.spec.os.name != system:
        return Refusal(OS_FIELD, "Failed to admit pod as the OS field doesn't match node OS")
    return None


def _misfits(node: Node, pod: VirtualPod, others: Sequence[VirtualPod]) -> Iterator[Refusal]:
    """What is in its way beside room. That it is another node's pod cannot be: it is bound to this one."""
    spec = pod.pod.spec
    if (spec.node_selector or spec.affinity is not None) and not _matches(node, pod):
        yield _failed(AFFINITY, "node(s) didn't match Pod's node affinity/selector")
    wanted = pod.usage.ports
    if wanted and not host_ports.fits(wanted, (port for other in others for port in other.usage.ports)):
        yield _failed(PORTS, "node(s) didn't have free ports for the requested pod ports")
    if (
        not critical.is_static(pod.pod)
        and taints.untolerated(node.spec.taints, spec.tolerations, (taints.NO_EXECUTE,)) is not None
    ):
        yield _failed(TAINTS, "node(s) had taints that the pod didn't tolerate")


def _matches(node: Node, pod: VirtualPod) -> bool:
    """A selector that cannot be compiled matches nothing."""
    try:
        return selectors.required_node_affinity(pod.pod).matches(node.metadata.labels, node.metadata.name)
    except SelectorError:
        return False


def _failed(predicate: Reason, why: str) -> Refusal:
    return Refusal(predicate, f"Predicate {predicate} failed: {why}")
