"""The CLUSTER stream with writers for what tests of views need, and views of it."""

from collections.abc import Sequence
from typing import Any

from podyard.bus import Delivery, Outgoing
from podyard.cluster.changes import Change
from podyard.cluster.markers import TIMES
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.proto import codec, streams, subjects
from podyard.proto.facts import Condition, NodeLifeFact, NodeStatusFact, Nomination, PodStatusFact, TaintFact
from podyard.proto.placement import BoundPod, Release, Usage
from tests.support import objects, stored
from tests.support.stream import ClusterStream


def pod_document(name: str, uid: str, **more: Any) -> objects.Document:
    """A pod for which `bound_pod` is the binding."""
    return objects.pod(name, uid=uid, priority=5, **{"cpu": "100m", **more})


def node_document(name: str, uid: str, **more: Any) -> objects.Document:
    return objects.node(name, uid=uid, labels={"zone": "a"}, **more)


MEMORY_S = TIMES * streams.MARKER_TTL_S
"""How long a marker of the usual age is remembered."""


def occupied_before(change: Change) -> BoundPod | None:
    """The room that the pod took before. A table of usage subtracts this and adds `occupied_after`: nothing
    else counts."""
    return change.old.bound if isinstance(change.old, PodView) else None


def occupied_after(change: Change) -> BoundPod | None:
    """The room that the pod takes now; a deleted object keeps its room until its release."""
    if change.release is not None:
        return None
    view = change.old if change.new is None else change.new
    return view.bound if isinstance(view, PodView) else None


LOST_AT = "2026-01-01T00:01:00Z"


class WrittenStream(ClusterStream):
    """The stream, and those who write into it."""

    def __init__(self) -> None:
        super().__init__()
        self.commit_n = 0
        self.epoch = 1

    def write(self, resource: str, document: dict[str, Any], **more: Any) -> Delivery:
        return self.put(stored.version(resource, document, **more))

    def remove(self, resource: str, document: dict[str, Any]) -> Delivery:
        return self.put(stored.marker(resource, document))

    def commit(self, bindings: Sequence[BoundPod] = (), releases: Sequence[Release] = ()) -> None:
        self.commit_n += 1
        self.put_all(stored.commit(self.commit_n, bindings=bindings, releases=releases, epoch=self.epoch))

    def pod_status(self, node: str, name: str, uid: str, phase: Any = "Running", **more: Any) -> Delivery:
        fact = PodStatusFact(namespace="default", name=name, uid=uid, node=node, phase=phase, **more)
        return self.put(stored.pod_status(fact))

    def node_status(self, node: str, uid: str, *taints: str) -> Delivery:
        fact = NodeStatusFact(
            node=node,
            node_uid=uid,
            taints=tuple(TaintFact(key=key, effect="NoSchedule") for key in taints),
            conditions=(Condition(type="Ready", status="True"),),
        )
        return self.put(stored.node_status(fact))

    def node_life(self, node: str, uid: str, *taints: str) -> Delivery:
        """What `workloads` says; a marker if there are no taints."""
        subject = subjects.node_life(node)
        if not taints:
            return self.put(Outgoing(subject, b"", ttl_s=streams.MARKER_TTL_S, deleted=True))
        found = tuple(TaintFact(key=key, effect="NoExecute") for key in taints)
        unknown = (Condition(type="Ready", status="Unknown", last_transition_time=LOST_AT),)
        fact = NodeLifeFact(node=node, node_uid=uid, taints=found, conditions=unknown)
        return self.put(Outgoing(subject, codec.encode(fact)))

    def nominate(self, name: str, uid: str, node: str) -> Delivery:
        return self.put(stored.nomination(Nomination(namespace="default", name=name, uid=uid, node=node)))

    def followed(self, after: int) -> list[Delivery]:
        """What a follower reads that keeps up: everything but the bindings."""
        return [one for one in self.log[after:] if not one.subject.startswith("placement.bindings.")]


def bound_pod(name: str, uid: str, node: str, decided_at: int = 0) -> BoundPod:
    usage = Usage(requests={"cpu": 100}, nonzero_cpu_milli=100, nonzero_memory_bytes=1)
    return BoundPod(
        namespace="default",
        name=name,
        uid=uid,
        node=node,
        attempt="1-1",
        decided_at=decided_at,
        priority=5,
        labels={"a": "b"},
        usage=usage,
    )


def release_of(bound: BoundPod, reason: Any = "terminated") -> Release:
    return Release(namespace=bound.namespace, name=bound.name, uid=bound.uid, node=bound.node, reason=reason)


def listing_of(stream: WrittenStream, deliveries: list[Delivery] | None = None) -> ClusterView:
    """A view of what the stream holds now."""
    view = ClusterView()
    view.begin_listing()
    for delivery in stream.listed() if deliveries is None else deliveries:
        view.apply(delivery)
    view.end_listing(stream.last)
    return view


def empty_view() -> ClusterView:
    view = ClusterView()
    view.begin_listing()
    view.end_listing(0)
    return view
