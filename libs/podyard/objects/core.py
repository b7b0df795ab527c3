"""The kinds of the core group (`v1`). Source: api/core/v1/types.go.

Pod and Node have modules of their own and are named here too, so that a reader finds all core kinds in one
place.
"""

import msgspec

from podyard.objects.affinity import NodeSelector
from podyard.objects.meta import Condition, ObjectMeta, ObjectReference, ResourceList, View
from podyard.objects.node import Node
from podyard.objects.pod import Pod, PodTemplateSpec
from podyard.objects.volumes import (
    AwsElasticBlockStoreVolume,
    AzureDiskVolume,
    AzureFileVolume,
    CinderVolume,
    CsiVolume,
    GcePersistentDiskVolume,
    IscsiVolume,
    PersistentVolumeClaimSpec,
    PortworxVolume,
    RbdVolume,
    VsphereVolume,
)
from podyard.proto.message import Int64

__all__ = [
    "LocalVolume",
    "Namespace",
    "NamespaceSpec",
    "NamespaceStatus",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "Pod",
    "ReplicationController",
    "ReplicationControllerSpec",
    "ReplicationControllerStatus",
    "Service",
    "ServicePort",
    "ServiceSpec",
    "VolumeNodeAffinity",
]

_NO_META = ObjectMeta()


class NamespaceSpec(View, frozen=True, kw_only=True):
    """What keeps a namespace from being gone."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(View, frozen=True, kw_only=True):
    """Phase is Active or Terminating."""

    phase: str = ""


_NO_NAMESPACE_SPEC = NamespaceSpec()
_NO_NAMESPACE_STATUS = NamespaceStatus()


class Namespace(View, frozen=True, kw_only=True):
    """A namespace; its labels are what namespace selectors look at."""

    metadata: ObjectMeta = _NO_META
    spec: NamespaceSpec = _NO_NAMESPACE_SPEC
    status: NamespaceStatus = _NO_NAMESPACE_STATUS


class ServicePort(View, frozen=True, kw_only=True):
    """A port of a service; `target_port` is a number or the name of a container's port."""

    port: Int64
    name: str = ""
    protocol: str = ""
    target_port: Int64 | str | None = None
    node_port: Int64 = 0


class ServiceSpec(View, frozen=True, kw_only=True):
    """Which pods a service stands for."""

    type: str = ""
    selector: dict[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    external_ips: tuple[str, ...] = msgspec.field(default=(), name="externalIPs")
    allocate_load_balancer_node_ports: bool | None = None


_NO_SERVICE_SPEC = ServiceSpec()


class Service(View, frozen=True, kw_only=True):
    """A service: to scheduling, a set of pods that belong together."""

    metadata: ObjectMeta = _NO_META
    spec: ServiceSpec = _NO_SERVICE_SPEC


class VolumeNodeAffinity(View, frozen=True, kw_only=True):
    """From which nodes a volume can be reached."""

    required: NodeSelector | None = None


class LocalVolume(View, frozen=True, kw_only=True):
    """A disk of one node."""

    path: str = ""


class PersistentVolumeSpec(View, frozen=True, kw_only=True):
    """A volume, its size (`capacity["storage"]`), where it can be reached, and the claim it is bound to."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CsiVolume | None = None
    local: LocalVolume | None = None
    gce_persistent_disk: GcePersistentDiskVolume | None = None
    aws_elastic_block_store: AwsElasticBlockStoreVolume | None = None
    iscsi: IscsiVolume | None = None
    rbd: RbdVolume | None = None
    azure_disk: AzureDiskVolume | None = None
    azure_file: AzureFileVolume | None = None
    cinder: CinderVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None


class PersistentVolumeStatus(View, frozen=True, kw_only=True):
    """Phase is Pending, Available, Bound, Released or Failed."""

    phase: str = ""
    reason: str = ""
    message: str = ""


_NO_VOLUME_SPEC = PersistentVolumeSpec()
_NO_VOLUME_STATUS = PersistentVolumeStatus()


class PersistentVolume(View, frozen=True, kw_only=True):
    """A volume of the cluster."""

    metadata: ObjectMeta = _NO_META
    spec: PersistentVolumeSpec = _NO_VOLUME_SPEC
    status: PersistentVolumeStatus = _NO_VOLUME_STATUS


class PersistentVolumeClaimStatus(View, frozen=True, kw_only=True):
    """Phase is Pending, Bound or Lost; `capacity` is what the claim really got."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = {}
    allocated_resources: ResourceList = {}
    conditions: tuple[Condition, ...] = ()


_NO_CLAIM_SPEC = PersistentVolumeClaimSpec()
_NO_CLAIM_STATUS = PersistentVolumeClaimStatus()


class PersistentVolumeClaim(View, frozen=True, kw_only=True):
    """A namespace's claim for a volume."""

    metadata: ObjectMeta = _NO_META
    spec: PersistentVolumeClaimSpec = _NO_CLAIM_SPEC
    status: PersistentVolumeClaimStatus = _NO_CLAIM_STATUS


class ReplicationControllerSpec(View, frozen=True, kw_only=True):
    """How many pods of which template. The selector is a plain map; `replicas` None is 1."""

    replicas: Int64 | None = None
    min_ready_seconds: Int64 = 0
    selector: dict[str, str] = {}
    template: PodTemplateSpec | None = None


class ReplicationControllerStatus(View, frozen=True, kw_only=True):
    """How many pods there are."""

    replicas: Int64 = 0
    ready_replicas: Int64 = 0
    available_replicas: Int64 = 0
    observed_generation: Int64 = 0


_NO_CONTROLLER_SPEC = ReplicationControllerSpec()
_NO_CONTROLLER_STATUS = ReplicationControllerStatus()


class ReplicationController(View, frozen=True, kw_only=True):
    """The forerunner of ReplicaSet; to scheduling, a set of pods that belong together."""

    metadata: ObjectMeta = _NO_META
    spec: ReplicationControllerSpec = _NO_CONTROLLER_SPEC
    status: ReplicationControllerStatus = _NO_CONTROLLER_STATUS
