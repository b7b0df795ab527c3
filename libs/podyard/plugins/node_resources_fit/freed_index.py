"""Which parked pods want a resource that a pod gave back, or that a device class stands for."""

from collections.abc import Hashable, Iterable
from typing import Any, Final, cast

from podyard.objects import pod_requests
from podyard.objects.core import Pod
from podyard.objects.resource import DeviceClass
from podyard.plugins import hinted
from podyard.plugins.hint_indexes import KeyIndex

DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""A device class without an extended resource name of its own can be asked for as this and its name."""


def index_by_freed() -> KeyIndex[Any]:
    """An empty index for events of pods. Whoever leaves a node concerns everybody
    (docs/rules.md, any-deletion-on-a-node-counts)."""
    return KeyIndex(_resources, _freed)


def index_by_class() -> KeyIndex[Any]:
    """An empty index for events of device classes."""
    return KeyIndex(_resources, _stood_for)


def _resources(signature: Any) -> Iterable[Hashable] | None:
    """What a size (`hint_signature`) has amounts of; of a pod that could not be read nothing is known."""
    if not isinstance(signature, tuple):
        return None
    return [resource for resource, _ in cast("tuple[tuple[str, int], ...]", signature)]


def _freed(old: object | None, new: object | None) -> Iterable[Hashable] | None:
    if not isinstance(old, Pod) or not isinstance(new, Pod | None):
        return None
    if new is None:
        return None if hinted.place_of(old) else ()
    if not new.spec.node_name:
        return ()
    had, has = pod_requests.pod_requests(old), pod_requests.pod_requests(new)
    return [resource for resource, amount in had.items() if amount > has.get(resource, 0)]


def _stood_for(old: object | None, new: object | None) -> Iterable[Hashable] | None:
    if not isinstance(new, DeviceClass):
        return None
    return [new.spec.extended_resource_name, DEVICE_CLASS_PREFIX + new.metadata.name]
