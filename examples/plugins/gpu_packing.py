"""GpuPacking: fills nodes whose GPUs are in use already, so that whole nodes stay free for pods that need
many.

pluginConfig:
- name: examples.plugins.gpu_packing:GpuPacking
  args: {resource: nvidia.com/gpu}
"""

from collections.abc import Hashable
from typing import ClassVar

import msgspec
import numpy as np

from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import Rows, Scores
from podyard.framework.normalizing import MAX_SCORE
from podyard.framework.one_at_a_time import ScoreAllNodes
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import SKIP, SUCCESS, Status


class Args(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`resource`: what counts as a GPU."""

    resource: str = "nvidia.com/gpu"


class GpuPacking(ScoreAllNodes):
    """Score: the share of a node's GPUs that is in use with this pod, in percent. Pods without GPUs are none
    of its business."""

    name: ClassVar[str] = "GpuPacking"

    def __init__(self, args: Args) -> None:
        self.args = args

    def signature(self, pod: PodInfo) -> Hashable:
        return self._wanted(pod)

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        return SUCCESS if self._wanted(pod) else SKIP

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        room = cluster.nodes.room
        line = room.line(self.args.resource)
        if line is None:
            return np.zeros(len(rows), dtype=np.int64)
        there = room.allocatable[line][rows]
        used = np.minimum(room.requested[line][rows] + self._wanted(pod), there)
        return used * MAX_SCORE // np.maximum(there, 1)

    def _wanted(self, pod: PodInfo) -> int:
        return pod.usage.requests.get(self.args.resource, 0)
