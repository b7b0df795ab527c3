"""Messages of CLUSTER as those who may write them make them. Who publishes one says what it expects there.

bus.publish(stored.version("pods", document).but(expect=0))
stream.put(stored.commit(1, bindings=[bound])[-1])
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from podyard.bus import Delivery, Outgoing
from podyard.proto import codec, streams, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import NodeStatusFact, Nomination, PodStatusFact
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Release, Tombstone, binding_of, tombstone_of

WHO = "test"


# Objects: api, workloads


def version(resource: str, document: dict[str, Any], *, who: str = WHO, **more: Any) -> Outgoing:
    """A version of an object; `more` are fields of ClusterEvent."""
    event = _event(resource, document, who, **more)
    return Outgoing(subject_of(resource, document), codec.encode(event))


def marker(resource: str, document: dict[str, Any], *, who: str = WHO) -> Outgoing:
    """The deletion marker of an object, which holds its last version."""
    event = _event(resource, document, who, op="delete", actions=("Delete",))
    subject = subject_of(resource, document)
    return Outgoing(subject, codec.encode(event), ttl_s=streams.MARKER_TTL_S, deleted=True)


def document(found: Delivery) -> dict[str, Any]:
    """The object that a version or a marker holds."""
    return msgspec.json.decode(codec.decode(ClusterEvent, found.payload).object)


def subject_of(resource: str, document: dict[str, Any]) -> str:
    """Where an object lies; it says itself whether it has a namespace."""
    metadata = document["metadata"]
    return subjects.object_(resource, metadata.get("namespace", ""), metadata["name"])


def _event(resource: str, document: dict[str, Any], who: str, **more: Any) -> ClusterEvent:
    metadata = document["metadata"]
    return ClusterEvent(
        resource=resource,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        who=who,
        object=msgspec.Raw(msgspec.json.encode(document)),
        **more,
    )


# Facts: queue, node agents


def nomination(fact: Nomination, *, over: bool = False) -> Outgoing:
    """A nomination, or the marker of one that is over."""
    subject = subjects.nomination(fact.namespace, fact.name, fact.uid)
    return Outgoing(subject, codec.encode(fact), ttl_s=streams.MARKER_TTL_S if over else None, deleted=over)


def pod_status(fact: PodStatusFact, *, trace: str = "") -> Outgoing:
    """What a node's agent says about a pod."""
    return Outgoing(
        subjects.pod_status(fact.node, fact.namespace, fact.name, fact.uid), codec.encode(fact), trace=trace
    )


def node_status(fact: NodeStatusFact) -> Outgoing:
    """What a node's agent says about the node."""
    return Outgoing(subjects.node_status(fact.node), codec.encode(fact))


# Placements: binder


def binding(bound: BoundPod) -> Outgoing:
    """A pod's binding."""
    return _placement(binding_of(bound, bound_at=0.0))


def tombstone(release: Release) -> Outgoing:
    """What takes the place of a binding that has ended."""
    return _placement(tombstone_of(release, released_at=0.0))


def _placement(found: Binding | Tombstone) -> Outgoing:
    return Outgoing(subjects.binding(found.namespace, found.name, found.uid), codec.encode(found))


def fence(found: Fence) -> Outgoing:
    """Who may write placements, and the last commit's number."""
    return Outgoing(subjects.FENCE, codec.encode(found))


def record(
    n: int, *, bindings: Sequence[BoundPod] = (), releases: Sequence[Release] = (), epoch: int = 1, batch: str = "b"
) -> Outgoing:
    """A commit's record by itself: all that most readers look at."""
    found = CommitRecord(n=n, epoch=epoch, batch=batch, bindings=tuple(bindings), releases=tuple(releases))
    return Outgoing(subjects.commit(n), codec.encode(found), ttl_s=streams.MARKER_TTL_S)


def commit(
    n: int, *, bindings: Sequence[BoundPod] = (), releases: Sequence[Release] = (), epoch: int = 1, batch: str = "b"
) -> list[Outgoing]:
    """Everything that a commit writes, in the binder's order: bindings, tombstones, the record, last the
    fence."""
    return [
        *(binding(bound) for bound in bindings),
        *(tombstone(release) for release in releases),
        record(n, bindings=bindings, releases=releases, epoch=epoch, batch=batch),
        fence(Fence(epoch=epoch, n=n, batch=batch)),
    ]
