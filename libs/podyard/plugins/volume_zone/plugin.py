"""Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/volumezone/volume_zone.go."""

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import Registration
from podyard.framework.interfaces import PreFilterResult, Rows, Scope, Verdicts
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginFault, Status
from podyard.objects import claims, selectors
from podyard.objects.core import PersistentVolumeClaim, Pod
from podyard.objects.selectors import Requirement, Selector
from podyard.plugins import node_matching
from podyard.plugins.volume_zone import hints
from podyard.plugins.volume_zone.topology import LABELS, SUCCESSOR, Topology, topologies_of

NAME: Final = "VolumeZone"
REASON: Final = "node(s) had no available volume zone"
OTHER_ZONE: Final = 1
NOT_KNOWN: Final = 2
"""Only without PreFilter: what PreFilter would have rejected the pod for."""

TOPOLOGIES: Final = StateKey[tuple[Topology, ...]]("PreFilterVolumeZone")
REFUSAL: Final = StateKey[str]("FilterVolumeZone")


class Unresolvable(Exception):
    """The pod's volumes are not known; the text is the reason."""


def topologies_of_pod(pod: PodInfo, cluster: Snapshot) -> tuple[Topology, ...]:
    """What the bound volumes of the pod demand of a node, in the order of its volumes.

    :raises Unresolvable: if a claim, its volume or its class is missing, or the claim should be bound by now
    """
    found: list[Topology] = []
    for name in claims.named_claims(pod.pod):
        if not name:
            raise Unresolvable("PersistentVolumeClaim had no name")
        claim: PersistentVolumeClaim | None = cluster.objects(claims.CLAIMS).get((pod.namespace, name))
        if claim is None:
            raise Unresolvable(claims.claim_not_found(name))
        volume_name = claim.spec.volume_name
        if not volume_name:
            _check_unbound(claim, cluster)
            continue
        volume = cluster.objects(claims.VOLUMES).get(("", volume_name))
        if volume is None:
            raise Unresolvable(claims.not_found("persistentvolume", volume_name))
        found += topologies_of(volume)
    return tuple(found)


def _check_unbound(claim: PersistentVolumeClaim, cluster: Snapshot) -> None:
    """Only claims whose class waits for the first pod may be unbound."""
    name = claims.class_of_claim(claim)
    if not name:
        raise Unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = cluster.objects(claims.CLASSES).get(("", name))
    if storage_class is None:
        raise Unresolvable(claims.not_found("storageclass.storage.k8s.io", name))
    if storage_class.volume_binding_mode is None:
        raise Unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
    if storage_class.volume_binding_mode != claims.WAIT_FOR_FIRST_CONSUMER:
        raise Unresolvable("PersistentVolume had no name")


def fits(topologies: Sequence[Topology], labels: Mapping[str, str]) -> bool:
    """Whether a node of these labels can reach the volumes; one without any zone or region label can."""
    if not any(key in labels for key in LABELS):
        return True
    return all(labels.get(one.key, labels.get(SUCCESSOR.get(one.key, one.key))) in one.values for one in topologies)


class VolumeZone:
    """PreFilter, Filter."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = "row"
    signs_few_templates: ClassVar[bool] = True

    def signature(self, pod: PodInfo) -> Hashable:
        named = tuple(claims.named_claims(pod.pod)) if pod.pod.spec.volumes else ()
        return (pod.namespace, named) if named else None

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        if not pod.pod.spec.volumes or not any(True for _ in claims.named_claims(pod.pod)):
            return None
        version = cluster.version
        return version(claims.CLAIMS), version(claims.VOLUMES), version(claims.CLASSES)

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations()

    def hint_signature(self, pod: Pod) -> Hashable:
        return hints.read_of(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        try:
            topologies = topologies_of_pod(pod, cluster)
        except Unresolvable as reason:
            return PreFilterResult(status=statuses.unresolvable(str(reason)))
        if not topologies:
            return PreFilterResult(status=statuses.SKIP)
        state.write(TOPOLOGIES, topologies)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        try:
            topologies = self._topologies(state, pod, cluster)
        except Unresolvable:
            return np.full(len(rows), NOT_KNOWN, dtype=np.int64)
        nodes = cluster.nodes
        zoned = np.zeros(len(rows), dtype=np.bool_)
        for key in LABELS:
            zoned |= node_matching.labels(_has(key), nodes, rows)
        reached = np.ones(len(rows), dtype=np.bool_)
        for one in topologies:
            there = node_matching.labels(_one_of(one.key, one.values), nodes, rows)
            if one.key in SUCCESSOR:
                told = node_matching.labels(_has(one.key), nodes, rows)
                there |= ~told & node_matching.labels(_one_of(SUCCESSOR[one.key], one.values), nodes, rows)
            reached &= there
        return np.where(zoned & ~reached, OTHER_ZONE, 0)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        try:
            topologies = self._topologies(state, pod, cluster)
        except Unresolvable:
            return NOT_KNOWN
        node = cluster.nodes.nodes[row]
        if node is None:
            raise PluginFault(f"row {row} has no node")
        return 0 if fits(topologies, node.metadata.labels) else OTHER_ZONE

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unresolvable(REASON if code == OTHER_ZONE else state.read(REFUSAL))

    def _topologies(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> tuple[Topology, ...]:
        """What PreFilter found; the same looked up here if PreFilter is disabled, as the reference does."""
        found = state.find(TOPOLOGIES)
        if found is not None:
            return found
        try:
            return topologies_of_pod(pod, cluster)
        except Unresolvable as reason:
            state.write(REFUSAL, str(reason))
            raise


def _has(key: str) -> Selector:
    return Selector((Requirement(key, selectors.EXISTS),))


def _one_of(key: str, values: frozenset[str]) -> Selector:
    return Selector((Requirement(key, selectors.IN, values),))
