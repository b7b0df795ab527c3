"""NodeResourceTopologyMatch: pods that need all they get from one NUMA zone go only to nodes where a zone has
that much.

Nodes publish their zones as `noderesourcetopologies.v1alpha2.topology.node.k8s.io`, named like the node. A
node without such an object, or whose kubelet does not insist on one zone, takes any pod.

Source: kubernetes-sigs/scheduler-plugins v0.33, pkg/noderesourcetopology/{filter,plugin}.go. Zones are taken
as the nodes report them, without the over-reserving cache.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from podyard.framework import events
from podyard.framework.cycle_state import CycleState
from podyard.framework.events import ClusterEvent, Registration
from podyard.framework.one_at_a_time import FilterOneNode
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status, unschedulable
from podyard.objects import quantity
from podyard.objects.containers import Container
from podyard.objects.kinds import CustomObject
from podyard.objects.pod import PodSpec
from podyard.objects.pod_requests import is_sidecar
from podyard.proto.actions import ActionType

RESOURCE: Final = "noderesourcetopologies.v1alpha2.topology.node.k8s.io"
SINGLE_ZONE: Final = "single-numa-node"
NATIVE: Final = ("cpu", "memory")

CONTAINER_MISFIT: Final = 1
POD_MISFIT: Final = 2
REASONS: Final = {CONTAINER_MISFIT: "cannot align container", POD_MISFIT: "cannot align pod"}

Amounts = dict[str, int]
"""Nano-units by resource."""


class Zones(NamedTuple):
    """What a node says of itself. `by_pod`: the kubelet aligns whole pods, else each container."""

    by_pod: bool
    available: tuple[Amounts, ...]


class NodeResourceTopologyMatch(FilterOneNode):
    """Filter."""

    name: ClassVar[str] = "NodeResourceTopologyMatch"

    def __init__(self) -> None:
        self._read: dict[str, tuple[CustomObject, Zones | None]] = {}

    def signature(self, pod: PodInfo) -> Hashable:
        return tuple((bool(init), tuple(amounts.items())) for init, amounts in requests_of(pod.pod.spec))

    def events_to_register(self) -> Sequence[Registration]:
        return (
            Registration(ClusterEvent(events.POD, ActionType.DELETE)),
            Registration(ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)),
            Registration(ClusterEvent(RESOURCE, ActionType.ADD | ActionType.UPDATE)),
        )

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        return cluster.version(RESOURCE)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        zones = self._zones(cluster, cluster.nodes.names[row])
        wanted = requests_of(pod.pod.spec)
        if zones is None or not any(amounts for _, amounts in wanted):
            return 0
        aligned = is_guaranteed(pod.pod.spec)
        if zones.by_pod:
            return 0 if fitting(zones.available, peak(wanted), aligned) is not None else POD_MISFIT
        return 0 if containers_fit(zones.available, wanted, aligned) else CONTAINER_MISFIT

    def verdict(self, state: CycleState, code: int) -> Status:
        return unschedulable(REASONS[code])

    def _zones(self, cluster: Snapshot, node: str) -> Zones | None:
        """What the node published last, read once a version."""
        published = cluster.objects(RESOURCE).get(("", node))
        if published is None:
            self._read.pop(node, None)
            return None
        known = self._read.get(node)
        if known is None or known[0] is not published:
            known = self._read[node] = published, zones_of(published)
        return known[1]


def requests_of(spec: PodSpec) -> list[tuple[bool, Amounts]]:
    """What each container requests, init containers first: (whether it ends before the others start,
    amounts)."""
    found = [(not is_sidecar(one), amounts_of(one)) for one in spec.init_containers]
    return found + [(False, amounts_of(one)) for one in spec.containers]


def amounts_of(container: Container) -> Amounts:
    """Its requests."""
    return exact(container.resources.requests)


def exact(amounts: Mapping[str, str]) -> Amounts:
    return {name: quantity.parse(text).nano for name, text in amounts.items()}


def peak(wanted: Iterable[tuple[bool, Amounts]]) -> Amounts:
    """What the pod takes at its highest: the sum of what runs together, or one init container."""
    together: Amounts = {}
    alone: Amounts = {}
    for ends_before, amounts in wanted:
        for name, amount in amounts.items():
            if ends_before:
                alone[name] = max(alone.get(name, 0), amount + together.get(name, 0))
            else:
                together[name] = together.get(name, 0) + amount
    return {name: max(alone.get(name, 0), together.get(name, 0)) for name in {**alone, **together}}


def containers_fit(available: Sequence[Amounts], wanted: Iterable[tuple[bool, Amounts]], aligned: bool) -> bool:
    """Whether every container finds a zone; what keeps running takes its amounts out of it."""
    left = [dict(zone) for zone in available]
    for ends_before, amounts in wanted:
        zone = fitting(left, amounts, aligned)
        if zone is None:
            return False
        if not ends_before and zone >= 0:
            for name, amount in amounts.items():
                if name in left[zone]:
                    left[zone][name] -= amount
    return True


def fitting(zones: Sequence[Amounts], amounts: Amounts, aligned: bool) -> int | None:
    """The first zone that has all of `amounts`; -1 if none needs to be looked for, `None` if no zone has it.

    :param aligned: whether cpu, memory and huge pages must come from one zone too, as for Guaranteed pods
    """
    counted = [
        (name, amount)
        for name, amount in amounts.items()
        if amount and any(name in zone for zone in zones) and (aligned or not is_native(name))
    ]
    if not counted:
        return -1
    for number, zone in enumerate(zones):
        if all(zone.get(name, -1) >= amount for name, amount in counted):
            return number
    return None


def is_native(resource: str) -> bool:
    """Whether only Guaranteed pods get it from one zone."""
    return resource in NATIVE or resource.startswith("hugepages-")


def is_guaranteed(spec: PodSpec) -> bool:
    """Whether every container has limits for cpu and memory, and requests that equal them."""
    for container in (*spec.init_containers, *spec.containers):
        resources = container.resources
        for name in NATIVE:
            limit = resources.limits.get(name)
            if limit is None or quantity.parse(resources.requests.get(name, limit)) != quantity.parse(limit):
                return False
    return True


def zones_of(published: CustomObject) -> Zones | None:
    """The node's zones if its kubelet insists on one of them, else `None`."""
    raw: Any = published.raw
    attributes = {one.get("name"): one.get("value") for one in raw.get("attributes") or ()}
    if attributes.get("topologyManagerPolicy") != SINGLE_ZONE:
        return None
    available = tuple(
        exact({one["name"]: str(one["available"]) for one in zone.get("resources") or ()})
        for zone in raw.get("zones") or ()
        if zone.get("type") == "Node"
    )
    return Zones(attributes.get("topologyManagerScope") == "pod", available)
