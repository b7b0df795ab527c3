"""Source: kube-scheduler v1.36.2,
pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import Registration
from podyard.framework.interfaces import PreFilterResult, Rows, Scope, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginFault, Status
from podyard.objects.core import Pod
from podyard.plugins.node_declared_features import features, hints
from podyard.plugins.node_declared_features.features import DeclaredFeatures, FeatureSet

NAME: Final = "NodeDeclaredFeatures"
REASON: Final = "node(s) didn't match Pod's required features"
NOT_DECLARED: Final = 1

NEEDED: Final = StateKey[FeatureSet]("PreFilterNodeDeclaredFeatures")
PASSES: Final = PreFilterResult()
NOTHING_NEEDED: Final = PreFilterResult(status=statuses.SKIP)


class NodeDeclaredFeatures:
    """PreFilter, Filter."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "node"
    reads_template: ClassVar[bool] = True

    def signature(self, pod: PodInfo) -> Hashable:
        return features.needed(pod.pod.spec)

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return features.needed(pod.spec)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        needed = features.needed(pod.pod.spec)
        if not needed:
            return NOTHING_NEEDED
        state.write(NEEDED, needed)
        return PASSES

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        needed, declared = self._needed(state), cluster.nodes.column(DeclaredFeatures)
        codes = np.array([0 if needed <= one else NOT_DECLARED for one in declared.sets], dtype=np.int64)
        return codes[declared.cells[rows]]

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        declared = cluster.nodes.column(DeclaredFeatures)
        return 0 if self._needed(state) <= declared.sets[declared.cells.item(row)] else NOT_DECLARED

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unresolvable(REASON)

    def _needed(self, state: CycleState) -> FeatureSet:
        """
        :raises PluginFault: if PreFilter is disabled and Filter is not
        """
        needed = state.find(NEEDED)
        if needed is None:
            raise PluginFault(f'error reading "{NEEDED.name}" from cycle-state: not found')
        return needed
