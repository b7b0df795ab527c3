"""A case's manifests as the state that the scheduler decides on: a view fed as an informer feeds it, folded
into table and nominations."""

from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec

from podyard.bus import Delivery
from podyard.cluster.changes import Change
from podyard.cluster.node_table import NodeTable
from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.framework.snapshot import Snapshot
from podyard.proto.streams import MAX_BATCH
from tests.conformance.deliveries import Manifest, Stream, batches, name_of

Manifests = list[dict[str, Any]]


class ClusterInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What the suites `schedule` and `preempt` give."""

    config: dict[str, Any] | None
    schedule: list[str]
    pods: Manifests
    nodes: Manifests = []
    namespaces: Manifests = []
    services: Manifests = []
    replication_controllers: Manifests = []
    replica_sets: Manifests = []
    stateful_sets: Manifests = []
    persistent_volumes: Manifests = []
    persistent_volume_claims: Manifests = []
    storage_classes: Manifests = []
    csi_nodes: Manifests = msgspec.field(default=[], name="csiNodes")
    csi_drivers: Manifests = msgspec.field(default=[], name="csiDrivers")
    csi_storage_capacities: Manifests = msgspec.field(default=[], name="csiStorageCapacities")
    volume_attachments: Manifests = []
    pod_disruption_budgets: Manifests = []


OTHERS: Final = tuple(
    field for field in ClusterInput.__struct_fields__ if field not in ("config", "schedule", "pods", "nodes")
)
"""Fields with objects of other kinds."""


class Cluster:
    """View, table and nominations, as a scheduler keeps them. Nothing is in it at first."""

    def __init__(self, schedulers: Collection[str] | None = None) -> None:
        """
        :param schedulers: names of the profiles; `None`: every pod is scheduled here
        """
        self.view = ClusterView()
        self.view.begin_listing()
        self.view.end_listing(0)
        self.table = NodeTable()
        self.nominated = Nominations(schedulers=schedulers)
        self.snapshot = Snapshot(self.table, self.view, nominated=self.nominated)
        self.changes: list[Change] = []
        """All that the view told, in its order."""

    @classmethod
    def of(cls, given: ClusterInput, schedulers: Collection[str] | None = None) -> "Cluster":
        """The cluster of a case."""
        cluster = cls(schedulers)
        for delivery in deliveries_of(Stream(), given):
            cluster.take(delivery)
        return cluster

    def take(self, delivery: Delivery) -> None:
        """A message of the stream.

        :raises ValueError: if the view cannot use it
        """
        changes = self.view.apply(delivery)
        effects = self.view.take_effects()
        if effects:
            raise ValueError(f"the informer cannot use the case: {effects}")
        self.changes += changes
        for change in changes:
            self.table.apply(change)
            self.nominated.apply(change)

    def pod(self, name: str) -> PodView:
        """A pod by `namespace/name`."""
        namespace, _, name = name.partition("/")
        return self.view.pods[namespace, name]


def deliveries_of(stream: Stream, given: ClusterInput) -> Iterable[Delivery]:
    """Objects, then what the binder committed, in the order of arrival on the nodes, then nominations.

    Pods to schedule are pending, whatever their manifest says.
    """
    for field in OTHERS:
        yield from map(stream.put, getattr(given, field))
    yield from map(stream.put, given.nodes)
    yield from map(stream.put, given.pods)
    for batch in batches(placed_pods(given), MAX_BATCH):
        yield stream.commit(batch)
    for pod in given.pods:
        node = nominated_node_of(pod)
        if node:
            yield stream.nominate(pod, node)


def placed_pods(given: ClusterInput) -> Manifests:
    """Pods that take room, in the order in which they came."""
    return [pod for pod in given.pods if _placed(pod) and name_of(pod) not in given.schedule]


def _placed(pod: Manifest) -> bool:
    return bool((pod.get("spec") or {}).get("nodeName"))


def nominated_node_of(pod: Manifest) -> str:
    """The node in a pod's status that it preempted for, or empty."""
    return (pod.get("status") or {}).get("nominatedNodeName") or ""
