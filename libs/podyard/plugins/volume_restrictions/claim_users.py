"""Index: how many volumes of placed pods stand for a claim.

Source: kube-scheduler v1.36.2, framework/types.go (updatePVCRefCounts), backend/cache/snapshot.go
(IsPVCUsedByPods).
"""

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.objects import claims


class ClaimUsers:
    """Counts by namespace and name of the claim; claims of ephemeral volumes are not counted."""

    def __init__(self, nodes: NodeTable) -> None:
        self._users: dict[tuple[str, str], int] = {}

    def used(self, namespace: str, claim: str) -> bool:
        """Whether a pod on any node of the table uses the claim."""
        return (namespace, claim) in self._users

    def add(self, pod: PlacedPod, row: int) -> None:
        for claim in claims.named_claims(pod.stored):
            key = pod.namespace, claim
            self._users[key] = self._users.get(key, 0) + 1

    def remove(self, pod: PlacedPod, row: int) -> None:
        for claim in claims.named_claims(pod.stored):
            key = pod.namespace, claim
            left = self._users.get(key, 0) - 1
            if left > 0:
                self._users[key] = left
            else:
                self._users.pop(key, None)
