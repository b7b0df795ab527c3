"""In-tree volumes that a CSI driver serves today: which driver, by which handle, and reachable from where.

Sources: staging/src/k8s.io/csi-translation-lib/{translate.go,plugins/*.go}; which of them count as migrated:
pkg/scheduler/framework/plugins/nodevolumelimits/utils.go (isCSIMigrationOn) and volumebinding/binder.go
(isCSIMigrationOnForPlugin).
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from podyard.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podyard.objects.core import PersistentVolume
from podyard.objects.storage import CSINode
from podyard.objects.volumes import Volume

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of a CSINode: in-tree plugins, separated by commas, that CSI drivers serve on the node."""

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONE_SEPARATOR: Final = "__"
"""Between the zones of a volume that is in several."""

_EBS_ID: Final = re.compile(r"vol-[^/]*")


class TranslationError(ValueError):
    """An in-tree volume that the library cannot translate; the text says why, as the library does."""


class InTreePlugin(NamedTuple):
    """One in-tree plugin. `source`: the field that holds such a volume; `topology_key`: the driver's zone
    label, empty if it has none."""

    name: str
    driver: str
    source: str
    handle: Callable[[Any, PersistentVolume | None], str]
    topology_key: str = ""
    migrated: bool = True
    """Whether the scheduler counts its volumes as the driver's."""


def _ebs_handle(source: Any, volume: PersistentVolume | None) -> str:
    """Source: KubernetesVolumeIDToEBSVolumeID."""
    given: str = source.volume_id
    if not given.startswith("aws://"):
        return given
    found = urlsplit(given).path.strip("/")
    if _EBS_ID.fullmatch(found) is None:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({given})"
        )
    return found


def _gce_handle(source: Any, volume: PersistentVolume | None) -> str:
    """Source: gcePersistentDiskCSITranslator.TranslateInTreePVToCSI, and TranslateInTreeInlineVolumeToCSI for
    no volume."""
    labels = {} if volume is None else volume.metadata.labels
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(ZONE_SEPARATOR)
    if len(zones) > 1:
        return f"projects/UNSPECIFIED/regions/{_gce_region(zones)}/disks/{source.pd_name}"
    return f"projects/UNSPECIFIED/zones/{zones[0] or 'UNSPECIFIED'}/disks/{source.pd_name}"


def _gce_region(zones: list[str]) -> str:
    regions: set[str] = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            wanted = "zone in unexpected format, expected: {locale}-{region}-{zone}"
            raise TranslationError(f"failed to get region from zones: {wanted}, got: {zone}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{listed}]"
        )
    return regions.pop()


def _disk_uri(source: Any, volume: PersistentVolume | None) -> str:
    return source.disk_uri


def _share_name(source: Any, volume: PersistentVolume | None) -> str:
    return source.share_name


def _volume_path(source: Any, volume: PersistentVolume | None) -> str:
    return source.volume_path


def _volume_id(source: Any, volume: PersistentVolume | None) -> str:
    return source.volume_id


IN_TREE: Final = (
    InTreePlugin(
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        "aws_elastic_block_store",
        _ebs_handle,
        "topology.ebs.csi.aws.com/zone",
    ),
    InTreePlugin(
        "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gce_persistent_disk", _gce_handle, "topology.gke.io/zone"
    ),
    InTreePlugin(
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        "cinder",
        _volume_id,
        "topology.cinder.csi.openstack.org/zone",
    ),
    InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk", _disk_uri),
    InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com", "portworx_volume", _volume_id),
    InTreePlugin(
        "kubernetes.io/azure-file",
        "file.csi.azure.com",
        "azure_file",
        _share_name,
        migrated=False,
    ),
    InTreePlugin(
        "kubernetes.io/vsphere-volume",
        "csi.vsphere.vmware.com",
        "vsphere_volume",
        _volume_path,
        migrated=False,
    ),
)
"""What the library can translate. No volume has more than one source."""

BY_NAME: Final = {plugin.name: plugin for plugin in IN_TREE}


def plugin_of_inline(volume: Volume) -> InTreePlugin | None:
    """The plugin of an inline volume; `None` if it is none that could be translated. Source:
    IsInlineMigratable."""
    for plugin in IN_TREE:
        if getattr(volume, plugin.source) is not None:
            return plugin
    return None


def plugin_of_volume(volume: PersistentVolume) -> InTreePlugin | None:
    """The same for a PersistentVolume. Source: IsPVMigratable."""
    for plugin in IN_TREE:
        if getattr(volume.spec, plugin.source) is not None:
            return plugin
    return None


def inline_handle(plugin: InTreePlugin, volume: Volume) -> str:
    """The driver's name for an inline volume.

    :raises TranslationError: if it cannot be translated
    """
    return plugin.handle(getattr(volume, plugin.source), None)


def volume_handle(plugin: InTreePlugin, volume: PersistentVolume) -> str:
    """The driver's name for a PersistentVolume.

    :raises TranslationError: if it cannot be translated
    """
    return plugin.handle(getattr(volume.spec, plugin.source), volume)


def served_on(node: CSINode | None) -> frozenset[str]:
    """Names of the in-tree plugins that CSI drivers serve on a node. Source: isPluginMigratedToCSIOnNode."""
    listed = "" if node is None else node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return frozenset(listed.split(",")) if listed else frozenset()


def translated_affinity(plugin: InTreePlugin, volume: PersistentVolume) -> NodeSelector | None:
    """From which nodes a volume can be reached once its driver serves it: in the driver's own zone labels;
    `None`: from everywhere.

    Source: translateTopologyFromInTreeToCSI.
    """
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    if not plugin.topology_key:
        return required
    terms = () if required is None else required.node_selector_terms
    labels = volume.metadata.labels
    beta = _uses_beta(terms, labels)
    zone = BETA_ZONE if beta else ZONE
    if _mentions(terms, zone, with_values=True):
        terms = _renamed(terms, zone, plugin.topology_key)
    elif zones := sorted({part.strip() for part in labels.get(zone, "").split(ZONE_SEPARATOR)} - {""}):
        topology = NodeSelectorRequirement(key=plugin.topology_key, operator="In", values=tuple(zones))
        terms = tuple(_extended(term, topology) for term in terms or (NodeSelectorTerm(),))
    elif required is None:
        return None
    return NodeSelector(node_selector_terms=_renamed(terms, BETA_REGION, REGION) if beta else terms)


def _uses_beta(terms: tuple[NodeSelectorTerm, ...], labels: dict[str, str]) -> bool:
    """Whether the volume's topology is told in beta labels. Source: getTopologyLabel."""
    for key, beta in ((ZONE, False), (BETA_ZONE, True)):
        if _mentions(terms, key):
            return beta
    return ZONE not in labels and BETA_ZONE in labels


def _mentions(terms: tuple[NodeSelectorTerm, ...], key: str, *, with_values: bool = False) -> bool:
    return any(
        item.key == key and (item.values or not with_values) for term in terms for item in term.match_expressions
    )


def _renamed(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    replace = msgspec.structs.replace
    return tuple(
        replace(
            term,
            match_expressions=tuple(
                replace(item, key=new) if item.key == old else item for item in term.match_expressions
            ),
        )
        for term in terms
    )


def _extended(term: NodeSelectorTerm, more: NodeSelectorRequirement) -> NodeSelectorTerm:
    return msgspec.structs.replace(term, match_expressions=(*term.match_expressions, more))
