"""Which volume of which CSI driver a volume of a pod is.

Source: kube-scheduler v1.36.2, plugins/nodevolumelimits/csi.go (filterAttachableVolumes, getCSIDriverInfo,
getNodeVolumeAttachmentInfo).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginFault
from podyard.objects import claims, csi_migration
from podyard.objects.core import PersistentVolume, PersistentVolumeClaim
from podyard.objects.csi_migration import InTreePlugin, TranslationError
from podyard.objects.pod import Pod
from podyard.objects.storage import StorageClass, VolumeAttachment
from podyard.objects.volumes import Volume

ATTACHMENTS: Final = "volumeattachments"


class Attachable(NamedTuple):
    """A volume as its driver knows it: pods that use the same one need it attached once."""

    driver: str
    handle: str


class ClaimMissingError(LookupError):
    """A claim of the pod does not exist; the text is the reason."""


def considered(volume: Volume) -> bool:
    """Whether a volume of a pod may have to be attached."""
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or csi_migration.plugin_of_inline(volume) is not None
    )


class Resolver:
    """Looks volumes up in the objects of a snapshot as they are now."""

    __slots__ = ("_claims", "_classes", "_volumes")

    def __init__(self, cluster: Snapshot) -> None:
        self._claims = cluster.objects(claims.CLAIMS)
        self._volumes = cluster.objects(claims.VOLUMES)
        self._classes = cluster.objects(claims.CLASSES)

    def of_pod(self, pod: Pod, *, csi_node: bool, wanted: bool) -> set[Attachable]:
        """Volumes that a pod needs attached to its node.

        :param csi_node: whether the node has a CSINode: without one no in-tree volume counts as a driver's
        :param wanted: the pod is to be placed, so that all its claims must be there; those of placed pods may
            be gone
        :raises ClaimMissingError: if a claim of a wanted pod is not there
        :raises PluginFault: if the claim of an ephemeral volume is not the pod's own, or a volume has no name
            that makes sense
        """
        found: set[Attachable] = set()
        for volume in pod.spec.volumes:
            use = claims.claim_of(pod, volume)
            if use is None:
                attachable = _of_inline(volume, csi_node)
            else:
                claim = self._claim(pod, use, wanted)
                attachable = None if claim is None else self.of_claim(claim, csi_node)
            if attachable is not None:
                found.add(attachable)
        return found

    def of_claim(self, claim: PersistentVolumeClaim, csi_node: bool) -> Attachable | None:
        """The volume a claim is bound to, or will be; `None` if it is no driver's, or nothing is known of
        it."""
        bound = claim.spec.volume_name
        volume: PersistentVolume | None = self._volumes.get(("", bound)) if bound else None
        if volume is None:
            return self._of_class(claim, csi_node)
        csi = volume.spec.csi
        if csi is not None:
            return Attachable(csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
        plugin = csi_migration.plugin_of_volume(volume)
        if plugin is None or not _counted(plugin, csi_node):
            return None
        try:
            handle = csi_migration.volume_handle(plugin, volume)
        except TranslationError:
            return None
        return Attachable(plugin.driver, handle) if handle else None

    def attached(self, attachments: Iterable[VolumeAttachment]) -> set[Attachable]:
        """Volumes that attachments name; those of inline volumes, and of volumes that no driver made, do not
        count."""
        found: set[Attachable] = set()
        for attachment in attachments:
            name = attachment.spec.source.persistent_volume_name
            if not attachment.spec.attacher or name is None:
                continue
            volume: PersistentVolume | None = self._volumes.get(("", name))
            if volume is not None and volume.spec.csi is not None:
                found.add(Attachable(attachment.spec.attacher, volume.spec.csi.volume_handle))
        return found

    def _claim(self, pod: Pod, use: claims.ClaimUse, wanted: bool) -> PersistentVolumeClaim | None:
        if not use.name:
            raise PluginFault("PersistentVolumeClaim had no name")
        namespace = pod.metadata.namespace
        claim: PersistentVolumeClaim | None = self._claims.get((namespace, use.name))
        if claim is None:
            if wanted:
                raise ClaimMissingError(f"looking up PVC {namespace}/{use.name}: {claims.claim_not_found(use.name)}")
            return None
        if use.ephemeral and (why := claims.foreign(pod, claim)):
            raise PluginFault(why)
        return claim

    def _of_class(self, claim: PersistentVolumeClaim, csi_node: bool) -> Attachable | None:
        """A volume that is not made yet, under a name of its own: it counts as another one than the volume it
        will be."""
        name = claims.class_of_claim(claim)
        storage_class: StorageClass | None = self._classes.get(("", name)) if name else None
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        plugin = csi_migration.BY_NAME.get(driver)
        if plugin is not None:
            if not _counted(plugin, csi_node):
                return None
            driver = plugin.driver
        return Attachable(driver, f" of claim {claims.full_name(claim.metadata)}") if driver else None


def _of_inline(volume: Volume, csi_node: bool) -> Attachable | None:
    plugin = csi_migration.plugin_of_inline(volume)
    if plugin is None or not _counted(plugin, csi_node):
        return None
    try:
        return Attachable(plugin.driver, csi_migration.inline_handle(plugin, volume))
    except TranslationError as error:
        raise PluginFault(f"converting volume({volume.name}) from inline to csi: {error}") from error


def _counted(plugin: InTreePlugin, csi_node: bool) -> bool:
    """Source: nodevolumelimits/utils.go, isCSIMigrationOn."""
    return csi_node and plugin.migrated
