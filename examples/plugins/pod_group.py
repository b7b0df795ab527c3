"""PodGroup: pods labelled `pod-group: NAME` and `pod-group-size: N` get their nodes only when N of them have
one.

Each waits at Permit with its room until the group is whole; a member that loses its place, or waits too long,
takes the others with it. So no group holds half of what it needs for long. As the plugin Coscheduling of
sigs.k8s.io/scheduler-plugins, for one scheduler.

pluginConfig:
- name: examples.plugins.pod_group:PodGroup
  args: {waitSeconds: 60}
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import msgspec

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.framework import events
from podyard.framework.cycle_state import CycleState
from podyard.framework.events import POD, ClusterEvent, HintResult, Registration
from podyard.framework.interfaces import PermitResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import SUCCESS, Status, wait
from podyard.objects.core import Pod
from podyard.proto.actions import ActionType

GROUP = "pod-group"
SIZE = "pod-group-size"


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """`waitSeconds`: how long a pod waits for the rest of its group."""

    wait_seconds: float = 60.0


class Members:
    """Uids of the pods that have a place, by namespace and group; kept up to date by the node table."""

    def __init__(self, nodes: NodeTable) -> None:
        self.of: dict[tuple[str, str], set[str]] = {}

    def add(self, pod: PlacedPod, row: int) -> None:
        if GROUP in pod.labels:
            self.of.setdefault((pod.namespace, pod.labels[GROUP]), set()).add(pod.uid)

    def remove(self, pod: PlacedPod, row: int) -> None:
        if GROUP in pod.labels:
            self.of[pod.namespace, pod.labels[GROUP]].discard(pod.uid)


def after_pod(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if another pod of the group has come."""
    group, labels = pod.metadata.labels.get(GROUP), new.metadata.labels if isinstance(new, Pod) else {}
    if group is not None and labels.get(GROUP) == group:
        return events.queue(f"there is another pod of the group {group}")
    return events.skip("that pod is of another group, or of none")


class PodGroup:
    """Permit, and Reserve for what it undoes."""

    name: ClassVar[str] = "PodGroup"

    def __init__(self, args: Args) -> None:
        self.args = args

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ClusterEvent(POD, ActionType.ADD), after_pod)]

    def reserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> None:
        group = pod.labels.get(GROUP)
        if group is not None:
            for uid in self._waiting(pod, cluster):
                cluster.waiting.reject(uid, self.name, f"{pod.name} of the group {group} has lost its place")

    def permit(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PermitResult:
        group = pod.labels.get(GROUP)
        if group is None:
            return PermitResult()
        placed, size = len(self._placed(pod, cluster)), int(pod.labels.get(SIZE, "1"))
        if placed < size:
            text = f"{placed} of {size} pods of the group {group} have a node"
            return PermitResult(status=wait(text), timeout_s=self.args.wait_seconds)
        for uid in self._waiting(pod, cluster):
            cluster.waiting.allow(uid, self.name)
        return PermitResult()

    def _placed(self, pod: PodInfo, cluster: Snapshot) -> set[str]:
        return cluster.nodes.index(Members).of.get((pod.namespace, pod.labels[GROUP]), set())

    def _waiting(self, pod: PodInfo, cluster: Snapshot) -> list[str]:
        return [uid for uid in cluster.waiting if uid != pod.uid and uid in self._placed(pod, cluster)]
