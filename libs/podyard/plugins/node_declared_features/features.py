"""Which features of a node's kubelet a pod needs, and which nodes declare what.

Source: v1.36.2, staging/src/k8s.io/component-helpers/nodedeclaredfeatures (InferForPodScheduling, features/).
"""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.objects.node import Node
from podyard.objects.pod import PodSpec

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"
RESTART_ALL: Final = "RestartAllContainers"
"""Action of a container's restart rule."""

FeatureSet: TypeAlias = frozenset[str]

NONE_NEEDED: Final[FeatureSet] = frozenset()


def needed(spec: PodSpec) -> FeatureSet:
    """The features that a node must declare for the pod. The other declared features matter only to updates
    of running pods."""
    found: list[str] = []
    for container in (*spec.containers, *spec.init_containers):
        if any(rule.action == RESTART_ALL for rule in container.restart_policy_rules):
            found.append(RESTART_ALL_CONTAINERS)
            break
    if spec.host_network and spec.host_users is False:
        found.append(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(found) if found else NONE_NEEDED


class DeclaredFeatures:
    """The features that nodes declare, as small numbers: `sets[cells[row]]`. A column of the node table."""

    __slots__ = ("_ids", "cells", "sets")

    def __init__(self) -> None:
        self.cells: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self.sets: list[FeatureSet] = [frozenset()]
        self._ids: dict[FeatureSet, int] = {frozenset(): 0}

    def set(self, row: int, node: Node) -> None:
        """Read what `node` declares."""
        declared = frozenset(node.status.declared_features)
        known = self._ids.get(declared)
        if known is None:
            known = self._ids[declared] = len(self.sets)
            self.sets.append(declared)
        self.cells[row] = known

    def clear(self, row: int) -> None:
        """There is no node in this row."""
        self.cells[row] = 0

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self.cells = np.append(self.cells, np.zeros(capacity - len(self.cells), dtype=np.int32))
