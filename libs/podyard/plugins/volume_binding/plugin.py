"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/volumebinding/volume_binding.go.

It takes part in scoring and never scores: the feature gate StorageCapacityScoring is off by default in v1.36.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

from podyard.cluster.keys import ObjectKey
from podyard.framework import details
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import Registration
from podyard.framework.interfaces import Detail, ObjectWrite, PreBindResult, PreFilterResult, Rows, Scope, Verdicts
from podyard.framework.one_at_a_time import NoPreference
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginFault, Status
from podyard.framework.volume_choices import CHOSEN
from podyard.objects import claims
from podyard.objects.core import Pod
from podyard.objects.meta import ObjectMeta, ObjectReference
from podyard.plugins.volume_binding import hints, pod_claims, provisioned, writing
from podyard.plugins.volume_binding.args import Args
from podyard.plugins.volume_binding.books import CSI_NODES, Promises, VolumeBooks
from podyard.plugins.volume_binding.claims_on_nodes import (
    FAILED,
    NO_ROOM,
    NOTHING_TO_BIND,
    OUT_OF_REACH,
    VOLUME_MISSING,
    Choice,
    ClaimsOnNodes,
)
from podyard.plugins.volume_binding.provisioned import AWAITED, ProvisionFault
from podyard.plugins.volume_binding.provisioning import CAPACITIES, DRIVERS
from podyard.proto.placement import VolumeChoice

