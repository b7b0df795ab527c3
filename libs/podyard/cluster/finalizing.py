"""What keeps a deleted object: finalizers, and what becomes of its dependents. Pure.

A deleted object that has finalizers gets a deletion timestamp and stays, until the write that takes the last
of them away. Two finalizers are the garbage collector's: `orphan`, which lets dependents go free, and
`foregroundDeletion`, which waits for their end. Of a namespace those of its spec count, too.

docs/rules.md, a-deleted-object-goes-with-its-last-finalizer

Source: kubernetes v1.36.2, apiserver/pkg/registry/generic/registry/store.go (ShouldDeleteDuringUpdate,
deletionFinalizersForGarbageCollection, markAsDeleting), pkg/registry/core/namespace/storage/storage.go.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from podyard.objects import times
from podyard.objects.documents import child, mapping
from podyard.proto.objects_api import Propagation

Document: TypeAlias = dict[str, Any]

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
NAMESPACES: Final = "namespaces"
KUBERNETES: Final = "kubernetes"
"""Of a namespace's spec: its content is not gone yet. Source: core/v1, FinalizerKubernetes."""
TERMINATING: Final = "Terminating"
IMMORTAL: Final = frozenset(("default", "kube-system", "kube-public"))
"""Namespaces that nobody deletes. Source: apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go."""

_OF_COLLECTOR: Final = (ORPHAN, FOREGROUND)
_BY_POLICY: Final = {"Orphan": ORPHAN, "Foreground": FOREGROUND}


def finalizers(document: Document) -> list[str]:
    """Those of its metadata."""
    return list(mapping(document, "metadata").get("finalizers") or ())


def of_spec(document: Document) -> list[str]:
    """Those of a namespace's spec."""
    return list(mapping(document, "spec").get("finalizers") or ())


def is_deleting(document: Document) -> bool:
    """Whether somebody has deleted it."""
    return bool(mapping(document, "metadata").get("deletionTimestamp"))


def keeps(resource: str, document: Document) -> list[str]:
    """The finalizers that keep an object once it is deleted, in order."""
    return [*(of_spec(document) if resource == NAMESPACES else ()), *finalizers(document)]


def set_policy(document: Document, propagation: Propagation | None) -> None:
    """Give an object that is deleted the collector's finalizer of a policy, in place, and take the other one
    away. Without a policy those that it has decide."""
    before = finalizers(document)
    if not propagation:
        return
    wanted = _BY_POLICY.get(propagation)
    kept = [one for one in before if one not in _OF_COLLECTOR]
    after = kept if wanted is None else [*kept, wanted]
    if set(after) != set(before):
        set_finalizers(document, after)


def set_finalizers(document: Document, names: list[str]) -> None:
    """Those of its metadata, in place."""
    metadata = child(document, "metadata")
    if names:
        metadata["finalizers"] = names
    else:
        metadata.pop("finalizers", None)


def without(document: Document, name: str) -> Document | None:
    """The object without a finalizer of its metadata; None if it has it not. Changes it in place."""
    names = finalizers(document)
    if name not in names:
        return None
    set_finalizers(document, [one for one in names if one != name])
    return document


def taking(name: str) -> Callable[[Document], Document | None]:
    """`without` for one finalizer, as an alteration."""
    return lambda document: without(document, name)


def mark_deleting(document: Document, now: float) -> bool:
    """Deleted, with no time left but for its finalizers; in place.

    :param now: seconds since 1970
    :return: whether anything changed
    """
    metadata = child(document, "metadata")
    ends = times.seconds_or(metadata.get("deletionTimestamp"), None)
    changed = metadata.get("deletionGracePeriodSeconds") != 0
    if ends is None:
        count_generation(document)
    if ends is None or ends > now:
        metadata["deletionTimestamp"] = times.rfc3339(now)
        changed = True
    metadata["deletionGracePeriodSeconds"] = 0
    return changed


def terminate(document: Document, now: float) -> None:
    """A namespace is deleted: nothing is created in it any more; in place.

    :param now: seconds since 1970
    """
    child(document, "metadata")["deletionTimestamp"] = times.rfc3339(now)
    child(document, "status")["phase"] = TERMINATING


def count_generation(document: Document) -> None:
    """A first deletion is a new generation, where generations are counted."""
    metadata = child(document, "metadata")
    if metadata.get("generation"):
        metadata["generation"] += 1


def waits(document: Document) -> bool:
    """Whether the object is deleted, and goes with the write that takes away the last of what keeps it."""
    return is_deleting(document) and not mapping(document, "metadata").get("deletionGracePeriodSeconds")
