"""A CLUSTER stream in memory, for tests: one message a subject, writers that compare and set, markers that expire."""

import json
from typing import Any

import msgspec

from podyard.bus import Delivery
from podyard.cluster.view import ClusterView
from podyard.proto import codec, headers, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import Condition, NodeStatusFact, Nomination, PodStatusFact, TaintFact
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Release, Tombstone, Usage


def pod_document(name: str, uid: str, *, labels: dict[str, str] | None = None, cpu: str = "100m") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uid, "labels": labels or {}},
        "spec": {
            "containers": [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}],
            "priority": 5,
        },
    }


def node_document(name: str, uid: str, *, cpu: str = "4", taints: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": uid, "labels": {"zone": "a"}},
        "spec": {"taints": taints or []},
        "status": {"allocatable": {"cpu": cpu, "pods": "110"}},
    }


class StreamModel:
    """`messages` is what lies in the stream, `log` every message in its order."""

    def __init__(self) -> None:
        self.messages: dict[str, Delivery] = {}
        self.log: list[Delivery] = []
        self.sequence = 0
        self.commit_n = 0
        self.epoch = 1

    def store(self, subject: str, payload: bytes, *, deleted: bool = False, expect: bool = True) -> Delivery:
        self.sequence += 1
        known = self.messages.get(subject)
        lines = {headers.EXPECTED_LAST_SUBJECT_SEQUENCE: str(known.sequence if known else 0)} if expect else {}
        if deleted:
            lines[headers.OPERATION] = headers.DELETED
        delivery = Delivery(subject, payload, self.sequence, float(self.sequence), lines)
        self.messages[subject] = delivery
        self.log.append(delivery)
        return delivery

    def put(self, resource: str, document: dict[str, Any], **more: Any) -> Delivery:
        return self._object(resource, document, "put", **more)

    def remove(self, resource: str, document: dict[str, Any]) -> Delivery:
        return self._object(resource, document, "delete")

    def _object(self, resource: str, document: dict[str, Any], op: Any, **more: Any) -> Delivery:
        metadata = document["metadata"]
        namespace = metadata.get("namespace", "")
        event = ClusterEvent(
            resource=resource,
            namespace=namespace,
            name=metadata["name"],
            uid=metadata["uid"],
            op=op,
            who="test",
            object=msgspec.Raw(json.dumps(document).encode()),
            **more,
        )
        subject = subjects.object_(resource, namespace, metadata["name"])
        return self.store(subject, codec.encode(event), deleted=op == "delete")

    def expire(self, subject: str) -> None:
        """What the server does when a TTL ends: nobody hears of it."""
        self.messages.pop(subject, None)

    def commit(self, bindings: list[BoundPod] = (), releases: list[Release] = ()) -> None:  # type: ignore[assignment]
        self.commit_n += 1
        for bound in bindings:
            content = {name: getattr(bound, name) for name in BoundPod.__struct_fields__}
            self.store(subjects.binding(bound.namespace, bound.name, bound.uid), codec.encode(Binding(**content)))
        for release in releases:
            tombstone = Tombstone(
                namespace=release.namespace,
                name=release.name,
                uid=release.uid,
                node=release.node,
                reason=release.reason,
            )
            self.store(subjects.binding(release.namespace, release.name, release.uid), codec.encode(tombstone))
        record = CommitRecord(
            n=self.commit_n, epoch=self.epoch, batch="b", bindings=tuple(bindings), releases=tuple(releases)
        )
        self.store(subjects.commit(self.commit_n), codec.encode(record), expect=False)
        self.store(subjects.FENCE, codec.encode(Fence(epoch=self.epoch, n=self.commit_n, batch="b")))

    def pod_status(self, node: str, name: str, uid: str, phase: Any = "Running", **more: Any) -> Delivery:
        fact = PodStatusFact(namespace="default", name=name, uid=uid, node=node, phase=phase, **more)
        return self.store(subjects.pod_status(node, "default", name, uid), codec.encode(fact))

    def node_status(self, node: str, uid: str, *taints: str) -> Delivery:
        fact = NodeStatusFact(
            node=node,
            node_uid=uid,
            taints=tuple(TaintFact(key=key, effect="NoSchedule") for key in taints),
            conditions=(Condition(type="Ready", status="True"),),
        )
        return self.store(subjects.node_status(node), codec.encode(fact))

    def nominate(self, name: str, uid: str, node: str) -> Delivery:
        fact = Nomination(namespace="default", name=name, uid=uid, node=node)
        return self.store(subjects.nomination("default", name, uid), codec.encode(fact))

    def listed(self) -> list[Delivery]:
        """What a listing reads: everything but the commit records, in stream order."""
        found = [one for one in self.messages.values() if not one.subject.startswith("placement.commits.")]
        return sorted(found, key=lambda one: one.sequence)

    def followed(self, after: int) -> list[Delivery]:
        """What a follower reads: everything but the bindings."""
        return [one for one in self.log if one.sequence > after and not one.subject.startswith("placement.bindings.")]


def bound_pod(name: str, uid: str, node: str) -> BoundPod:
    usage = Usage(requests={"cpu": 100}, nonzero_cpu_milli=100, nonzero_memory_bytes=1)
    return BoundPod(
        namespace="default", name=name, uid=uid, node=node, attempt="1-1", priority=5, labels={"a": "b"}, usage=usage
    )


def release_of(bound: BoundPod, reason: Any = "terminated") -> Release:
    return Release(namespace=bound.namespace, name=bound.name, uid=bound.uid, node=bound.node, reason=reason)


def listing_of(stream: StreamModel, deliveries: list[Delivery] | None = None) -> ClusterView:
    """A view of what the stream holds now."""
    view = ClusterView()
    view.begin_listing()
    for delivery in stream.listed() if deliveries is None else deliveries:
        view.apply(delivery)
    view.end_listing(stream.sequence)
    return view


def empty_view() -> ClusterView:
    view = ClusterView()
    view.begin_listing()
    view.end_listing(0)
    return view
