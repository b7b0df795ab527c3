"""Nodes. Source: api/core/v1/types.go."""

import msgspec

from podyard.objects.affinity import Taint
from podyard.objects.meta import Condition, ObjectMeta, ResourceList, View
from podyard.proto.message import Int64


class NodeSpec(View, frozen=True, kw_only=True):
    """What the node is to be. `unschedulable` is what `kubectl cordon` sets."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")
    pod_cidr: str = msgspec.field(default="", name="podCIDR")


class NodeAddress(View, frozen=True, kw_only=True):
    """An address; type is InternalIP, ExternalIP, Hostname, ..."""

    type: str
    address: str


class ContainerImage(View, frozen=True, kw_only=True):
    """An image the node has, by all its names; `size_bytes` is its size on disk."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeSystemInfo(View, frozen=True, kw_only=True):
    """What runs on the node."""

    architecture: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""
    operating_system: str = ""
    os_image: str = ""


_NO_INFO = NodeSystemInfo()


class NodeStatus(View, frozen=True, kw_only=True):
    """What the node offers. Scheduling looks at `allocatable` only; admission fills it from `capacity` where
    it is missing."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = _NO_INFO
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


_NO_META = ObjectMeta()
_NO_SPEC = NodeSpec()
_NO_STATUS = NodeStatus()


class Node(View, frozen=True, kw_only=True):
    """A node."""

    metadata: ObjectMeta = _NO_META
    spec: NodeSpec = _NO_SPEC
    status: NodeStatus = _NO_STATUS
