"""Pods that wait for room on a node they preempted for, by that node. Pure.

Source: kube-scheduler v1.36.2, pkg/scheduler/backend/queue/nominator.go, scheduling_queue.go (moveToActiveQ),
eventhandlers.go (responsibleForPod): who never was in the queue is nominated to nothing, whatever its status
says.
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from podyard.cluster.changes import Change
from podyard.cluster.pods import PodView
from podyard.proto import subjects

NOBODY: Final[Mapping[str, PodView]] = {}


class Nominations:
    """Unbound pods by nominated node, folded from a view's changes. Pods with scheduling gates, and those of
    schedulers that have no profile here, keep nobody out.

    Invariant: a uid is nominated to one node at most; it leaves with its binding, its deletion or its
    nomination.
    """

    __slots__ = ("_node_of", "_on_node", "_schedulers", "uids", "version")

    def __init__(self, pods: Iterable[PodView] = (), schedulers: Collection[str] | None = None) -> None:
        """
        :param pods: what there is already
        :param schedulers: names of the profiles, which are those of the pods that are scheduled here; `None`:
            all
        """
        self._schedulers = schedulers
        self.version = 0
        """Grows with every change."""
        self._node_of: dict[str, str] = {}
        self.uids: AbstractSet[str] = self._node_of.keys()
        """Of all nominated pods, as they are now."""
        self._on_node: dict[str, dict[str, PodView]] = {}
        for pod in pods:
            self.follow(pod.uid, pod)

    def __bool__(self) -> bool:
        """Whether any pod is nominated."""
        return bool(self._node_of)

    def node_of(self, uid: str) -> str:
        """The node that a pod is nominated to, "" if to none."""
        return self._node_of.get(uid, "")

    def nodes(self) -> Iterable[str]:
        """Nodes that pods are nominated to."""
        return self._on_node.keys()

    def on(self, node_name: str) -> Mapping[str, PodView]:
        """Pods nominated to a node by uid, in order of nomination."""
        return self._on_node.get(node_name, NOBODY)

    def apply(self, change: Change) -> None:
        """Follow one change of the cluster view; others than those of pods are ignored."""
        if change.resource == subjects.PODS and (self._node_of or _may_be_nominated(change.new)):
            self.follow(change.uid, change.new)

    def follow(self, uid: str, pod: PodView | None) -> None:
        """The pod is this now; `None`: it is gone."""
        node = "" if pod is None or not self._waits(pod) else pod.nominated_node
        before = self._node_of.get(uid, "")
        if before != node:
            self._leave(uid, before)
        if pod is None or not node:
            return
        self._node_of[uid] = node
        mates = self._on_node.setdefault(node, {})
        if mates.get(uid) is not pod:
            mates[uid] = pod
            self.version += 1

    def _waits(self, pod: PodView) -> bool:
        """Whether it is one of the pods that wait to be scheduled here."""
        if pod.bound is not None or pod.released or pod.gone:
            return False
        spec = pod.stored.spec
        if spec.scheduling_gates:
            return False
        return self._schedulers is None or not spec.scheduler_name or spec.scheduler_name in self._schedulers

    def _leave(self, uid: str, node: str) -> None:
        if not node:
            return
        del self._node_of[uid]
        mates = self._on_node[node]
        del mates[uid]
        if not mates:
            del self._on_node[node]
        self.version += 1


def _may_be_nominated(pod: PodView | None) -> bool:
    """Whether anybody says so: of most pods nobody does."""
    return pod is not None and (pod.nomination is not None or bool(pod.stored.status.nominated_node_name))
