"""How owners of fields change with an object.

Source: structured-merge-diff v6.3.2, merge/update.go; apimachinery v0.36.2,
pkg/util/managedfields/internal: stripmeta.go, managedfieldsupdater.go.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from podyard.kube_api.core.patching.field_sets import EMPTY, FieldSet, named, of_path
from podyard.kube_api.core.patching.managers import Conflict, Managed, Manager, Owned, capped
from podyard.kube_api.core.patching.shapes import Root
from podyard.kube_api.core.patching.typed_merge import merge, remove, with_structures
from podyard.kube_api.core.patching.typed_values import Comparison, compare, equal, fields
from podyard.objects.documents import Document, is_mapping

_UNTRACKED_METADATA: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)


def _untracked() -> FieldSet:
    found = of_path("apiVersion") | of_path("kind") | of_path("metadata")
    for name in _UNTRACKED_METADATA:
        found |= of_path("metadata", name)
    return found


UNTRACKED: Final = _untracked()
"""What belongs to nobody."""


class Write(NamedTuple):
    """Who writes what, in the terms of all functions here."""

    root: Root
    who: Manager
    api_version: str
    now: str
    """RFC 3339."""
    reset: frozenset[str]
    """Steps to fields of the object that this endpoint leaves as they were."""


class ConflictsError(Exception):
    """Fields that are to change belong to others."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        self.conflicts = conflicts
        super().__init__(f"{len(conflicts)} conflicts")


def write(root: Root, who: Manager, api_version: str, now: str, reset: Iterable[str]) -> Write:
    """:param reset: fields of the object, e.g. `status`"""
    return Write(root, who, api_version, now, frozenset(named(field) for field in reset))


def after_update(before: Document, after: Document, managed: Managed, by: Write) -> Managed:
    """Who owns what after the object has changed: what changed is the writer's alone, besides what was
    its."""
    change = _tracked_change(before, after, by)
    left = _left_to_others(managed, None, change, force=True)
    won = (change.modified | change.added) - UNTRACKED
    if won:
        mine = left.get(by.who)
        left[by.who] = Owned(won if mine is None else won | mine.fields, by.api_version, by.now)
    return capped(left)


def after_apply(
    live: Document, wanted: Document, managed: Managed, by: Write, *, force: bool
) -> tuple[Document, Managed]:
    """The object and its owners after somebody has applied `wanted`, which is of its type.

    :raises ConflictsError: if something changes that others own, unless `force` takes it from them
    """
    merged = merge(live, wanted, by.root)
    merged = merged if is_mapping(merged) else {}
    last = managed.get(by.who)
    mine = fields(wanted, by.root).without(by.reset)
    claimed = dict(managed)
    claimed[by.who] = Owned(mine, by.api_version, last.time if last is not None else "")
    if last is not None and last.fields:
        merged = _pruned(merged, last.fields, claimed, by.root)
    left = _left_to_others(claimed, by.who, _tracked_change(live, merged, by), force=force)
    changed = not equal(live, merged)
    stripped = mine - UNTRACKED
    left.pop(by.who, None)
    if stripped:
        time = by.now if changed else claimed[by.who].time
        left[by.who] = Owned(stripped, by.api_version, time)
    return merged, left


def _tracked_change(before: Document, after: Document, by: Write) -> Comparison:
    change = compare(before, after, by.root)
    return Comparison(*(part.without(by.reset) for part in change)) if by.reset else change


def _left_to_others(managed: Managed, who: Manager | None, change: Comparison, *, force: bool) -> Managed:
    """What each owns of what it owned; `who` keeps all."""
    taken = change.modified | change.added
    found: Managed = {}
    conflicts: list[Conflict] = []
    for manager, owned in managed.items():
        if manager == who:
            found[manager] = owned
            continue
        lost = owned.fields & taken
        if lost and not force:
            conflicts += [Conflict(manager, path) for path in lost.paths()]
        kept = owned.fields - lost - change.removed
        if kept:
            found[manager] = owned._replace(fields=kept)
    if conflicts:
        raise ConflictsError(conflicts)
    return found


def _pruned(merged: Document, last: FieldSet, managed: Managed, root: Root) -> Document:
    """Without what the applier owned last time and nobody owns now, and what such an item or field held."""
    whole = with_structures(fields(merged, root), root)
    last = with_structures(last, root)
    pruned = _without(merged, last, root)
    claimed = EMPTY
    for owned in managed.values():
        claimed |= owned.fields
    pruned = _without(merged, whole - (_all(pruned, root) | with_structures(claimed, root)), root)
    return _without(merged, (whole - _all(pruned, root)) & last, root)


def _all(document: Document, root: Root) -> FieldSet:
    return with_structures(fields(document, root), root)


def _without(document: Document, gone: FieldSet, root: Root) -> Document:
    left = remove(document, gone, root)
    return left if is_mapping(left) else {}
