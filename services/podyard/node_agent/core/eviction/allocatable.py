"""What a kubelet leaves of a node's capacity to pods, of a node that it registers.

What is reserved is taken off; huge pages, besides, off the memory
(docs/rules.md, allocatable-is-capacity-less-reservations). Virtual nodes are no case of it: their object says
both.

Sources: kubernetes v1.36.2, pkg/kubelet/nodestatus/setters.go (MachineInfo),
pkg/kubelet/cm/node_container_manager_linux.go (GetNodeAllocatableReservation, validateNodeAllocatable).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from podyard.node_agent.core.eviction.thresholds import Fault
from podyard.objects.pod_requests import MEMORY
from podyard.objects.quantity import Quantity, parse

HUGE_PAGES: Final = "hugepages-"


def left(capacity: Mapping[str, str], reservations: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The capacity less what is reserved, 0 if that is more.

    :param capacity: quantities by resource
    :param reservations: quantities by resource, each; of what the node does not have nothing is reserved
    """
    reserved = _reserved(capacity, reservations)
    found = {name: _less(parse(text), reserved[name]) for name, text in capacity.items()}
    if MEMORY in found:
        for name, text in capacity.items():
            if name.startswith(HUGE_PAGES):
                found[MEMORY] = _less(found[MEMORY], parse(text).nano)
    return {name: str(one) for name, one in found.items()}


def faults(capacity: Mapping[str, str], reservations: Sequence[Mapping[str, str]]) -> Iterator[Fault]:
    """Each resource of which more is reserved than there is, in the kubelet's words: it does not start."""
    for name, nano in _reserved(capacity, reservations).items():
        has = parse(capacity[name])
        if nano > has.nano:
            yield Fault(
                f"capacity[{name}]",
                f'invalid Node Allocatable configuration. Resource "{name}" has a reservation of '
                f"{has._replace(nano=nano)} but capacity of {has}. Expected capacity >= reservation.",
            )


def _reserved(capacity: Mapping[str, str], reservations: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Nano-units by resource of the node."""
    return {name: sum(parse(one.get(name, "0")).nano for one in reservations) for name in capacity}


def _less(one: Quantity, nano: int) -> Quantity:
    return one._replace(nano=max(one.nano - nano, 0))
