"""Which nodes count for a constraint.

Source: kube-scheduler v1.36.2, podtopologyspread/common.go (nodeLabelsMatchSpreadConstraints,
matchNodeInclusionPolicies).
"""

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_columns import ABSENT
from podyard.cluster.node_table import NodeTable
from podyard.objects import taints
from podyard.objects.affinity import Toleration
from podyard.objects.selectors import RequiredNodeAffinity
from podyard.plugins import node_matching


class CountingNodes:
    """Nodes with all of some labels, and, where the constraint honors them, with the affinity and tolerated
    taints of the pod.
    """

    __slots__ = ("_hash", "_parts")

    def __init__(
        self,
        keys: frozenset[str],
        required: RequiredNodeAffinity | None,
        tolerations: tuple[Toleration, ...] | None,
    ) -> None:
        """
        :param keys: labels that a node must have
        :param required: what the pod needs of its node; `None`: that does not matter
        :param tolerations: of the pod; `None`: taints do not matter
        """
        self._parts = keys, required, tolerations
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountingNodes) and self._parts == other._parts

    def mask(self, nodes: NodeTable) -> NDArray[np.bool_]:
        """By row. An affinity that cannot be read matches no node."""
        keys, required, tolerations = self._parts
        mask = nodes.live.copy()
        for key in keys:
            mask &= nodes.label_column(key).cells != ABSENT
        if required is not None:
            rows = np.flatnonzero(mask)
            mask[rows] = node_matching.required(required, nodes, rows)
        if tolerations is not None:
            repelled = [taints.untolerated(one, tolerations) is not None for one in nodes.taints.sets]
            mask &= ~np.array(repelled, dtype=np.bool_)[nodes.taint_set]
        return mask
