"""What may help a pod whose disk or claim another pod had.

Source: kube-scheduler v1.36.2, plugins/volumerestrictions/volume_restrictions.go.
"""

from podyard.framework import events, hinted
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects import claims
from podyard.objects.core import PersistentVolumeClaim, Pod
from podyard.plugins.volume_restrictions.disks import disks_of, first_clash
from podyard.proto.actions import ActionType


def after_pod_delete(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the pod that is gone had a disk in the way, or a claim of the same name."""
    gone, _ = hinted.changed(Pod, old, new)
    if gone is None:
        raise hinted.UnexpectedObjectError(Pod.__name__, None)
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


def after_claim_add(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the pod's claim is there now."""
    _, claim = hinted.present(PersistentVolumeClaim, old, new)
    name = claim.metadata.name
    if claim.metadata.namespace != pod.metadata.namespace or name not in claims.named_claims(pod):
        return events.skip(f"the pod does not use the new claim {claims.full_name(claim.metadata)}")
    return events.queue(f"the pod's claim {name} is there now")


def registrations() -> tuple[Registration, ...]:
    """Pods that are gone, new nodes, new claims."""
    return (
        Registration(ClusterEvent(events.POD, ActionType.DELETE), after_pod_delete),
        Registration(ClusterEvent(events.NODE, ActionType.ADD)),
        Registration(ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_add),
    )
