"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/nodevolumelimits/csi.go."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import Registration
from podyard.framework.interfaces import PreFilterResult, Rows, Scope, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.objects import claims
from podyard.objects.core import Pod
from podyard.plugins.node_volume_limits import hints
from podyard.plugins.node_volume_limits.attachable_volumes import CSI_NODES, AttachableVolumes, Limits
from podyard.plugins.node_volume_limits.resolving import (
    ATTACHMENTS,
    Attachable,
    ClaimMissingError,
    Resolver,
    considered,
)

NAME: Final = "NodeVolumeLimits"
REASON: Final = "node(s) exceed max volume count"
TOO_MANY: Final = 1
CLAIM_MISSING: Final = 2

MISSING: Final = StateKey[str]("FilterNodeVolumeLimits")
"""Why a claim of the pod is not known, for `verdict`."""


class NodeVolumeLimits:
    """PreFilter, Filter."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "row"
    signs_few_templates: ClassVar[bool] = True

    def signature(self, pod: PodInfo) -> Hashable:
        volumes = pod.pod.spec.volumes
        if not any(map(considered, volumes)):
            return None
        uses = tuple(claims.claims_of(pod.pod))
        inline = tuple(one for one in volumes if considered(one) and claims.claim_of(pod.pod, one) is None)
        return (pod.namespace if uses else ""), uses, inline, any(use.ephemeral for use in uses) and pod.uid

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        if not any(map(considered, pod.pod.spec.volumes)):
            return None
        version = cluster.version
        return (
            version(claims.CLAIMS),
            version(claims.VOLUMES),
            version(claims.CLASSES),
            version(CSI_NODES),
            version(ATTACHMENTS),
        )

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return hints.read_of(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        wanted = any(map(considered, pod.pod.spec.volumes))
        return PreFilterResult(status=statuses.SUCCESS if wanted else statuses.SKIP)

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        codes = np.zeros(len(rows), dtype=np.int64)
        index = cluster.nodes.index(AttachableVolumes)
        limits = index.limits(cluster)
        resolver = Resolver(cluster)
        try:
            needed = resolver.of_pod(pod.pod, csi_node=bool(limits.known[rows].any()), wanted=True)
        except ClaimMissingError as missing:
            state.write(MISSING, str(missing))
            codes[:] = CLAIM_MISSING
            return codes
        if not needed:
            return codes
        most = index.most(cluster)[rows]
        close = index.owned()[rows]
        for driver, count in Counter(one.driver for one in needed).items():
            allowed = limits.of(driver)
            if allowed is not None:
                close |= most > allowed[rows] - count
        for at in np.flatnonzero(close & limits.limited[rows]).tolist():
            codes[at] = self._code(needed, rows.item(at), limits, resolver, cluster)
        return codes

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        limits = cluster.nodes.index(AttachableVolumes).limits(cluster)
        resolver = Resolver(cluster)
        try:
            needed = resolver.of_pod(pod.pod, csi_node=limits.known.item(row), wanted=True)
        except ClaimMissingError as missing:
            state.write(MISSING, str(missing))
            return CLAIM_MISSING
        return self._code(needed, row, limits, resolver, cluster) if needed and limits.limited.item(row) else 0

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unschedulable(REASON) if code == TOO_MANY else statuses.unresolvable(state.read(MISSING))

    def _code(self, needed: set[Attachable], row: int, limits: Limits, resolver: Resolver, cluster: Snapshot) -> int:
        """Whether the volumes that are not on the node already are too many together with those that are.

        :param row: of a node with a CSINode
        """
        there = cluster.nodes.index(AttachableVolumes).on_node(row, resolver, cluster)
        more: dict[str, int] = {}
        for one in needed:
            if one not in there.used:
                more[one.driver] = more.get(one.driver, 0) + 1
        for driver, count in more.items():
            if there.held.get(driver, 0) + count > limits.at(driver, row):
                return TOO_MANY
        return 0
