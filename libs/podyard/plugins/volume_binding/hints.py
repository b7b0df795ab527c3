"""What may help a pod whose claims found no volume, or whose volumes no node reaches.

Source: kube-scheduler v1.36.2, plugins/volumebinding/volume_binding.go.
"""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects import claims, csi_migration
from podyard.objects.core import PersistentVolumeClaim, Pod
from podyard.objects.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from podyard.plugins import claim_index, hinted
from podyard.plugins.claim_index import ReadOfVolumes
from podyard.plugins.hint_indexes import KeyIndex, same_for_all
from podyard.plugins.volume_binding.provisioning import volume_limit
from podyard.proto.actions import ActionType


def read_of(pod: Pod) -> ReadOfVolumes:
    """What the hints read of `pod`: its claims, and the drivers of its inline volumes."""
    drivers = tuple([volume.csi.driver for volume in pod.spec.volumes if volume.csi is not None])
    return ReadOfVolumes(pod.metadata.namespace, tuple([use.name for use in claims.claims_of(pod)]), drivers)


def after_class_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the class is new, or allows other nodes."""
    before, after = hinted.present(StorageClass, old, new)
    name = after.metadata.name
    if before is None:
        return events.queue(f"the storage class {name} is new")
    if before.allowed_topologies != after.allowed_topologies:
        return events.queue(f"the storage class {name} allows other nodes now")
    return events.skip(f"the storage class {name} allows the same nodes as before")


def after_claim_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if it is the pod's claim."""
    _, claim = hinted.present(PersistentVolumeClaim, old, new)
    full_name = claims.full_name(claim.metadata)
    if claim.metadata.namespace != pod.metadata.namespace:
        return events.skip(f"the claim {full_name} is of another namespace")
    if all(use.name != claim.metadata.name for use in claims.claims_of(pod)):
        return events.skip(f"the pod does not use the claim {full_name}")
    return events.queue(f"the pod's claim {claim.metadata.name} is new or changed")


def after_csi_node_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if it is new, or CSI drivers serve other in-tree volumes on the node."""
    before, after = hinted.present(CSINode, old, new)
    name, key = after.metadata.name, csi_migration.MIGRATED_PLUGINS
    if before is None:
        return events.queue(f"the CSINode {name} is new")
    if before.metadata.annotations.get(key, "") != after.metadata.annotations.get(key, ""):
        return events.queue(f"CSI drivers serve other in-tree volumes on {name} now")
    return events.skip(f"CSI drivers serve the same in-tree volumes on {name} as before")


def after_driver_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the room of a driver of the pod's inline volumes is not looked at any more."""
    before, after = hinted.updated(CSIDriver, old, new)
    name = after.metadata.name
    if all(volume.csi is None or volume.csi.driver != name for volume in pod.spec.volumes):
        return events.skip(f"the pod has no inline volume of {name}")
    if before.spec.storage_capacity and not after.spec.storage_capacity:
        return events.queue(f"the room that {name} has is not looked at any more")
    return events.skip(f"the room that {name} has is looked at, or not, as before")


def after_capacity_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if it is new, or larger volumes can be made."""
    before, after = hinted.present(CSIStorageCapacity, old, new)
    full_name = claims.full_name(after.metadata)
    if before is None:
        return events.queue(f"the storage capacity {full_name} is new")
    was, limit = volume_limit(before), volume_limit(after)
    if limit is not None and (was is None or limit > was):
        return events.queue(f"volumes of up to {limit} bytes can be made by {full_name}, {was or 0} before")
    return events.skip(f"no larger volumes can be made by {full_name} than before")


def _index_by_drivers() -> KeyIndex[Any]:
    def drivers(read: Any) -> Iterable[Hashable] | None:
        return read.others if isinstance(read, ReadOfVolumes) else None

    return KeyIndex(drivers, lambda old, new: [new.metadata.name] if isinstance(new, CSIDriver) else None)


def registrations() -> tuple[Registration, ...]:
    """Classes, claims, volumes, nodes with other labels, CSINodes, drivers, room."""
    changed = ActionType.ADD | ActionType.UPDATE
    return (
        Registration(
            ClusterEvent(events.STORAGE_CLASS, changed), after_class_change, partial(same_for_all, after_class_change)
        ),
        Registration(ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, changed), after_claim_change, claim_index.index),
        Registration(ClusterEvent(events.PERSISTENT_VOLUME, changed)),
        Registration(ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
        Registration(
            ClusterEvent(events.CSI_NODE, changed), after_csi_node_change, partial(same_for_all, after_csi_node_change)
        ),
        Registration(ClusterEvent(events.CSI_DRIVER, ActionType.UPDATE), after_driver_change, _index_by_drivers),
        Registration(
            ClusterEvent(events.CSI_STORAGE_CAPACITY, changed),
            after_capacity_change,
            partial(same_for_all, after_capacity_change),
        ),
    )
