"""The kinds of `storage.k8s.io/v1`. Source: api/storage/v1/types.go."""

import msgspec

from podyard.objects.core import PersistentVolumeSpec
from podyard.objects.meta import LabelSelector, ObjectMeta, QuantityText, View
from podyard.proto.message import Int64

_NO_META = ObjectMeta()


class TopologySelectorLabelRequirement(View, frozen=True, kw_only=True):
    """A label that must have one of the values."""

    key: str
    values: tuple[str, ...] = ()


class TopologySelectorTerm(View, frozen=True, kw_only=True):
    """All must hold; an empty term matches nothing."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(View, frozen=True, kw_only=True):
    """How volumes are made. Binding mode is Immediate (also None) or WaitForFirstConsumer."""

    metadata: ObjectMeta = _NO_META
    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(View, frozen=True, kw_only=True):
    """How many volumes of a driver a node may have; None: no limit."""

    count: Int64 | None = None


class CSINodeDriver(View, frozen=True, kw_only=True):
    """A driver that runs on the node."""

    name: str
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(View, frozen=True, kw_only=True):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


_NO_NODE_SPEC = CSINodeSpec()


class CSINode(View, frozen=True, kw_only=True):
    """What CSI drivers say about the node of the same name."""

    metadata: ObjectMeta = _NO_META
    spec: CSINodeSpec = _NO_NODE_SPEC


class CSIDriverSpec(View, frozen=True, kw_only=True):
    """`storage_capacity`: scheduling looks at CSIStorageCapacity objects."""

    storage_capacity: bool = False
    attach_required: bool | None = None


_NO_DRIVER_SPEC = CSIDriverSpec()


class CSIDriver(View, frozen=True, kw_only=True):
    """A CSI driver."""

    metadata: ObjectMeta = _NO_META
    spec: CSIDriverSpec = _NO_DRIVER_SPEC


class CSIStorageCapacity(View, frozen=True, kw_only=True):
    """How much a driver can still make for a class on nodes of a topology; None: nothing is known of it."""

    metadata: ObjectMeta = _NO_META
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None


class VolumeAttachmentSource(View, frozen=True, kw_only=True):
    """Which volume: one of the two."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


_NO_SOURCE = VolumeAttachmentSource()


class VolumeAttachmentSpec(View, frozen=True, kw_only=True):
    """A volume on its way to a node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = _NO_SOURCE


class VolumeAttachmentStatus(View, frozen=True, kw_only=True):
    """Whether it has arrived."""

    attached: bool = False


_NO_ATTACHMENT_SPEC = VolumeAttachmentSpec()
_NO_ATTACHMENT_STATUS = VolumeAttachmentStatus()


class VolumeAttachment(View, frozen=True, kw_only=True):
    """A volume that is, or is to be, attached to a node."""

    metadata: ObjectMeta = _NO_META
    spec: VolumeAttachmentSpec = _NO_ATTACHMENT_SPEC
    status: VolumeAttachmentStatus = _NO_ATTACHMENT_STATUS
