"""Who owns what: pods and ReplicaSets by their controller, everything by its owners; how those owners
stand."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from podyard.cluster import finalizing
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


def waits_for(metadata: ObjectMeta, finalizer: str) -> bool:
    """Whether an object is deleted, and the collector has to take this finalizer away."""
    return metadata.deletion_timestamp is not None and finalizer in metadata.finalizers


class Owners(NamedTuple):
    """The owners that an object names, by uid. Source: garbagecollector.go, classifyReferences."""

    solid: tuple[str, ...] = ()
    """They live, and do not wait for the end of what they own."""
    dangling: tuple[str, ...] = ()
    """They are gone."""
    waiting: tuple[str, ...] = ()
    """They go once their dependents are gone."""

    @property
    def in_order(self) -> bool:
        """Whether there is nothing to be done."""
        return not self.dangling and not self.waiting


NOBODY: Final = Owners()


class Ownership:
    """Index of living objects by owner uid. Owned by the core; kept by `follow`."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._dependents: dict[str, dict[str, ObjectKey]] = {}
        self._waiting: dict[str, ObjectKey] = {}
        """Objects that go once their dependents are gone, or free, by uid."""

    def follow(self, change: Change) -> None:
        """One object changed."""
        uid = change.uid
        if change.old is not None:
            for owner in metadata_of(change.old).owner_references:
                self._forget(owner.uid, uid)
        if change.new is not None and not (isinstance(change.new, PodView) and change.new.gone):
            for owner in metadata_of(change.new).owner_references:
                self._dependents.setdefault(owner.uid, {})[uid] = change.key
        self._waiting.pop(uid, None)
        if change.new is not None:
            metadata = metadata_of(change.new)
            if waits_for(metadata, finalizing.FOREGROUND) or waits_for(metadata, finalizing.ORPHAN):
                self._waiting[uid] = change.key

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

    def waiting_owners(self, change: Change) -> Iterator[ObjectKey]:
        """Owners, before or after a change, that go once their dependents are gone, or free."""
        if not self._waiting:
            return
        for found in (change.old, change.new):
            for owner in () if found is None else metadata_of(found).owner_references:
                if owner.uid in self._waiting:
                    yield self._waiting[owner.uid]

    def blocking(self, owner_uid: str) -> list[ObjectKey]:
        """Dependents that their owner waits for. Source: graph.go, blockingDependents."""
        found: list[ObjectKey] = []
        for key in self.dependents(owner_uid).values():
            one = self.find(key)
            owners = () if one is None else metadata_of(one).owner_references
            if any(owner.uid == owner_uid and owner.block_owner_deletion for owner in owners):
                found.append(key)
        return found

    def waits(self, uid: str) -> bool:
        """Whether an object goes once its dependents are gone, or free."""
        return uid in self._waiting

    def owners(self, metadata: ObjectMeta) -> Owners:
        """How the owners stand that an object names. While one of them cannot be known, `NOBODY`: nothing is
        to be done."""
        if not metadata.owner_references:
            return NOBODY
        solid: list[str] = []
        dangling: list[str] = []
        waiting: list[str] = []
        for owner in metadata.owner_references:
            place = _place(owner, metadata.namespace)
            if place is None:
                return NOBODY
            found = next((one for one in map(self.find, place) if one is not None), None)
            if found is None or metadata_of(found).uid != owner.uid:
                dangling.append(owner.uid)
            elif waits_for(metadata_of(found), finalizing.FOREGROUND):
                waiting.append(owner.uid)
            else:
                solid.append(owner.uid)
        return Owners(tuple(solid), tuple(dangling), tuple(waiting))

    def find(self, key: ObjectKey) -> Any | None:
        """The living object in a place: a view, or a typed object."""
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


def _place(owner: OwnerReference, namespace: str) -> tuple[ObjectKey, ...] | None:
    """Where an owner may be. None: nobody can know, or it cannot own an object of no namespace. Source:
    isDangling (restMappingError, namespacedOwnerOfClusterScopedObjectErr)."""
    try:
        kind = kinds.kind_for(owner.api_version, owner.kind)
    except UnknownKindError:
        return None
    if kind.custom:
        return tuple(ObjectKey(kind.resource, one, owner.name) for one in dict.fromkeys((namespace, "")))
    if kind.namespaced and not namespace:
        return None
    return (ObjectKey(kind.resource, namespace if kind.namespaced else "", owner.name),)
