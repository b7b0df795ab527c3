"""What may help a pod that fits no node's free room.

Source: kube-scheduler v1.36.2, plugins/noderesources/fit.go (isSchedulableAfterPodEvent,
isSchedulableAfterNodeChange, isSchedulableAfterDeviceClassEvent).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects import pod_requests, quantity
from podyard.objects.core import Node, Pod
from podyard.objects.resource import DeviceClass
from podyard.plugins import hinted
from podyard.plugins.node_resources_fit.freed_index import DEVICE_CLASS_PREFIX, index_by_class, index_by_freed
from podyard.plugins.node_resources_fit.room_index import RoomIndex
from podyard.proto.actions import ActionType

PODS: Final = pod_requests.PODS


def _text(resource: str, amount: int) -> str:
    """An amount for people: `200m cpu`, `1Gi memory`."""
    if resource == pod_requests.CPU:
        return f"{quantity.Quantity(amount * quantity.NANO_PER_MILLI)} {resource}"
    return f"{quantity.Quantity(amount * quantity.NANO, quantity.Format.BINARY_SI)} {resource}"


def _needs(requests: Mapping[str, int], named: Iterable[str]) -> str:
    """`the pod needs 500m cpu, 1Gi memory`, limited to the resources that matter here, if any."""
    listed = [_text(resource, requests[resource]) for resource in named if requests.get(resource)]
    return f"the pod needs {', '.join(listed)}" if listed else "the pod needs room for a pod"


def wanted(pod: Pod) -> dict[str, int]:
    """What the pod requests, zeros left out: all that the hints read of a parked pod."""
    return {resource: amount for resource, amount in pod_requests.pod_requests(pod).items() if amount}


def after_pod_event(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if a pod left its node (or its nomination), or gave back something that this pod wants."""
    before, after = hinted.changed(Pod, old, new)
    if after is None:
        return _after_deletion(pod, before)
    return _after_scale_down(pod, before, after)


def _after_deletion(pod: Pod, gone: Pod | None) -> HintResult:
    """Any deletion of a pod with a node counts, whatever it had
    (docs/rules.md, any-deletion-on-a-node-counts)."""
    assert gone is not None, "hinted.changed gives one of the two"
    name = "/".join(gone.key)
    node = hinted.place_of(gone)
    if not node:
        return events.skip(f"{name} was on no node")
    requests = wanted(pod)
    freed = pod_requests.pod_requests(gone)
    shared = [resource for resource in requests if freed.get(resource)]
    if not shared:
        return events.queue(f"{name} left {node}; {_needs(requests, requests)}")
    amounts = ", ".join(_text(resource, freed[resource]) for resource in shared)
    verb = "freed" if gone.spec.node_name else "gave up its nomination to"
    place = f"on {node}" if gone.spec.node_name else node
    if verb == "freed":
        return events.queue(f"freed {amounts} {place}, {_needs(requests, shared)}")
    return events.queue(f"{name} {verb} {place} ({amounts}), {_needs(requests, shared)}")


def _after_scale_down(pod: Pod, before: Pod | None, after: Pod) -> HintResult:
    if after.metadata.uid == pod.metadata.uid:
        return events.queue("the pod itself asks for less now")
    name = "/".join(after.key)
    if not after.spec.node_name or before is None:
        return events.skip(f"{name} is on no node")
    requests = wanted(pod)
    had, has = pod_requests.pod_requests(before), pod_requests.pod_requests(after)
    for resource in requests:
        freed = had.get(resource, 0) - has.get(resource, 0)
        if freed > 0:
            return events.queue(
                f"{name} gave back {_text(resource, freed)} on {after.spec.node_name}, {_needs(requests, (resource,))}"
            )
    return events.skip(f"{name} gave back nothing that the pod needs")


