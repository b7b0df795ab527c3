"""Pods that their creator put on a node: bound without judgement, as in Kubernetes, and flagged.

One whose node does not exist waits for it: a binding to no node would end at once. One whose binding is too
large to be written stays unbound (docs/rules.md, forced-pod-is-bound-unjudged).
"""

from collections.abc import Iterable

from podyard.binder.core.world import World
from podyard.cluster.changes import Change
from podyard.cluster.pods import PodView
from podyard.proto import subjects
from podyard.proto.placement import BoundPod


class Forced:
    """Pods to be bound by force, and those that wait for their node."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.ready: dict[str, None] = {}
        """Uids of those that could be bound now, oldest first; for others to look at."""
        self._by_node: dict[str, dict[str, None]] = {}
        """Uids of those that wait, oldest first; exactly those of `_node_of`."""
        self._node_of: dict[str, str] = {}

    @property
    def waiting(self) -> int:
        """How many wait for their node."""
        return len(self._node_of)

    def consider(self, changes: Iterable[Change]) -> None:
        """After the world followed `changes`."""
        for change in changes:
            new = change.new
            if change.resource == subjects.PODS:
                if self._node_of:
                    self._waits_no_more(change.uid)
                if new is not None and new.stored.spec.node_name and new.bound is None:
                    self._add(new)
            elif change.resource == subjects.NODES and change.old is None and new is not None:
                for uid in self._by_node.pop(new.name, ()):
                    del self._node_of[uid]
                    self.ready[uid] = None

    def take(self, limit: int) -> list[BoundPod]:
        """Take out up to `limit` bindings, oldest first."""
        found: list[BoundPod] = []
        while self.ready and len(found) < limit:
            uid = next(iter(self.ready))
            del self.ready[uid]
            pod = self._world.view.pods_by_uid.get(uid)
            if pod is None or not self._wanted(pod):
                continue
            if pod.stored.spec.node_name in self._world.view.nodes:
                found.append(_binding(pod))
            else:
                self._add(pod)
        return found

    def retry(self, bindings: Iterable[BoundPod]) -> None:
        """They were not written."""
        self.ready.update({bound.uid: None for bound in bindings})

    def _add(self, pod: PodView) -> None:
        node = pod.stored.spec.node_name
        if not self._wanted(pod):
            return
        if node in self._world.view.nodes:
            self.ready[pod.uid] = None
        else:
            self._by_node.setdefault(node, {})[pod.uid] = None
            self._node_of[pod.uid] = node

    def _waits_no_more(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is not None:
            mates = self._by_node[node]
            del mates[uid]
            if not mates:
                del self._by_node[node]

    def _wanted(self, pod: PodView) -> bool:
        if pod.bound is not None or pod.released or pod.unknown_place or pod.deleting or pod.ended:
            return False
        return self._world.table.placed(pod.uid) is None


def _binding(pod: PodView) -> BoundPod:
    return pod.bound_to(pod.stored.spec.node_name, decided_at=pod.sequence, forced=True)
