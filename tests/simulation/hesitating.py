"""A plugin of a user for the simulated schedulers: some pods wait at Permit, until another pod comes by or
their time is up."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from podyard.framework.cycle_state import CycleState
from podyard.framework.events import NODE, POD, ClusterEvent, Registration
from podyard.framework.interfaces import PermitResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import wait
from podyard.proto.actions import ActionType

LABEL = "hesitates"
LONGEST_S = 3.0


class Hesitates:
    """Permit. Every pod that reaches it lets those go that wait already, and refuses one of three."""

    name: ClassVar[str] = "Hesitates"

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ClusterEvent(POD, ActionType.ADD)), Registration(ClusterEvent(NODE, ActionType.ADD))]

    def permit(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PermitResult:
        for number, uid in enumerate(list(cluster.waiting)):
            if number % 3 == 2:
                cluster.waiting.reject(uid, self.name, f"{pod.name} came instead")
            else:
                cluster.waiting.allow(uid, self.name)
        if LABEL in pod.labels:
            return PermitResult(status=wait("it hesitates"), timeout_s=LONGEST_S)
        return PermitResult()
