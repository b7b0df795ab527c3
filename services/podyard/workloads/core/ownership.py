"""Who owns what: pods and ReplicaSets by their controller, everything by its owners; what is left without
one.

Source: pkg/controller/garbagecollector/garbagecollector.go (attemptToDeleteItem), background deletion.
"""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from podyard.cluster.changes import Change
from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.cluster.tables import QuotaKey
from podyard.objects import kinds
from podyard.objects.errors import UnknownKindError
from podyard.objects.meta import ObjectMeta, OwnerReference
from podyard.proto import subjects
from podyard.proto.facts import QuotaUsageFact


class View(Protocol):
    """What the core reads of the informer's view (`podyard.cluster.view.ClusterView`)."""

    @property
    def position(self) -> int: ...
    @property
    def pods(self) -> Mapping[NamespacedName, PodView]: ...
    @property
    def pods_by_uid(self) -> Mapping[str, PodView]: ...
    @property
    def nodes(self) -> Mapping[str, NodeView]: ...
    @property
    def quota_usages(self) -> Mapping[QuotaKey, QuotaUsageFact]: ...
    @property
    def resources(self) -> Collection[str]: ...
    def objects(self, resource: str) -> Mapping[NamespacedName, Any]: ...
    def version_of(self, subject: str) -> int: ...


def metadata_of(found: Any) -> ObjectMeta:
    """Metadata of a view of a pod or node, or of a typed object."""
    return found.stored.metadata if isinstance(found, PodView | NodeView) else found.metadata


class Ownership:
    """Index of living objects by owner uid. Owned by the core; kept by `follow`."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._dependents: dict[str, dict[str, ObjectKey]] = {}

    def follow(self, change: Change) -> None:
        """One object changed."""
        uid = change.uid
        if change.old is not None:
            for owner in metadata_of(change.old).owner_references:
                self._forget(owner.uid, uid)
        if change.new is not None and not (isinstance(change.new, PodView) and change.new.gone):
            for owner in metadata_of(change.new).owner_references:
                self._dependents.setdefault(owner.uid, {})[uid] = change.key

    def dependents(self, owner_uid: str) -> dict[str, ObjectKey]:
        """Living objects that name this owner, by uid."""
        return self._dependents.get(owner_uid, {})

    def pods_of(self, owner_uid: str) -> list[PodView]:
        """Pods with a living object that this owner controls."""
        found: list[PodView] = []
        for uid, key in self.dependents(owner_uid).items():
            pod = self._view.pods_by_uid.get(uid) if key.resource == subjects.PODS else None
            if pod is not None and not pod.gone and _controls(owner_uid, pod.stored.metadata):
                found.append(pod)
        return found

    def controlled(self, owner_uid: str, resource: str) -> list[Any]:
        """Typed objects of a resource that this owner controls."""
        objects = self._view.objects(resource)
        keys = [key for key in self.dependents(owner_uid).values() if key.resource == resource]
        found = [objects[key.namespaced_name] for key in keys if key.namespaced_name in objects]
        return [one for one in found if _controls(owner_uid, one.metadata)]

    def orphans(self, owner_uid: str) -> list[tuple[ObjectKey, str]]:
        """After an owner has gone: its dependents without another living owner, key and uid."""
        return [(key, uid) for uid, key in self.dependents(owner_uid).items() if self.is_orphan(key, uid)]

    def is_orphan(self, key: ObjectKey, uid: str) -> bool:
        """Whether the object names owners, and none of them lives."""
        found = self._find(key)
        if found is None or metadata_of(found).uid != uid:
            return False
        metadata = metadata_of(found)
        owners = metadata.owner_references
        return bool(owners) and not any(self._lives(owner, metadata.namespace) for owner in owners)

    def _lives(self, owner: OwnerReference, namespace: str) -> bool:
        """Whether the owner is there under its uid. One of an unknown kind is taken to live: nobody here
        could know."""
        try:
            kind = kinds.kind_for(owner.api_version, owner.kind)
        except UnknownKindError:
            return True
        found = self._find(ObjectKey(kind.resource, namespace if kind.namespaced else "", owner.name))
        if found is None and kind.custom:
            found = self._find(ObjectKey(kind.resource, "", owner.name))
        return found is not None and metadata_of(found).uid == owner.uid

    def _find(self, key: ObjectKey) -> Any | None:
        if key.resource == subjects.PODS:
            pod = self._view.pods.get(key.namespaced_name)
            return None if pod is None or pod.gone else pod
        if key.resource == subjects.NODES:
            return self._view.nodes.get(key.name)
        return self._view.objects(key.resource).get(key.namespaced_name)

    def _forget(self, owner_uid: str, uid: str) -> None:
        dependents = self._dependents.get(owner_uid)
        if dependents is not None:
            dependents.pop(uid, None)
            if not dependents:
                del self._dependents[owner_uid]


def _controls(owner_uid: str, metadata: ObjectMeta) -> bool:
    controller = metadata.controller
    return controller is not None and controller.uid == owner_uid
