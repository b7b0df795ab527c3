"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/nodename/node_name.go."""

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
from podyard.objects.core import Pod
from podyard.plugins.node_name import hints

NAME: Final = "NodeName"
REASON: Final = "node(s) didn't match the requested node name"
OTHER_NODE: Final = 1


class NodeName:
    """Filter."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "node"
    reads_template: ClassVar[bool] = True

    def signature(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.node_name

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return None

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        wanted = pod.pod.spec.node_name
        if not wanted:
            return np.zeros(len(rows), dtype=np.int64)
        return (rows != cluster.nodes.row_of.get(wanted, -1)).astype(np.int64)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        wanted = pod.pod.spec.node_name
        return OTHER_NODE if wanted and cluster.nodes.names[row] != wanted else 0

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        wanted = pod.pod.spec.node_name
        there = "" if wanted in cluster.nodes.row_of else ", and there is no such node"
        return Detail(f"the pod's nodeName is {wanted}{there}")

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unresolvable(REASON)
