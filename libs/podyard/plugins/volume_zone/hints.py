"""What may help a pod whose bound volumes are in other zones than the nodes, or are not known.

Source: kube-scheduler v1.36.2, plugins/volumezone/volume_zone.go.
"""

from functools import partial

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects import claims
from podyard.objects.core import PersistentVolume, PersistentVolumeClaim, Pod
from podyard.objects.storage import StorageClass
from podyard.plugins import claim_index, hinted
from podyard.plugins.claim_index import ReadOfVolumes
from podyard.plugins.hint_indexes import same_for_all
from podyard.plugins.volume_zone.topology import topologies_of
from podyard.proto.actions import ActionType


def read_of(pod: Pod) -> ReadOfVolumes:
    """What the hints read of `pod`: the claims that it names."""
    return ReadOfVolumes(pod.metadata.namespace, tuple(claims.named_claims(pod)))


def after_class_add(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if claims of the new class may wait for their pod."""
    _, added = hinted.present(StorageClass, None, new)
    name = added.metadata.name
    if added.volume_binding_mode != claims.WAIT_FOR_FIRST_CONSUMER:
        return events.skip(f"volumes of the new class {name} do not wait for the first pod")
    return events.queue(f"volumes of the new class {name} wait for the first pod")


def after_claim_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if it is the pod's claim."""
    _, claim = hinted.present(PersistentVolumeClaim, old, new)
    name = claim.metadata.name
    if not claims.names(pod, claim):
        return events.skip(f"the pod does not use the claim {claims.full_name(claim.metadata)}")
    return events.queue(f"the pod's claim {name} is new or changed")


def after_volume_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the volume is new, or names other zones or regions."""
    before, volume = hinted.present(PersistentVolume, old, new)
    name = volume.metadata.name
    if before is None:
        return events.queue(f"the volume {name} is new")
    if topologies_of(before) == topologies_of(volume):
        return events.skip(f"the volume {name} is in the same zones and regions as before")
    return events.queue(f"the volume {name} is in other zones or regions now")


def registrations() -> tuple[Registration, ...]:
    """New classes, nodes with other labels, claims, volumes."""
    changed = ActionType.ADD | ActionType.UPDATE
    return (
        Registration(
            ClusterEvent(events.STORAGE_CLASS, ActionType.ADD), after_class_add, partial(same_for_all, after_class_add)
        ),
        Registration(ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
        Registration(ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, changed), after_claim_change, claim_index.index),
        Registration(
            ClusterEvent(events.PERSISTENT_VOLUME, changed),
            after_volume_change,
            partial(same_for_all, after_volume_change),
        ),
    )
