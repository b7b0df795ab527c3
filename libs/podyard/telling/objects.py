"""The joined view of the cluster, and the documents it was made from: people who ask for JSON want every
field.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from podyard.cluster.documents import DocumentView
from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView, requested_by
from podyard.cluster.view import ClusterView
from podyard.objects import decoding, secrets
from podyard.objects.documents import mappings
from podyard.objects.errors import ObjectError
from podyard.objects.kinds import kind_of_resource
from podyard.objects.pod import PodStatus
from podyard.objects.quotas import QUOTAS, ResourceQuota, ResourceQuotaStatus
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.events import ClusterEvent
from podyard.telling import pod_conditions
from podyard.telling.node_room import TakenNode
from podyard.telling.pod_conditions import NOTHING, Evidence


class Moment(NamedTuple):
    """One object as it was known at one moment. Nothing in it changes, so its document can be made later."""

    key: ObjectKey
    stored: Stored
    viewed: Any
    """A `PodView` or `NodeView`; of all other resources the joined typed object. `None` if it cannot be
    read."""
    fault: str = ""
    """Why it cannot be read; empty if it can be."""
    evidence: Evidence = NOTHING
    """Of a pod: what is known of it besides object and status."""

    def document(self, shown: Mapping[str, str]) -> dict[str, Any]:
        """The whole document with what others know of the object put in; apiVersion and kind always there.

        :param shown: values of a Secret that are told, in base64 by key; all others are hidden
        """
        key = self.key
        try:
            event = codec.decode(ClusterEvent, self.stored.payload)
            document = decoding.document(event.object)
        except (MessageError, ObjectError) as error:
            return {"metadata": {"namespace": key.namespace, "name": key.name}, "podyardError": str(error)}
        kind = kind_of_resource(key.resource)
        whole: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind, **document}
        if not isinstance(whole.get("metadata"), dict):
            whole["metadata"] = {"namespace": key.namespace, "name": key.name}
        whole["metadata"]["resourceVersion"] = str(self.stored.sequence)
        if self.fault:
            whole["podyardError"] = self.fault
        if key.resource == secrets.RESOURCE and whole.get("data"):
            whole["data"] = {**dict.fromkeys(whole["data"], secrets.HIDDEN), **shown}
        if key.resource == subjects.PODS:
            _join_pod(whole, self.viewed, self.evidence)
        elif key.resource == subjects.NODES:
            _join_node(whole, self.viewed)
        elif key.resource == QUOTAS:
            _join_quota(whole, self.viewed)
        return whole


class Objects:
    """What a `ClusterView` and a `DocumentView` of the same deliveries know together; both are folded
    elsewhere.
    """

    def __init__(self, view: ClusterView, documents: DocumentView) -> None:
        self.view = view
        self.documents = documents
        self.revealed: dict[ObjectKey, dict[str, str]] = {}
        """Values of Secrets that the api has shown, in base64 by key. No others are told."""
        self.evidence: dict[str, Evidence] = {}
        """What is known of pods besides object and status, by uid."""

    def has(self, key: ObjectKey) -> bool:
        """Whether the object is there, whether it can be read or not."""
        stored = self.documents.stored(key)
        return stored is not None and not stored.deleted

    def keys(self, resource: str, namespace: str | None = None) -> list[ObjectKey]:
        """Objects of a resource, by namespace and name; `None` is every namespace."""
        return sorted(key for key in self.documents.keys(resource) if namespace in (None, key.namespace))

    def typed(self, key: ObjectKey) -> Any:
        """The joined typed object; `None` if it is not there or cannot be decoded."""
        if key.resource == subjects.PODS:
            pod = self.view.pods.get((key.namespace, key.name))
            return None if pod is None else pod.pod
        if key.resource == subjects.NODES:
            node = self.view.nodes.get(key.name)
            return None if node is None else node.node
        found = self.view.objects(key.resource).get((key.namespace, key.name))
        return self._with_usage(found) if isinstance(found, ResourceQuota) else found

    def _with_usage(self, quota: ResourceQuota) -> ResourceQuota:
        """With what is used of it; the same while it is not counted."""
        metadata = quota.metadata
        fact = self.view.quota_usages.get((metadata.namespace, metadata.name, metadata.uid))
        if fact is None:
            return quota
        return msgspec.structs.replace(quota, status=ResourceQuotaStatus(hard=fact.hard, used=fact.used))

    def for_table(self, key: ObjectKey) -> Any:
        """What `tables.row` makes a row of: the joined typed object, of a node with what its pods request;
        `None` as of `typed`."""
        item = self.typed(key)
        if item is None or key.resource != subjects.NODES:
            return item
        pods = self.view.pods_on(key.name).values()
        return TakenNode(item, requested_by(pods), len(pods))

    def fault(self, key: ObjectKey) -> str:
        """Why an object cannot be read; empty if it can be. One that cannot counts as absent for every
        service.
        """
        found = self.view.unreadable.get(subjects.object_(*key))
        return "" if found is None else found.reason

    def doubts(self, key: ObjectKey) -> list[str]:
        """What else that is stored about an object cannot be read, in sentences' ends."""
        if key.resource == subjects.NODES:
            node = self.view.nodes.get(key.name)
            blind = "" if node is None else node.blind
            return (
                [f"what its agent said last cannot be read, so what it said before is shown: {blind}"] if blind else []
            )
        pod = self.view.pods.get((key.namespace, key.name)) if key.resource == subjects.PODS else None
        if pod is None:
            return []
        binding = subjects.binding(*pod.key, pod.uid)
        status = subjects.pod_status(pod.node_name, *pod.key, pod.uid)
        said = {binding: "its binding", status: f"what the agent of node {pod.node_name} said of it"}
        unreadable = self.view.unreadable
        return [
            f"{what} cannot be read: {unreadable[subject].reason}{'; see podyard mend' if subject == binding else ''}"
            for subject, what in said.items()
            if subject in unreadable
        ]

    def labels(self, key: ObjectKey) -> dict[str, str]:
        """Labels of an object."""
        found = self.typed(key)
        return {} if found is None else found.metadata.labels

    def moment(self, key: ObjectKey) -> Moment | None:
        """The object as it is now: later versions leave the moment as it was. `None` if it is not there."""
        stored = self.documents.stored(key)
        return None if stored is None or stored.deleted else self.moment_of(key, stored)

    def moment_of(self, key: ObjectKey, stored: Stored) -> Moment:
        """The object as it is now.

        :param stored: its last version
        """
        fault = self.fault(key) if self.view.unreadable else ""
        if key.resource == subjects.PODS:
            viewed: Any = self.view.pods.get((key.namespace, key.name))
            evidence = NOTHING if viewed is None else self.evidence.get(viewed.uid, NOTHING)
            return Moment(key, stored, viewed, fault, evidence)
        viewed = self.view.nodes.get(key.name) if key.resource == subjects.NODES else self.typed(key)
        return Moment(key, stored, viewed, fault)

    def document(self, key: ObjectKey) -> dict[str, Any]:
        """The whole document with what others know of the object put in; apiVersion and kind always there.

        :raises KeyError: if it is not there
        """
        moment = self.moment(key)
        if moment is None:
            raise KeyError(key)
        return moment.document(self.revealed.get(key, {}))