def after_node_change(
    ignored: "Ignored", by_devices: Callable[[str], bool], pod: Pod, old: object | None, new: object | None
) -> HintResult:
    """Queue if the pod fits the whole node, and the node has more than before of something that the pod
    wants, or does not list something that devices may be.

    :param ignored: resources not to look at
    :param by_devices: whether a device class stands for an extended resource: a node without it may still
        provide it
    """
    before, node = hinted.present(Node, old, new)
    name, requests = node.metadata.name, wanted(pod)
    room = _amounts(node.status.allocatable, (PODS, *requests))
    lent = [resource for resource in requests if not room[resource] and by_devices(resource)]
    requests = {
        resource: amount for resource, amount in requests.items() if resource not in lent and not ignored(resource)
    }
    for resource, amount in requests.items():
        if amount > room[resource]:
            whole = _text(resource, room[resource])
            return events.skip(f"the whole of {name} is {whole}, the pod needs {_text(resource, amount)}")
    if room[PODS] < 1:
        return events.skip(f"{name} takes no pods at all")
    if before is None:
        return events.queue(f"the new node {name} is large enough: {_needs(requests, requests)}")
    had = _amounts(before.status.allocatable, (PODS, *requests))
    for resource in (PODS, *requests):
        if room[resource] > had[resource]:
            grown = f"{name} grew from {_text(resource, had[resource])} to {_text(resource, room[resource])}"
            return events.queue(f"{grown}, {_needs(requests, (resource,))}")
    if lent:
        return events.queue(f"{name} changed, and devices of a class may stand for {lent[0]}, which it does not list")
    return events.skip(f"{name} has no more than before of what the pod needs")


def _amounts(allocatable: Mapping[str, str], resources: Iterable[str]) -> dict[str, int]:
    """cpu in milli-CPU, all else in whole units; 0 for what the node does not have."""
    return {
        resource: (quantity.milli if resource == pod_requests.CPU else quantity.value)(allocatable.get(resource, "0"))
        for resource in resources
    }


def stands_for(device_class: DeviceClass, resource: str) -> bool:
    """Whether devices of the class can be asked for as that extended resource."""
    return resource in (device_class.spec.extended_resource_name, DEVICE_CLASS_PREFIX + device_class.metadata.name)


def after_device_class(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the class now stands for an extended resource that the pod requests, and did not before."""
    before, device_class = hinted.present(DeviceClass, old, new)
    name, requests = device_class.metadata.name, wanted(pod)
    resource = device_class.spec.extended_resource_name
    if resource and resource in requests and (before is None or before.spec.extended_resource_name != resource):
        return events.queue(f"device class {name} now stands for {resource}, {_needs(requests, (resource,))}")
    if before is None and DEVICE_CLASS_PREFIX + name in requests:
        return events.queue(f"the pod needs devices of the new device class {name}")
    return events.skip(f"device class {name} stands for nothing new that the pod needs")


class Ignored:
    """Resources that the plugin's arguments tell it not to look at: by name, or extended ones by their
    group."""

    def __init__(self, resources: Collection[str] = (), groups: Collection[str] = ()) -> None:
        self._resources = frozenset(resources)
        self._groups = frozenset(groups)

    def __call__(self, resource: str) -> bool:
        """Whether fits ignore `resource`. Source: fit.go, fitsRequest (extended resources only)."""
        if "/" not in resource:
            return False
        return resource in self._resources or resource.partition("/")[0] in self._groups


def _no_devices(resource: str) -> bool:
    return False


def registrations(
    ignored_resources: Collection[str] = (),
    ignored_resource_groups: Collection[str] = (),
    by_devices: Callable[[str], bool] = _no_devices,
) -> tuple[Registration, ...]:
    """Pods that leave or shrink, nodes added or with other room, device classes.

    :param ignored_resources: the plugin's argument ignoredResources
    :param ignored_resource_groups: the plugin's argument ignoredResourceGroups
    :param by_devices: whether a device class stands for this extended resource; by default none does
    """
    ignored = Ignored(ignored_resources, ignored_resource_groups)
    pods = ClusterEvent(events.POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
    nodes = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
    classes = ClusterEvent(events.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
    return (
        Registration(pods, after_pod_event, index_by_freed),
        Registration(nodes, partial(after_node_change, ignored, by_devices), partial(RoomIndex, ignored, by_devices)),
        Registration(classes, after_device_class, index_by_class),
    )
