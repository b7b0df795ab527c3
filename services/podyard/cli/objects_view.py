"""The joined view of the cluster, and the documents it was made from: people who ask for JSON want every field."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change, Effect
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.objects import decoding
from podyard.objects.errors import ObjectError
from podyard.objects.kinds import kind_of_resource
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.events import ClusterEvent


class Stored(NamedTuple):
    """One object as it is stored."""

    resource: str
    namespace: str
    name: str
    payload: bytes
    sequence: int


class ObjectsView:
    """A `ClusterView` that also keeps the documents. Feed it with an `Informer`."""

    def __init__(self) -> None:
        self.cluster = ClusterView()
        self._stored: dict[subjects.ObjectSubject, Stored] = {}
        self._listing: dict[subjects.ObjectSubject, Stored] | None = None

    # what an informer calls

    @property
    def position(self) -> int:
        """Everything up to this CLUSTER sequence is in the view."""
        return self.cluster.position

    def begin_listing(self) -> None:
        """A listing begins."""
        self._listing = {}
        self.cluster.begin_listing()

    def end_listing(self, position: int) -> list[Change]:
        """The listing is complete."""
        if self._listing is not None:
            self._stored, self._listing = self._listing, None
        return self.cluster.end_listing(position)

    def apply(self, delivery: Delivery) -> list[Change]:
        """Fold one delivery."""
        try:
            key = subjects.parse_object(delivery.subject)
        except ValueError:
            return self.cluster.apply(delivery)
        stored = self._stored if self._listing is None else self._listing
        if delivery.deleted:
            stored.pop(key, None)
        else:
            stored[key] = Stored(*key, payload=bytes(delivery.payload), sequence=delivery.sequence)
        return self.cluster.apply(delivery)

    def advance(self, position: int) -> None:
        """The stream moved on."""
        self.cluster.advance(position)

    def take_effects(self) -> Sequence[Effect]:
        """What the fold asks its shell to do."""
        return self.cluster.take_effects()

    # what people ask

    def has(self, resource: str, namespace: str, name: str) -> bool:
        """Whether the object is there."""
        return subjects.ObjectSubject(resource, namespace, name) in self._stored

    def keys(self, resource: str, namespace: str | None = None) -> list[subjects.ObjectSubject]:
        """Objects of a resource, by namespace and name; `None` is every namespace."""
        return sorted(key for key in self._stored if key.resource == resource and namespace in (None, key.namespace))

    def resources(self) -> set[str]:
        """Resources of which there are objects."""
        return {key.resource for key in self._stored}

    def typed(self, key: subjects.ObjectSubject) -> Any:
        """The joined typed object; `None` if it is not there or cannot be decoded."""
        if key.resource == subjects.PODS:
            pod = self.cluster.pods.get((key.namespace, key.name))
            return None if pod is None else pod.pod
        if key.resource == subjects.NODES:
            node = self.cluster.nodes.get(key.name)
            return None if node is None else node.node
        return self.cluster.others.get(key.resource, {}).get((key.namespace, key.name))

    def fault(self, key: subjects.ObjectSubject) -> str:
        """Why an object cannot be read; empty if it can be. One that cannot counts as absent for every service."""
        found = self.cluster.unreadable.get(subjects.object_(*key))
        return "" if found is None else found.reason

    def doubts(self, key: subjects.ObjectSubject) -> list[str]:
        """What else that is stored about an object cannot be read, in sentences' ends."""
        if key.resource == subjects.NODES:
            node = self.cluster.nodes.get(key.name)
            blind = "" if node is None else node.blind
            return (
                [f"what its agent said last cannot be read, so what it said before is shown: {blind}"] if blind else []
            )
        pod = self.cluster.pods.get((key.namespace, key.name)) if key.resource == subjects.PODS else None
        if pod is None:
            return []
        binding = subjects.binding(*pod.key, pod.uid)
        status = subjects.pod_status(pod.node_name, *pod.key, pod.uid)
        said = {binding: "its binding", status: f"what the agent of node {pod.node_name} said of it"}
        unreadable = self.cluster.unreadable
        return [
            f"{what} cannot be read: {unreadable[subject].reason}{'; see podyard mend' if subject == binding else ''}"
            for subject, what in said.items()
            if subject in unreadable
        ]

    def labels(self, key: subjects.ObjectSubject) -> dict[str, str]:
        """Labels of an object."""
        found = self.typed(key)
        return {} if found is None else found.metadata.labels

    def document(self, key: subjects.ObjectSubject) -> dict[str, Any]:
        """The whole document with what others know of the object put in; apiVersion and kind always there."""
        stored = self._stored[key]
        try:
            event = codec.decode(ClusterEvent, stored.payload)
            document = decoding.document(event.object)
        except (MessageError, ObjectError) as error:
            return {"metadata": {"namespace": key.namespace, "name": key.name}, "podyardError": str(error)}
        kind = kind_of_resource(key.resource)
        whole: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind, **document}
        if not isinstance(whole.get("metadata"), dict):
            whole["metadata"] = {"namespace": key.namespace, "name": key.name}
        whole["metadata"]["resourceVersion"] = str(stored.sequence)
        if fault := self.fault(key):
            whole["podyardError"] = fault
        if key.resource == subjects.PODS:
            _join_pod(whole, self.cluster.pods.get((key.namespace, key.name)))
        elif key.resource == subjects.NODES:
            _join_node(whole, self.cluster.nodes.get(key.name))
        return whole


def _join_pod(document: dict[str, Any], view: PodView | None) -> None:
    if view is None:
        return
    if view.node_name:
        document.setdefault("spec", {})["nodeName"] = view.node_name
    status = dict(document.get("status") or {})
    status.update(msgspec.to_builtins(view.pod.status))
    document["status"] = status


def _join_node(document: dict[str, Any], view: NodeView | None) -> None:
    if view is None or view.status is None:
        return
    if view.node.spec.taints:
        document.setdefault("spec", {})["taints"] = msgspec.to_builtins(view.node.spec.taints)
    status = document.setdefault("status", {})
    status["conditions"] = msgspec.to_builtins(view.node.status.conditions)


def everything(view: ObjectsView) -> Iterator[subjects.ObjectSubject]:
    """All objects, by resource, namespace and name."""
    for resource in sorted(view.resources()):
        yield from view.keys(resource)
