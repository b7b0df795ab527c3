"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/nodeports/node_ports.go."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import Registration
from podyard.framework.interfaces import Detail, PreFilterResult, Rows, Scope, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.objects import host_ports, pod_requests
from podyard.objects.core import Pod
from podyard.plugins.node_ports import hints
from podyard.plugins.node_ports.ports import PortsInUse
from podyard.proto.placement import HostPort

NAME: Final = "NodePorts"
REASON: Final = "node(s) didn't have free ports for the requested pod ports"
TAKEN: Final = 1

WANTED: Final = StateKey[tuple[HostPort, ...]]("PreFilterNodePorts")
PASSES: Final = PreFilterResult()
NOTHING_WANTED: Final = PreFilterResult(status=statuses.SKIP)


class NodePorts:
    """PreFilter, Filter."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "row"
    reads_template: ClassVar[bool] = True

    def signature(self, pod: PodInfo) -> Hashable:
        return tuple((port.protocol, port.port, port.ip) for port in pod.usage.ports)

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return tuple((port.protocol, port.port, port.ip) for port in pod_requests.host_ports(pod))

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        wanted = pod.usage.ports
        if not wanted:
            return NOTHING_WANTED
        state.write(WANTED, wanted)
        return PASSES

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        in_use = cluster.nodes.index(PortsInUse)
        return in_use.conflicting(state.read(WANTED), rows).astype(np.int64)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        wanted, nodes = state.read(WANTED), cluster.nodes
        for other in nodes.pods_on(nodes.names[row]).values():
            if other.usage.ports and not host_ports.fits(wanted, other.usage.ports):
                return TAKEN
        return 0

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        wanted, nodes = state.read(WANTED), cluster.nodes
        for other in nodes.pods_on(nodes.names[int(rows[0])]).values():
            for port in wanted:
                if not host_ports.fits((port,), other.usage.ports):
                    return Detail(f"host port {host_ports.spelled(port)} is taken by {other.namespace}/{other.name}")
        return None

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unschedulable(REASON)
