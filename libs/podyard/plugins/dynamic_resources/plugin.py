"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.diagnosis import Diagnosis
from podyard.framework.events import Registration
from podyard.framework.interfaces import PostFilterResult, PreBindResult, PreFilterResult, Rows, Scope, Verdicts
from podyard.framework.one_at_a_time import NoPreference
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Objects, Snapshot
from podyard.framework.status import PluginFault, Status
from podyard.objects.core import Pod
from podyard.objects.resource import ResourceClaim
from podyard.plugins.dynamic_resources import claims, hints
from podyard.plugins.dynamic_resources.args import Args
from podyard.plugins.dynamic_resources.claims import ClaimFault, Claims

NAME: Final = "DynamicResources"
REASON_NOTHING_TO_DEALLOCATE: Final = "no new claims to deallocate"
REASON_NOT_SUPPORTED: Final = "the pod uses resource claims, and this scheduler cannot allocate devices"
NOT_FOUND: Final = "not found"
"""All that the reference says if its PreFilter did not run."""

CLAIMS: Final = StateKey[tuple[ResourceClaim, ...]]("DynamicResources")
NO_CLAIMS: Final = PreFilterResult(status=statuses.SKIP)
NOTHING_TO_DEALLOCATE: Final = PostFilterResult(status=statuses.unschedulable(REASON_NOTHING_TO_DEALLOCATE))
NOTHING_TO_WRITE: Final = PreBindResult()
NEVER_BEGAN: Final = PostFilterResult(status=statuses.error(NOT_FOUND))


class DynamicResources(NoPreference):
    """PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind.

    A pod that comes as far as Reserve has no claims.
    """

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "node"
    signs_few_templates: ClassVar[bool] = True

    def __init__(self, args: Args) -> None:
        self.args = args
        self._objects: Objects | None = None

    def use_objects(self, objects: Objects) -> None:
        """Where PreEnqueue and the hints find claims: the live view. Without it PreEnqueue holds nothing
        back, and hints say Queue."""
        self._objects = objects

    def signature(self, pod: PodInfo) -> Hashable:
        return pod.uid if pod.pod.spec.resource_claims else None

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        return cluster.version(claims.RESOURCE) if pod.pod.spec.resource_claims else None

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations(self._known)

    def hint_signature(self, pod: Pod) -> Hashable:
        return pod.metadata.uid if pod.spec.resource_claims else None

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.spec.resource_claims or self._objects is None:
            return statuses.SUCCESS
        try:
            claims.of_pod(pod, self._known())
        except ClaimFault as fault:
            return statuses.unresolvable(str(fault))
        return statuses.SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        state.write(CLAIMS, ())
        if not pod.pod.spec.resource_claims:
            return NO_CLAIMS
        try:
            used = claims.of_pod(pod.pod, cluster.objects(claims.RESOURCE))
        except ClaimFault as fault:
            return PreFilterResult(status=statuses.unresolvable(str(fault)))
        if not used:
            return NO_CLAIMS
        state.write(CLAIMS, used)
        return PreFilterResult(status=statuses.unresolvable(REASON_NOT_SUPPORTED))

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        self._check(state)
        return np.zeros(len(rows), dtype=np.int64)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        self._check(state)
        return 0

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unresolvable(REASON_NOT_SUPPORTED)

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis) -> PostFilterResult:
        """Nothing was allocated for the pod, so nothing can be given back for another try."""
        return NEVER_BEGAN if state.find(CLAIMS) is None else NOTHING_TO_DEALLOCATE

    def reserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status:
        return statuses.SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> None:
        """Nothing was reserved."""

    def pre_bind_pre_flight(self, pod: PodInfo) -> bool:
        return False

    def pre_bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PreBindResult:
        return NOTHING_TO_WRITE

    def _known(self) -> Claims:
        """
        :raises PluginFault: if nobody said where claims are found; of a hint it counts as Queue
            (docs/rules.md, failing-hint-means-queue)
        """
        if self._objects is None:
            raise PluginFault("claims cannot be looked up here")
        return self._objects.objects(claims.RESOURCE)

    def _check(self, state: CycleState) -> None:
        """
        :raises PluginFault: if PreFilter is disabled and Filter is not
        """
        if state.find(CLAIMS) is None:
            raise PluginFault(NOT_FOUND)