NAME: Final = "VolumeBinding"
REASONS: Final = {
    OUT_OF_REACH: "node(s) didn't match PersistentVolume's node affinity",
    NOTHING_TO_BIND: "node(s) didn't find available persistent volumes to bind",
    NO_ROOM: "node(s) did not have enough free storage",
    VOLUME_MISSING: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
NOT_TO_BE_HAD: Final = "the volumes that were chosen for the pod's claims are not to be had any more"

ON_NODES: Final = StateKey[ClaimsOnNodes]("VolumeBinding")


def _on_nodes(state: CycleState) -> ClaimsOnNodes:
    found = state.find(ON_NODES)
    if found is None:
        raise PluginFault("not found")
    return found


class VolumeBinding(NoPreference):
    """PreFilter, Filter, PreScore, Score, Reserve, PreBind."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "row"
    signs_few_templates: ClassVar[bool] = True

    def __init__(self, args: Args) -> None:
        self.args = args

    def signature(self, pod: PodInfo) -> Hashable:
        if not claims.has_claims(pod.pod):
            return None
        uses = tuple(claims.claims_of(pod.pod))
        return pod.namespace, uses, any(use.ephemeral for use in uses) and (pod.name, pod.uid)

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        if not claims.has_claims(pod.pod):
            return None
        version = cluster.version
        return (
            version(claims.CLAIMS),
            version(claims.VOLUMES),
            version(claims.CLASSES),
            version(CSI_NODES),
            version(DRIVERS),
            version(CAPACITIES),
            cluster.nodes.index(VolumeBooks).version,
        )

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return hints.read_of(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        if not claims.has_claims(pod.pod):
            return PreFilterResult(status=statuses.SKIP)
        try:
            state.write(ON_NODES, ClaimsOnNodes(pod_claims.claims_of(pod, cluster), cluster))
        except pod_claims.ClaimFault as fault:
            return PreFilterResult(status=statuses.unresolvable(str(fault)))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return _on_nodes(state).codes(rows)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return _on_nodes(state).code(row)

    def verdict(self, state: CycleState, code: int) -> Status:
        if code >= FAILED:
            return statuses.error(_on_nodes(state).failures[code - FAILED])
        return statuses.unresolvable(*(reason for flag, reason in REASONS.items() if code & flag))

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        if reason == pod_claims.REASON_IMMEDIATE:
            return Detail(details.listed(pod_claims.unbound(pod, cluster)))
        return _on_nodes(state).detail(int(rows[0])) if len(rows) else None

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        return statuses.SKIP

    def reserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status:
        """Promise the pod what its unbound claims get on the node, and tell the decision."""
        on_nodes = state.find(ON_NODES)
        if on_nodes is None or not on_nodes.claims.delayed:
            return statuses.SUCCESS
        choice = on_nodes.choice(cluster.nodes.row_of.get(node_name, -1))
        if choice is None:
            return statuses.error(f'no pod volumes found for node "{node_name}"')
        state.write(CHOSEN, _told(choice))
        cluster.nodes.index(VolumeBooks).promise(pod.uid, _promises(choice, node_name))
        return statuses.SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> None:
        cluster.nodes.index(VolumeBooks).forget(pod.uid)

    def pre_bind_pre_flight(self, pod: PodInfo) -> bool:
        return claims.has_claims(pod.pod)

    def pre_bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PreBindResult:
        """Bind the volumes that the decision names, in the same commit; what it does not name is chosen here.

        UNSCHEDULABLE: they are not to be had any more by what the binder knows. WAIT: some are to be made;
        their claims get the node first. ERROR: they are not made after all.
        """
        if not claims.has_claims(pod.pod):
            return PreBindResult()
        what = state.find(AWAITED)
        if what is not None:
            try:
                names, volumes = provisioned.missing(what, node_name, cluster)
            except ProvisionFault as fault:
                return PreBindResult(status=statuses.error(f"binding volumes: {fault}"))
            if names:
                return self._wait(names, (*what.keys(), *volumes))
        return self._bind(state, pod, cluster, node_name)

    def _bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PreBindResult:
        try:
            on_nodes = ClaimsOnNodes(pod_claims.claims_of(pod, cluster), cluster)
        except pod_claims.ClaimFault as fault:
            return PreBindResult(status=statuses.unschedulable(str(fault)))
        books = cluster.nodes.index(VolumeBooks)
        if not on_nodes.claims.delayed:
            # promised by a decision that came to nothing: its claims got other volumes since
            books.forget(pod.uid)
            return PreBindResult()
        told = state.find(CHOSEN)
        decided = None if told is None else {one.claim: one.volume for one in told}
        choice = on_nodes.choice(cluster.nodes.row_of.get(node_name, -1), decided)
        if choice is None:
            return PreBindResult(status=statuses.unschedulable(NOT_TO_BE_HAD))
        books.promise(pod.uid, _promises(choice, node_name))
        if not choice.made:
            return PreBindResult(writes=_writes(choice, cluster))
        what = provisioned.awaited(pod.namespace, choice)
        state.write(AWAITED, what)
        marks = [
            writing.select_node(claim, node_name, cluster) for claim in provisioned.unmarked(choice.made, node_name)
        ]
        return self._wait([name for name, _ in what.made], what.keys(), marks)

    def _wait(
        self, names: Sequence[str], waits_for: tuple[ObjectKey, ...], writes: Sequence[ObjectWrite] = ()
    ) -> PreBindResult:
        listed = ", ".join(f'"{name}"' for name in names)
        return PreBindResult(
            status=statuses.wait(f"binding volumes: waiting for the volumes of PVC {listed} to be made"),
            writes=tuple(writes),
            timeout_s=float(self.args.bind_timeout_seconds),
            waits_for=waits_for,
        )


def _told(choice: Choice) -> tuple[VolumeChoice, ...]:
    bound = [VolumeChoice(claim=claim.metadata.name, volume=volume.metadata.name) for claim, volume in choice.volumes]
    return (*bound, *(VolumeChoice(claim=claim.metadata.name, volume="") for claim in choice.made))


def _promises(choice: Choice, node_name: str) -> Promises:
    return Promises(
        {volume.metadata.name: _reference(claim.metadata) for claim, volume in choice.volumes},
        {(claim.metadata.namespace, claim.metadata.name): node_name for claim in choice.made},
    )


def _reference(metadata: ObjectMeta) -> ObjectReference:
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )


def _writes(choice: Choice, cluster: Snapshot) -> tuple[ObjectWrite, ...]:
    return tuple(write for claim, volume in choice.volumes for write in writing.bind(claim, volume, cluster))