def _join_pod(document: dict[str, Any], view: PodView | None, evidence: Evidence) -> None:
    if view is None:
        return
    if view.node_name:
        document.setdefault("spec", {})["nodeName"] = view.node_name
    document["status"] = _joined_status(dict(document.get("status") or {}), view, evidence)


def _joined_status(status: dict[str, Any], view: PodView, evidence: Evidence) -> dict[str, Any]:
    """The stored status with what others say put in. What nobody else says stays as it was written, with all
    that its typed view does not know."""
    stored, joined = view.stored.status, view.pod.status
    written = mappings(status, "conditions")
    as_written = dict(zip(map(id, stored.conditions), written, strict=False))
    for field, name in zip(PodStatus.__struct_fields__, PodStatus.__struct_encode_fields__, strict=True):
        said = getattr(joined, field)
        if said is getattr(stored, field):
            continue
        if told := msgspec.to_builtins(said):
            status[name] = told
        else:
            status.pop(name, None)
    conditions = pod_conditions.with_scheduled(view, evidence)
    if conditions:
        status["conditions"] = [as_written.get(id(one)) or msgspec.to_builtins(one) for one in conditions]
    return status


def _join_quota(document: dict[str, Any], quota: ResourceQuota | None) -> None:
    if quota is not None and quota.status.used:
        document["status"] = msgspec.to_builtins(quota.status)


def _join_node(document: dict[str, Any], view: NodeView | None) -> None:
    if view is None or view.node is view.stored:
        return
    if view.node.spec.taints:
        document.setdefault("spec", {})["taints"] = msgspec.to_builtins(view.node.spec.taints)
    status = document.setdefault("status", {})
    status["conditions"] = msgspec.to_builtins(view.node.status.conditions)
