"""Volumes of a pod, and the sources that plugins and the eviction manager look at. Source:
api/core/v1/types.go."""

import msgspec

from podyard.objects.meta import LabelSelector, ObjectMeta, QuantityText, ResourceList, View
from podyard.proto.message import Int64


class HostPathVolume(View, frozen=True, kw_only=True):
    """A path of the node."""

    path: str = ""


class EmptyDirVolume(View, frozen=True, kw_only=True):
    """Scratch space; medium Memory lives in memory, `size_limit` None means no limit."""

    medium: str = ""
    size_limit: QuantityText | None = None


class GcePersistentDiskVolume(View, frozen=True, kw_only=True):
    """A GCE disk: two pods may share it only if both read."""

    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStoreVolume(View, frozen=True, kw_only=True):
    """An EBS volume: two pods may never share it."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class IscsiVolume(View, frozen=True, kw_only=True):
    """An iSCSI target: two pods may share it only if both read."""

    iqn: str = ""
    target_portal: str = ""
    lun: Int64 = 0
    read_only: bool = False


class RbdVolume(View, frozen=True, kw_only=True):
    """A Ceph image: two pods may share it only if both read."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class AzureDiskVolume(View, frozen=True, kw_only=True):
    """An Azure disk."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    read_only: bool | None = None


class AzureFileVolume(View, frozen=True, kw_only=True):
    """A share of Azure Files."""

    share_name: str = ""


class CinderVolume(View, frozen=True, kw_only=True):
    """A volume of OpenStack Cinder."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class VsphereVolume(View, frozen=True, kw_only=True):
    """A virtual disk of vSphere."""

    volume_path: str = ""


class PortworxVolume(View, frozen=True, kw_only=True):
    """A volume of Portworx."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class NamedVolume(View, frozen=True, kw_only=True):
    """A source that names one object of the pod's namespace (configMap)."""

    name: str = ""


class SecretVolume(View, frozen=True, kw_only=True):
    """A secret of the pod's namespace."""

    secret_name: str = ""


class ClaimVolume(View, frozen=True, kw_only=True):
    """A PersistentVolumeClaim of the pod's namespace."""

    claim_name: str
    read_only: bool = False


class CsiVolume(View, frozen=True, kw_only=True):
    """An inline volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class ImageVolume(View, frozen=True, kw_only=True):
    """An image mounted as a volume."""

    reference: str = ""
    pull_policy: str = ""


class GitRepoVolume(View, frozen=True, kw_only=True):
    """A clone; counts as local storage."""

    repository: str = ""


class DownwardApiVolume(View, frozen=True, kw_only=True):
    """Fields of the pod as files."""


class ProjectedVolume(View, frozen=True, kw_only=True):
    """Several sources in one directory."""


class VolumeResourceRequirements(View, frozen=True, kw_only=True):
    """How large a claim is to be: resource `storage`."""

    requests: ResourceList = {}
    limits: ResourceList = {}


_NO_RESOURCES = VolumeResourceRequirements()
_NO_META = ObjectMeta()


class PersistentVolumeClaimSpec(View, frozen=True, kw_only=True):
    """What a claim asks for; `storage_class_name` None means the default class, empty means no class."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements = _NO_RESOURCES
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""
    volume_attributes_class_name: str | None = None


_NO_CLAIM = PersistentVolumeClaimSpec()


class PersistentVolumeClaimTemplate(View, frozen=True, kw_only=True):
    """The claim that an ephemeral volume makes, called `<pod>-<volume>`."""

    metadata: ObjectMeta = _NO_META
    spec: PersistentVolumeClaimSpec = _NO_CLAIM


class EphemeralVolume(View, frozen=True, kw_only=True):
    """A volume with a claim of its own that lives as long as the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class Volume(View, frozen=True, kw_only=True):
    """A volume of a pod: at most one source is set."""

    name: str
    host_path: HostPathVolume | None = None
    empty_dir: EmptyDirVolume | None = None
    gce_persistent_disk: GcePersistentDiskVolume | None = None
    aws_elastic_block_store: AwsElasticBlockStoreVolume | None = None
    iscsi: IscsiVolume | None = None
    rbd: RbdVolume | None = None
    azure_disk: AzureDiskVolume | None = None
    azure_file: AzureFileVolume | None = None
    cinder: CinderVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    config_map: NamedVolume | None = None
    secret: SecretVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    csi: CsiVolume | None = None
    image: ImageVolume | None = None
    git_repo: GitRepoVolume | None = None
    downward_api: DownwardApiVolume | None = msgspec.field(default=None, name="downwardAPI")
    projected: ProjectedVolume | None = None
