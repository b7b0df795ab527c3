"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.events import Registration
from podyard.framework.interfaces import Detail, Rows, Scope, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.objects import taints
from podyard.objects.affinity import Taint
from podyard.objects.core import Pod
from podyard.plugins.node_unschedulable import hints

NAME: Final = "NodeUnschedulable"
REASON: Final = "node(s) were unschedulable"
CORDONED: Final = 1
CORDON: Final = Taint(key=taints.UNSCHEDULABLE, effect=taints.NO_SCHEDULE)
"""What `spec.unschedulable` stands for."""


def tolerates_cordon(pod: PodInfo) -> bool:
    """Whether the pod goes to cordoned nodes too."""
    return taints.tolerated(pod.pod.spec.tolerations, CORDON)


class NodeUnschedulable:
    """Filter."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "node"
    reads_template: ClassVar[bool] = True

    def signature(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.tolerations

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return None

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        cordoned = cluster.nodes.unschedulable[rows].astype(np.int64)
        if cordoned.any() and tolerates_cordon(pod):
            return np.zeros_like(cordoned)
        return cordoned

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return CORDONED if cluster.nodes.unschedulable[row] and not tolerates_cordon(pod) else 0

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        return Detail("is cordoned (spec.unschedulable)")

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unresolvable(REASON)
