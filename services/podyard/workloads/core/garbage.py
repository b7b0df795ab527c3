"""What is collected: objects whose owners are gone or wait for their end, and owners whose dependents are
gone, or free.

- `foregroundDeletion`: the owner goes after those of its dependents that block its end
- `orphan`: its dependents forget the owner, then it goes
- else they go after it

Source: kubernetes v1.36.2, pkg/controller/garbagecollector/garbagecollector.go (attemptToDeleteItem,
processDeletingDependentsItem, attemptToOrphanWorker), graph_builder.go.
"""

from collections.abc import Collection, Sequence
from typing import Any

from podyard.cluster import finalizing
from podyard.cluster.keys import ObjectKey
from podyard.objects.documents import mappings
from podyard.objects.meta import ObjectMeta
from podyard.workloads.core.actions import Alter, Delete, Document, Write
from podyard.workloads.core.looking import Looked
from podyard.workloads.core.ownership import Owners, Ownership, metadata_of, waits_for

OWNER_GONE = "its owner is gone"
OWNER_WAITS = "its owner waits for its end"


def look(ownership: Ownership, key: ObjectKey, metadata: ObjectMeta) -> Looked | None:
    """What is to be done for an object; None: nothing, others may go on with it."""
    if waits_for(metadata, finalizing.ORPHAN):
        return _set_free(ownership, key, metadata)
    if waits_for(metadata, finalizing.FOREGROUND):
        if ownership.blocking(metadata.uid):
            return None
        return Looked("nothing of it is left", [_without(key, metadata, finalizing.FOREGROUND)])
    if metadata.deletion_timestamp is not None:
        return None
    owners = ownership.owners(metadata)
    return None if owners.in_order else _of_owned(ownership, key, metadata, owners)


def concerned(ownership: Ownership, key: ObjectKey, before: Any, after: Any) -> list[ObjectKey]:
    """What is to be looked at since an object changed, besides the owners that wait for it."""
    if after is None:
        return list(ownership.dependents(metadata_of(before).uid).values())
    metadata = metadata_of(after)
    found: list[ObjectKey] = []
    if ownership.waits(metadata.uid):
        found += [key, *ownership.dependents(metadata.uid).values()]
    named = before is None or metadata_of(before).owner_references != metadata.owner_references
    if named and metadata.owner_references and not ownership.owners(metadata).in_order:
        found.append(key)
    return found


def _of_owned(ownership: Ownership, key: ObjectKey, metadata: ObjectMeta, owners: Owners) -> Looked:
    if owners.solid:
        return Looked("an owner of it is gone", [_disowned(key, metadata, (*owners.dangling, *owners.waiting))])
    own = ownership.dependents(metadata.uid)
    if not owners.waiting or not own:
        return Looked(OWNER_WAITS if owners.waiting else OWNER_GONE, [Delete(key, metadata.uid)])
    writes: list[Write] = []
    if any(ownership.waits(uid) for uid in own):  # it may be a circle: nobody in it may wait for the other
        writes.append(_unblocking(key, metadata))
    return Looked(OWNER_WAITS, [*writes, Delete(key, metadata.uid, propagation="Foreground")])


def _set_free(ownership: Ownership, key: ObjectKey, metadata: ObjectMeta) -> Looked:
    """First all dependents, then the owner."""
    freed: list[Write] = []
    for uid, dependent in ownership.dependents(metadata.uid).items():
        found = ownership.find(dependent)
        if found is not None and metadata_of(found).uid == uid:
            freed.append(_disowned(dependent, metadata_of(found), (metadata.uid,)))
    if freed:
        return Looked("its owner goes without it", freed)
    return Looked("what it owned is free", [_without(key, metadata, finalizing.ORPHAN)])


def _disowned(key: ObjectKey, metadata: ObjectMeta, owners: Collection[str]) -> Alter:
    """The object without references to these owners."""

    def alter(document: Document) -> Document | None:
        before = mappings(document["metadata"], "ownerReferences")
        return _with_owners(document, before, [one for one in before if one.get("uid") not in owners])

    return Alter(key, metadata.uid, alter)


def _unblocking(key: ObjectKey, metadata: ObjectMeta) -> Alter:
    """The object without a claim that its owners wait for it. Source: patch.go,
    unblockOwnerReferencesStrategicMergePatch."""

    def alter(document: Document) -> Document | None:
        before = mappings(document["metadata"], "ownerReferences")
        after = [{**one, "blockOwnerDeletion": False} if one.get("blockOwnerDeletion") else one for one in before]
        return _with_owners(document, before, after)

    return Alter(key, metadata.uid, alter)


def _with_owners(document: Document, before: Sequence[Document], after: Sequence[Document]) -> Document | None:
    if after == before:
        return None
    if after:
        document["metadata"]["ownerReferences"] = list(after)
    else:
        del document["metadata"]["ownerReferences"]
    return document


def _without(key: ObjectKey, metadata: ObjectMeta, finalizer: str) -> Alter:
    return Alter(key, metadata.uid, finalizing.taking(finalizer))
