"""What may help a pod whose disk or claim another pod had.

Source: kube-scheduler v1.36.2, plugins/volumerestrictions/volume_restrictions.go.
"""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any, Final, cast

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects import claims
from podyard.objects.core import Pod
from podyard.plugins import claim_added, claim_index, hinted
from podyard.plugins.claim_index import ReadOfVolumes
from podyard.plugins.hint_indexes import KeyIndex
from podyard.plugins.volume_restrictions.disks import disks_of, first_clash
from podyard.proto.actions import ActionType

after_claim_add: Final = partial(claim_added.after_claim_add, claims.names)


def read_of(pod: Pod) -> ReadOfVolumes:
    """What the hints read of `pod`: the claims that it names, and its disks."""
    return ReadOfVolumes(pod.metadata.namespace, tuple(claims.named_claims(pod)), disks_of(pod))


def after_pod_delete(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the pod that is gone had a disk in the way, or a claim of the same name."""
    gone = hinted.gone(Pod, old, new)
    name = claims.full_name(gone.metadata)
    if gone.metadata.namespace != pod.metadata.namespace:
        return events.skip(f"{name}, which is gone, is of another namespace")
    disk = first_clash(disks_of(pod), (gone,))
    if disk is not None:
        return events.queue(f"{name}, which used the {' '.join(disk.id)}, is gone")
    wanted = frozenset(claims.named_claims(pod))
    for claim in claims.named_claims(gone):
        if claim in wanted:
            return events.queue(f"{name}, which used the claim {claim}, is gone")
    return events.skip(f"{name}, which is gone, used none of the pod's disks and claims")


def _index_by_volumes() -> KeyIndex[Any]:
    """By claims and disks, of pods of the same namespace."""
    return KeyIndex(_volumes_of, lambda old, new: _volumes_of(read_of(old)) if isinstance(old, Pod) else None)


def _volumes_of(read: Any) -> Iterable[Hashable] | None:
    if not isinstance(read, ReadOfVolumes):
        return None
    disks = cast("Iterable[Any]", read.others)
    return [(read.namespace, name) for name in read.claims] + [(read.namespace, disk.id) for disk in disks]


def registrations() -> tuple[Registration, ...]:
    """Pods that are gone, new nodes, new claims."""
    return (
        Registration(ClusterEvent(events.POD, ActionType.DELETE), after_pod_delete, _index_by_volumes),
        Registration(ClusterEvent(events.NODE, ActionType.ADD)),
        Registration(ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_add, claim_index.index),
    )
