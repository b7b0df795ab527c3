"""Where a volume can be made for a claim.

Source: kube-scheduler v1.36.2, plugins/volumebinding/binder.go (checkVolumeProvisions, hasEnoughCapacity),
apis/core/v1/helper (MatchTopologySelectorTerms).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable
from podyard.framework.snapshot import Snapshot
from podyard.objects import claims, quantity, selectors
from podyard.objects.core import PersistentVolumeClaim
from podyard.objects.errors import SelectorError
from podyard.objects.selectors import NodeTerm, NodeTerms, Requirement, Selector
from podyard.objects.storage import CSIDriver, CSIStorageCapacity, StorageClass, TopologySelectorTerm
from podyard.plugins import node_matching

DRIVERS: Final = "csidrivers"
CAPACITIES: Final = "csistoragecapacities"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""Provisioner of classes whose volumes are never made on demand."""


class Provision(NamedTuple):
    """Where a volume can be made for one claim."""

    topologies: NodeTerms | None
    """Nodes that the class allows; `None`: all; no terms: none."""
    capacities: tuple[Selector, ...] | None
    """Nodes with enough room by what the driver says, any of these; `None`: the driver says nothing."""

    def allowed(self, nodes: NodeTable, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Where the class allows it."""
        if self.topologies is None:
            return np.ones(len(rows), dtype=np.bool_)
        return node_matching.terms(self.topologies, nodes, rows)

    def roomy(self, nodes: NodeTable, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Where there is enough room."""
        if self.capacities is None:
            return np.ones(len(rows), dtype=np.bool_)
        mask = np.zeros(len(rows), dtype=np.bool_)
        for selector in self.capacities:
            mask |= node_matching.labels(selector, nodes, rows)
        return mask

    def allowed_one(self, labels: Mapping[str, str]) -> bool:
        """Whether the class allows it on a node of these labels."""
        return self.topologies is None or any(term.matches(labels, "") for term in self.topologies.terms)

    def roomy_one(self, labels: Mapping[str, str]) -> bool:
        """Whether a node of these labels has enough room."""
        return self.capacities is None or any(selector.matches(labels) for selector in self.capacities)


NOWHERE: Final = Provision(NodeTerms(), None)


def provision_of(claim: PersistentVolumeClaim, cluster: Snapshot) -> Provision:
    """Where a volume can be made for a claim whose class exists."""
    storage_class: StorageClass | None = cluster.objects(claims.CLASSES).get(("", claims.class_of_claim(claim)))
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return NOWHERE
    terms = storage_class.allowed_topologies
    return Provision(
        _compiled(terms) if terms else None,
        _roomy(claim, storage_class, cluster),
    )


def _compiled(terms: tuple[TopologySelectorTerm, ...]) -> NodeTerms:
    """An empty term, and one with a label of no value, matches nothing."""
    return NodeTerms(
        tuple(
            NodeTerm(tuple(Requirement(item.key, selectors.IN, frozenset(item.values)) for item in expressions))
            for expressions in (term.match_label_expressions for term in terms)
            if expressions and all(item.values for item in expressions)
        )
    )


def _roomy(claim: PersistentVolumeClaim, storage_class: StorageClass, cluster: Snapshot) -> tuple[Selector, ...] | None:
    size = claim.spec.resources.requests.get(claims.STORAGE)
    driver: CSIDriver | None = cluster.objects(DRIVERS).get(("", storage_class.provisioner))
    if size is None or driver is None or not driver.spec.storage_capacity:
        return None
    wanted_bytes = quantity.value(size)
    found: list[Selector] = []
    for capacity in cluster.objects(CAPACITIES).values():
        if capacity.storage_class_name != storage_class.metadata.name or capacity.node_topology is None:
            continue
        limit = volume_limit(capacity)
        if limit is None or limit < wanted_bytes:
            continue
        try:
            found.append(selectors.compile_labels(capacity.node_topology))
        except SelectorError:
            continue
    return tuple(found)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Bytes of the largest volume that can be made, `None` if nothing is known. Source: binder.go,
    volumeLimit.
    """
    limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return None if limit is None else quantity.value(limit)
