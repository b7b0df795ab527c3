"""What the agent says of the node that is its host, in the node's object. What others wrote there stays.

Source: kubernetes v1.36.2, pkg/kubelet/kubelet_node_status.go (initialNode, updateDefaultLabels).
"""

import copy
from typing import Any, Final, NamedTuple

from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.selection import AGENT, EXTERNAL
from podyard.objects.quantity import parse

Document = dict[str, Any]

_LABELS: Final = ("kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch")


class Machine(NamedTuple):
    """What a host has, and what it is."""

    system: str
    """As Go calls it: linux."""
    architecture: str
    """As Go calls it: amd64."""
    kernel: str
    cpus: int
    memory_bytes: int
    disk_bytes: int


def registered(stored: Document | None, name: str, machine: Machine, configuration: KubeletConfiguration) -> Document:
    """The node's object as it is to be.

    :param stored: as it is; None: there is none
    :raises ThresholdError: with each resource of which more is reserved than there is
    """
    made: Document = copy.deepcopy(stored) if stored is not None else {"apiVersion": "v1", "kind": "Node"}
    metadata = made.setdefault("metadata", {})
    metadata["name"] = name
    values = (name, machine.system, machine.architecture)
    metadata["labels"] = {**metadata.get("labels", {}), **dict(zip(_LABELS, values, strict=True))}
    # agents that play all nodes leave it to this one
    metadata["annotations"] = {**metadata.get("annotations", {}), AGENT: EXTERNAL}
    status = made.setdefault("status", {})
    capacity = configuration.capacity(_there_is(machine, configuration))
    status["capacity"] = {**status.get("capacity", {}), **capacity}
    status["allocatable"] = {**status.get("allocatable", {}), **configuration.allocatable(capacity)}
    status["nodeInfo"] = {
        **status.get("nodeInfo", {}),
        "architecture": machine.architecture,
        "kernelVersion": machine.kernel,
        "operatingSystem": machine.system,
    }
    return made


def reserved(resource: str, configuration: KubeletConfiguration) -> int:
    """What all pods together may not have, in whole units."""
    both = (configuration.kube_reserved, configuration.system_reserved)
    return -(-sum(parse(one[resource]).nano for one in both if resource in one) // 10**9)


def _there_is(machine: Machine, configuration: KubeletConfiguration) -> dict[str, str]:
    there_is = {"cpu": str(machine.cpus), "memory": str(machine.memory_bytes)}
    if configuration.local_storage_capacity_isolation:
        there_is["ephemeral-storage"] = str(machine.disk_bytes)
    return there_is
