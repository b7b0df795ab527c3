"""Source: kube-scheduler v1.36.2,
pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go."""

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import ClassVar, Final, NamedTuple

import numpy as np

from podyard.cluster.node_table import PlacedPod
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import Registration
from podyard.framework.interfaces import Detail, PreFilterResult, Rows, Scope, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginFault, Status
from podyard.objects import claims
from podyard.objects.core import Pod
from podyard.plugins.volume_restrictions import hints
from podyard.plugins.volume_restrictions.claim_users import ClaimUsers
from podyard.plugins.volume_restrictions.disks import DisksInUse, disks_of, first_clash

NAME: Final = "VolumeRestrictions"
REASON_DISK: Final = "node(s) had no available disk"
REASON_CLAIM: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
NO_DISK: Final = 1
CLAIM_IN_USE: Final = 2


class OnePodClaims(NamedTuple):
    """The pod's claims that are for one pod only, and how many times others use them."""

    names: frozenset[str]
    conflicts: int

    def counting(self, pod: PlacedPod, sign: int) -> "OnePodClaims":
        """With the volumes of another pod counted or (-1) not counted any more.

        Goes by the claim's name alone, so a pod of another namespace counts too, as in the reference (quirk
        `rwop-same-claim-name-other-namespace` of the conformance data).
        """
        uses = sum(name in self.names for name in claims.named_claims(pod.stored))
        return OnePodClaims(self.names, self.conflicts + sign * uses)


CLAIMS: Final = StateKey[OnePodClaims]("PreFilterVolumeRestrictions")


def one_pod_claims(pod: PodInfo, cluster: Snapshot) -> frozenset[str]:
    """The pod's claims of access mode ReadWriteOncePod.

    :raises LookupError: with the reason, if a claim does not exist
    """
    found: set[str] = set()
    for name in claims.named_claims(pod.pod):
        claim = cluster.objects(claims.CLAIMS).get((pod.namespace, name))
        if claim is None:
            raise LookupError(claims.claim_not_found(name))
        if claims.READ_WRITE_ONCE_POD in claim.spec.access_modes:
            found.add(name)
    return frozenset(found)


def _claims(state: CycleState) -> OnePodClaims:
    found = state.find(CLAIMS)
    if found is None:
        raise PluginFault(f'cannot read "{CLAIMS.name}" from cycleState')
    return found


MOST_PODS: Final = 10_000
"""Placed pods that are looked through for the one that uses a claim; semi-arbitrary."""


class VolumeRestrictions:
    """PreFilter, Filter."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "row"
    signs_few_templates: ClassVar[bool] = True

    def signature(self, pod: PodInfo) -> Hashable:
        if not pod.pod.spec.volumes:
            return None
        named = tuple(claims.named_claims(pod.pod))
        return (pod.namespace if named else ""), named, disks_of(pod.pod)

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        if not pod.pod.spec.volumes:
            return None
        named = tuple(claims.named_claims(pod.pod))
        if not named:
            return None
        users = cluster.nodes.index(ClaimUsers)
        return cluster.version(claims.CLAIMS), tuple([users.used(pod.namespace, name) for name in named])

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return hints.read_of(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        if not pod.pod.spec.volumes:
            return PreFilterResult(status=statuses.SKIP)
        try:
            names = one_pod_claims(pod, cluster)
        except LookupError as missing:
            return PreFilterResult(status=statuses.unresolvable(str(missing)))
        users = cluster.nodes.index(ClaimUsers)
        found = OnePodClaims(names, sum(users.used(pod.namespace, name) for name in names))
        if not found.conflicts and not disks_of(pod.pod):
            return PreFilterResult(status=statuses.SKIP)
        state.write(CLAIMS, found)
        return PreFilterResult()

    def add_pod(self, state: CycleState, pod: PodInfo, added: PlacedPod, row: int, cluster: Snapshot) -> Status:
        return self._count(state, added, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PlacedPod, row: int, cluster: Snapshot) -> Status:
        return self._count(state, removed, -1)

    def _count(self, state: CycleState, other: PlacedPod, sign: int) -> Status:
        state.write(CLAIMS, _claims(state).counting(other, sign))
        return statuses.SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        disks = disks_of(pod.pod)
        taken = cluster.nodes.index(DisksInUse).rows_without(disks) if disks else set[int]()
        codes = np.zeros(len(rows), dtype=np.int64)
        if taken:
            codes[np.isin(rows, list(taken))] = NO_DISK
        if not codes.all() and _claims(state).conflicts > 0:
            codes[codes == 0] = CLAIM_IN_USE
        return codes

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        disks = disks_of(pod.pod)
        if disks:
            mates = cluster.nodes.pods_on(cluster.nodes.names[row]).values()
            if first_clash(disks, [mate.stored for mate in mates if mate.stored.spec.volumes]) is not None:
                return NO_DISK
        return CLAIM_IN_USE if _claims(state).conflicts > 0 else 0

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        if reason != REASON_CLAIM:
            return None
        names = _claims(state).names
        for other in islice(cluster.nodes.all_placed.values(), MOST_PODS):
            shared = names.intersection(claims.named_claims(other.stored))
            if shared:
                node = "" if other.bound is None else f" on {other.bound.node}"
                return Detail(
                    f"claim {min(shared)} (ReadWriteOncePod) is in use by {other.namespace}/{other.name}{node}"
                )
        return None

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unschedulable(REASON_DISK if code == NO_DISK else REASON_CLAIM)
