"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go."""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.interfaces import Rows, Scope, Scores
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.plugins.node_resources_balanced_allocation import balance
from podyard.plugins.node_resources_balanced_allocation.args import Args
from podyard.plugins.node_resources_fit import allocation
from podyard.plugins.node_resources_fit.allocation import Counted

NAME: Final = "NodeResourcesBalancedAllocation"
COUNTED: Final = StateKey[tuple[Counted, ...]]("PreScoreNodeResourcesBalancedAllocation")


class NodeResourcesBalancedAllocation:
    """PreScore, Score."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "row"
    reads_template: ClassVar[bool] = True

    def __init__(self, args: Args) -> None:
        self.args = args

    def signature(self, pod: PodInfo) -> Hashable:
        return tuple(pod.usage.requests.items())

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        if self._requests_nothing(pod):
            return statuses.SKIP
        state.write(COUNTED, self._count(pod))
        return statuses.SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        counted = self._counted(state, pod)
        return np.zeros(len(rows), dtype=np.int64) if counted is None else balance.scores(counted, cluster.nodes, rows)

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        counted = self._counted(state, pod)
        return 0 if counted is None else balance.score_one(counted, cluster.nodes, row)

    def _requests_nothing(self, pod: PodInfo) -> bool:
        """Such pods would all go to one node (docs/rules.md, empty-requests-are-not-balanced)."""
        requests = pod.usage.requests
        return not any(requests.get(spec.name) for spec in self.args.resources)

    def _count(self, pod: PodInfo) -> tuple[Counted, ...]:
        return allocation.requested(self.args.resources, pod.usage.requests)

    def _counted(self, state: CycleState, pod: PodInfo) -> tuple[Counted, ...] | None:
        """What PreScore wrote; the same made here if PreScore is disabled. `None`: nothing is requested, the
        score is 0."""
        found = state.find(COUNTED)
        if found is None and not self._requests_nothing(pod):
            found = self._count(pod)
            state.write(COUNTED, found)
        return found
