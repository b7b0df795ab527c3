"""What may help a pod whose volumes were too many for the nodes.

Source: kube-scheduler v1.36.2, plugins/nodevolumelimits/csi.go.
"""

from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects import claims, csi_migration
from podyard.objects.core import Pod
from podyard.objects.storage import CSINode, VolumeAttachment
from podyard.plugins import claim_added, claim_index, hinted
from podyard.plugins.claim_index import ReadOfVolumes
from podyard.plugins.hint_indexes import KeyIndex, same_for_all
from podyard.plugins.node_volume_limits.resolving import considered
from podyard.proto.actions import ActionType

A_CLAIM: Final = ""
"""Among the drivers of a pod's volumes: a claim, whose driver hints do not look up."""

after_claim_add: Final = partial(claim_added.after_claim_add, claims.uses)


def read_of(pod: Pod) -> ReadOfVolumes:
    """What the hints read of `pod`: its claims, and the drivers of its volumes."""
    names = tuple([use.name for use in claims.claims_of(pod)])
    return ReadOfVolumes(pod.metadata.namespace, names, tuple(_drivers(pod)))


def _drivers(pod: Pod) -> Iterator[str | tuple[str]]:
    """By volume: a driver's name, `A_CLAIM`, or in brackets why the volume cannot be translated."""
    for volume in pod.spec.volumes:
        plugin = csi_migration.plugin_of_inline(volume)
        if volume.persistent_volume_claim is not None:
            yield A_CLAIM
        elif plugin is not None:
            try:
                csi_migration.inline_handle(plugin, volume)
            except csi_migration.TranslationError as error:
                yield (str(error),)
            else:
                yield plugin.driver


def after_csi_node_update(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the node may have more volumes of some driver. A limit that is not told counts as 0, before
    and after.
    """
    before, node = hinted.updated(CSINode, old, new)
    known = _counts(before)
    name = node.metadata.name
    for driver, count in _counts(node).items():
        if count > known.get(driver, 0):
            return events.queue(f"{name} may have {count} volumes of {driver}, {known.get(driver, 0)} before")
    return events.skip(f"{name} may have no more volumes of any driver than before")


def _counts(node: CSINode) -> dict[str, int]:
    return {
        driver.name: (driver.allocatable.count or 0) if driver.allocatable is not None else 0
        for driver in node.spec.drivers
    }


def after_pod_delete(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the pod that is gone may have had a volume attached to a node, or was to have it."""
    gone = hinted.gone(Pod, old, new)
    name = claims.full_name(gone.metadata)
    if not hinted.place_of(gone):
        return events.skip(f"{name}, which is gone, was on no node")
    if any(map(considered, gone.spec.volumes)):
        return events.queue(f"{name}, which may have had volumes attached, is gone")
    return events.skip(f"{name}, which is gone, had no volumes that are attached")


def after_attachment_delete(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the pod has a claim, or an inline volume of the attachment's driver."""
    gone = hinted.gone(VolumeAttachment, old, new)
    where, attacher = gone.spec.node_name, gone.spec.attacher
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return events.queue(f"a volume of {attacher} is no longer attached to {where}; the pod has claims")
        plugin = csi_migration.plugin_of_inline(volume)
        if plugin is None:
            continue
        csi_migration.inline_handle(plugin, volume)  # one that cannot be translated is an error, which counts as Queue
        if plugin.driver == attacher:
            return events.queue(f"a volume of {attacher} is no longer attached to {where}; the pod has one of them")
    return events.skip(f"the pod has no volume that could be one of {attacher}")


def _index_by_drivers() -> KeyIndex[Any]:
    return KeyIndex(_known_drivers, lambda old, new: [old.spec.attacher] if isinstance(old, VolumeAttachment) else None)


def _known_drivers(read: Any) -> Iterable[Hashable] | None:
    """`None` if a volume may be of any driver, or the hint raises."""
    if not isinstance(read, ReadOfVolumes) or any(not one or isinstance(one, tuple) for one in read.others):
        return None
    return read.others


def registrations() -> tuple[Registration, ...]:
    """CSINodes, pods that are gone, new claims, attachments that are gone."""
    return (
        Registration(ClusterEvent(events.CSI_NODE, ActionType.ADD)),
        Registration(
            ClusterEvent(events.CSI_NODE, ActionType.UPDATE),
            after_csi_node_update,
            partial(same_for_all, after_csi_node_update),
        ),
        Registration(
            ClusterEvent(events.POD, ActionType.DELETE), after_pod_delete, partial(same_for_all, after_pod_delete)
        ),
        Registration(ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_add, claim_index.index),
        Registration(
            ClusterEvent(events.VOLUME_ATTACHMENT, ActionType.DELETE), after_attachment_delete, _index_by_drivers
        ),
    )
