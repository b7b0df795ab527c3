"""What a kubelet says of a node that it registers: capacity for pods, and what is left for them.

Reservations and hard thresholds are taken off what there is; huge pages, besides, off the memory, since
whoever sets them aside takes memory for them. Virtual nodes are no case of it: their object says both.

Sources: kubernetes v1.36.2, pkg/kubelet/nodestatus/setters.go (MachineInfo),
pkg/kubelet/cm/node_container_manager_linux.go (GetNodeAllocatableReservation, validateNodeAllocatable).
"""

from collections.abc import Mapping
from typing import Final

from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.thresholds import Fault, ThresholdError
from podyard.objects.pod_requests import MEMORY, PODS
from podyard.objects.quantity import Quantity, parse

HUGE_PAGES: Final = "hugepages-"


def capacity(there_is: Mapping[str, str], configuration: KubeletConfiguration) -> dict[str, str]:
    """The node's capacity: what the host has, and `maxPods`.

    :param there_is: quantities by resource; `ephemeral-storage` only if local storage is isolated
    """
    return {**there_is, PODS: str(configuration.max_pods)}


def allocatable(capacity: Mapping[str, str], configuration: KubeletConfiguration) -> dict[str, str]:
    """The node's allocatable: its capacity less what is reserved, 0 if that is more.

    :param capacity: quantities by resource, as canonical as they shall come out
    :raises ThresholdError: if `evictionHard` does not parse
    """
    reserved = _reserved(capacity, configuration)
    left = {name: _less(parse(text), reserved[name]) for name, text in capacity.items()}
    if MEMORY in left:
        for name, text in capacity.items():
            if name.startswith(HUGE_PAGES):
                left[MEMORY] = _less(left[MEMORY], parse(text).nano)
    return {name: str(one) for name, one in left.items()}


def check(capacity: Mapping[str, str], configuration: KubeletConfiguration) -> None:
    """Before the node is registered: whether it has what is reserved.

    :raises ThresholdError: with each resource of which more is reserved than there is, in the kubelet's words
    """
    reserved = _reserved(capacity, configuration)
    faults = [
        Fault(
            f"capacity[{name}]",
            f'invalid Node Allocatable configuration. Resource "{name}" has a reservation of '
            f"{_shown(reserved[name], parse(text))} but capacity of {parse(text)}. Expected capacity >= reservation.",
        )
        for name, text in capacity.items()
        if reserved[name] > parse(text).nano
    ]
    if faults:
        raise ThresholdError(*faults)


def _reserved(capacity: Mapping[str, str], configuration: KubeletConfiguration) -> dict[str, int]:
    """Nano-units by resource of the node: what is reserved for nobody is 0, and for what it does not have it
    is left out."""
    sources = (
        configuration.system_reserved,
        configuration.kube_reserved,
        configuration.hard_eviction_reservation(capacity),
    )
    return {name: sum(parse(one.get(name, "0")).nano for one in sources) for name in capacity}


def _less(one: Quantity, nano: int) -> Quantity:
    return one._replace(nano=max(one.nano - nano, 0))


def _shown(nano: int, like: Quantity) -> str:
    return str(like._replace(nano=nano))
