"""A namespace that is deleted: its pods go first, then all else in it, then itself.

Source: kubernetes v1.36.2, pkg/controller/namespace/deletion/namespaced_resources_deleter.go (Delete,
deleteAllContent), status_condition_utils.go.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from podyard.cluster import finalizing
from podyard.cluster.keys import ObjectKey
from podyard.objects.core import Namespace
from podyard.objects.documents import child
from podyard.objects.errors import UnknownKindError
from podyard.objects.kinds import kind_of_resource
from podyard.objects.meta import ObjectMeta
from podyard.proto import subjects
from podyard.workloads.core import documents
from podyard.workloads.core.actions import Alter, Delete, Document, Write
from podyard.workloads.core.looking import NOTHING, Looked, Surroundings
from podyard.workloads.core.ownership import View, metadata_of

WHY: Final = "its namespace is deleted"

_FOUND: Final = ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered")
_PARSED: Final = (
    "NamespaceDeletionGroupVersionParsingFailure",
    "ParsedGroupVersions",
    "All legacy kube types successfully parsed",
)
_DELETED: Final = (
    "NamespaceDeletionContentFailure",
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
)
_REMOVED: Final = ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed")
_FINISHED: Final = (
    "NamespaceFinalizersRemaining",
    "ContentHasNoFinalizers",
    "All content-preserving finalizers finished",
)


def look(view: View, around: Surroundings, key: ObjectKey, namespace: Namespace, now: float) -> Looked:
    """What is to be done for a namespace."""
    metadata = namespace.metadata
    if metadata.deletion_timestamp is None:
        return NOTHING
    content = dict(_pods(view, key.name)) or dict(_others(view, key.name))
    if content:
        return Looked(WHY, [*_deletions(content), *_told(around, key, metadata.uid, content, now)])
    if finalizing.KUBERNETES in namespace.spec.finalizers:
        return Looked("nothing is left in it", [Alter(key, metadata.uid, _emptied)])
    if namespace.spec.finalizers or metadata.finalizers:
        return NOTHING
    return Looked("nothing is left in it", [Delete(key, metadata.uid)])


def _pods(view: View, namespace: str) -> Iterator[tuple[ObjectKey, ObjectMeta]]:
    for pod in view.pods.values():
        if pod.namespace == namespace and not pod.gone:
            yield ObjectKey(subjects.PODS, *pod.key), pod.stored.metadata


def _others(view: View, namespace: str) -> Iterator[tuple[ObjectKey, ObjectMeta]]:
    for resource in sorted(view.resources):
        for place, found in view.objects(resource).items():
            if place[0] == namespace:
                yield ObjectKey(resource, *place), metadata_of(found)


def _deletions(content: dict[ObjectKey, ObjectMeta]) -> Iterator[Write]:
    for key, metadata in content.items():
        if metadata.deletion_timestamp is None:
            yield Delete(key, metadata.uid, propagation="Background")


def _emptied(document: Document) -> Document | None:
    spec = child(document, "spec")
    names: list[str] = list(spec.get("finalizers") or ())
    if finalizing.KUBERNETES not in names:
        return None
    spec["finalizers"] = [one for one in names if one != finalizing.KUBERNETES]
    return document


def _told(
    around: Surroundings, key: ObjectKey, uid: str, content: dict[ObjectKey, ObjectMeta], now: float
) -> list[Alter]:
    """What keeps it, as conditions; nothing while it may go at once."""
    document = around.document(key, uid)
    if document is None or all(metadata.deletion_timestamp is None for metadata in content.values()):
        return []
    conditions = [_condition(*_FOUND), _condition(*_PARSED), _condition(*_DELETED)]
    going = [metadata for metadata in content.values() if metadata.deletion_timestamp is not None]
    kinds = Counter(one.resource for one, metadata in content.items() if metadata.deletion_timestamp is not None)
    remaining = sorted(f"{_full(resource)} has {count} resource instances" for resource, count in kinds.items())
    held = Counter(name for metadata in going for name in metadata.finalizers)
    holding = sorted(f"{name} in {count} resource instances" for name, count in held.items())
    conditions.append(
        _condition(_REMOVED[0], "SomeResourcesRemain", f"Some resources are remaining: {', '.join(remaining)}", True)
        if remaining
        else _condition(*_REMOVED)
    )
    conditions.append(
        _condition(
            _FINISHED[0],
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {', '.join(holding)}",
            True,
        )
        if holding
        else _condition(*_FINISHED)
    )

    def alter(document: Document) -> Document | None:
        status: dict[str, Any] = dict(document.get("status") or {})
        status.pop("conditions", None)
        return document if documents.set_status(document, status, conditions, now) else None

    return [Alter(key, uid, alter)] if alter(document) is not None else []


def _condition(kind: str, reason: str, message: str, holds: bool = False) -> Document:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}


def _full(resource: str) -> str:
    """As the reference says it: `pods.`, `deployments.apps`."""
    try:
        api_version = kind_of_resource(resource).api_version
    except UnknownKindError:
        return resource
    return f"{resource.partition('.')[0]}.{api_version.rpartition('/')[0]}"
