"""Claims for devices (`resource.k8s.io/v1`). Source: api/resource/v1/types.go."""

from typing import Any

from podyard.objects.affinity import NodeSelector
from podyard.objects.meta import ObjectMeta, QuantityText, View
from podyard.proto.message import Int64

_NO_META = ObjectMeta()


class CelDeviceSelector(View, frozen=True, kw_only=True):
    """A condition in CEL on a device."""

    expression: str = ""


class DeviceSelector(View, frozen=True, kw_only=True):
    """A condition on a device."""

    cel: CelDeviceSelector | None = None


class ExactDeviceRequest(View, frozen=True, kw_only=True):
    """Devices of one class. `allocation_mode` is ExactCount (also empty) or All."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None


class DeviceSubRequest(View, frozen=True, kw_only=True):
    """One of several that would do."""

    name: str
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0


class DeviceRequest(View, frozen=True, kw_only=True):
    """A request of a claim: exactly so, or the first of several that can be had."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceClaim(View, frozen=True, kw_only=True):
    """All requests of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[dict[str, Any], ...] = ()
    config: tuple[dict[str, Any], ...] = ()


_NO_DEVICE_CLAIM = DeviceClaim()


class ResourceClaimSpec(View, frozen=True, kw_only=True):
    """What is claimed."""

    devices: DeviceClaim = _NO_DEVICE_CLAIM


class DeviceRequestAllocationResult(View, frozen=True, kw_only=True):
    """A device that was given for a request."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None


class DeviceAllocationResult(View, frozen=True, kw_only=True):
    """The devices that were given."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()


_NO_RESULT = DeviceAllocationResult()


class AllocationResult(View, frozen=True, kw_only=True):
    """What was given, and on which nodes it can be used (None: all)."""

    devices: DeviceAllocationResult = _NO_RESULT
    node_selector: NodeSelector | None = None


class ResourceClaimConsumerReference(View, frozen=True, kw_only=True):
    """Who may use the claim now."""

    resource: str
    name: str
    uid: str
    api_group: str = ""


class ResourceClaimStatus(View, frozen=True, kw_only=True):
    """Whether the claim is allocated, and for whom it is reserved."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()


_NO_CLAIM_SPEC = ResourceClaimSpec()
_NO_CLAIM_STATUS = ResourceClaimStatus()


class ResourceClaim(View, frozen=True, kw_only=True):
    """A claim for devices."""

    metadata: ObjectMeta = _NO_META
    spec: ResourceClaimSpec = _NO_CLAIM_SPEC
    status: ResourceClaimStatus = _NO_CLAIM_STATUS


class DeviceCapacity(View, frozen=True, kw_only=True):
    """An amount that a device has."""

    value: QuantityText


class Device(View, frozen=True, kw_only=True):
    """A device. Attributes: name to one of bool, int, string, version."""

    name: str
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, DeviceCapacity] = {}
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None


class ResourcePool(View, frozen=True, kw_only=True):
    """Which pool a slice belongs to; only slices of the highest generation count."""

    name: str
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(View, frozen=True, kw_only=True):
    """Devices of one driver and pool, on one node, on nodes of a selector, or on all."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()


class ResourceSlice(View, frozen=True, kw_only=True):
    """Devices that a driver offers."""

    spec: ResourceSliceSpec
    metadata: ObjectMeta = _NO_META


class DeviceClassSpec(View, frozen=True, kw_only=True):
    """Which devices a class has; `extended_resource_name` lets pods ask for them as for an extended
    resource."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[dict[str, Any], ...] = ()
    extended_resource_name: str | None = None


_NO_CLASS_SPEC = DeviceClassSpec()


class DeviceClass(View, frozen=True, kw_only=True):
    """A class of devices."""

    metadata: ObjectMeta = _NO_META
    spec: DeviceClassSpec = _NO_CLASS_SPEC
