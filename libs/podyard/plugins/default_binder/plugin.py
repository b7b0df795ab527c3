"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/defaultbinder/default_binder.go.

The reference's plugin calls the API server; here the binder commits what no other Bind plugin took for
itself.
"""

from typing import ClassVar, Final

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status

NAME: Final = "DefaultBinder"


class DefaultBinder:
    """Bind."""

    name: ClassVar[str] = NAME

    def bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status:
        """Takes every pod: the binder's commit is the binding."""
        return statuses.SUCCESS
