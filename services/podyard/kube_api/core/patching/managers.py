"""Who owns which fields of an object: `metadata.managedFields`, read and written.

Source: apimachinery v0.36.2, pkg/util/managedfields/internal: managedfields.go, capmanagers.go, conflict.go.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from podyard.kube_api.core.errors import ApiError, Cause
from podyard.kube_api.core.patching.field_sets import FieldSet, read
from podyard.kube_api.core.patching.go_words import quoted
from podyard.objects.documents import Document, is_list, is_mapping, mapping
from podyard.objects.times import seconds_or

APPLY: Final = "Apply"
UPDATE: Final = "Update"
FIELDS_TYPE: Final = "FieldsV1"
MOST_UPDATERS: Final = 10
"""Entries of operation Update that are kept apart. Source: fieldmanager.go, DefaultMaxUpdateManagers."""

ANCIENT: Final = "ancient-changes"
"""Who owns what older updaters owned, when there are too many."""


class Manager(NamedTuple):
    """Who wrote, in which way."""

    name: str
    operation: str
    api_version: str
    """Of an Update; empty for Apply: who applies is one manager in all versions."""
    subresource: str = ""

    def text(self) -> str:
        """As the reference spells it to sort by."""
        told = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        told["subresource"] = self.subresource
        return msgspec.json.encode({key: value for key, value in told.items() if value}).decode()

    def told(self) -> str:
        """In a conflict."""
        found = quoted(self.name)
        if self.subresource:
            found += f" with subresource {quoted(self.subresource)}"
        return f"{found} using {self.api_version}" if self.operation == UPDATE else found


class Owned(NamedTuple):
    """What a manager owns."""

    fields: FieldSet
    api_version: str
    time: str = ""


Managed = dict[Manager, Owned]


def updater(name: str, api_version: str, subresource: str) -> Manager:
    """Who creates, puts or patches. Nobody's name is `unknown`."""
    return Manager(name or "unknown", UPDATE, api_version, subresource)


def applier(name: str, subresource: str) -> Manager:
    """Who applies."""
    return Manager(name or "unknown", APPLY, "", subresource)


def managed_of(document: Document) -> Managed:
    """Who owns what in `document`.

    :raises ValueError: if its `metadata.managedFields` are none
    """
    found = mapping(document, "metadata").get("managedFields")
    if found is None:
        return {}
    if not is_list(found):
        raise ValueError("managedFields is a list")
    return dict(_entry(at, entry) for at, entry in enumerate(found))


def _entry(at: int, entry: Any) -> tuple[Manager, Owned]:
    if not is_mapping(entry):
        raise ValueError(f"managedFields[{at}] is no mapping")
    operation, version = entry.get("operation"), entry.get("apiVersion")
    if operation not in (APPLY, UPDATE):
        raise ValueError("operation must be `Apply` or `Update`")
    if not version or not isinstance(version, str):
        raise ValueError("apiVersion must not be empty")
    if entry.get("fieldsType") != FIELDS_TYPE:
        raise ValueError(f"fieldsType of managedFields[{at}] must be {FIELDS_TYPE}")
    name, subresource, time = (entry.get(key) or "" for key in ("manager", "subresource", "time"))
    if not all(isinstance(text, str) for text in (name, subresource, time)):
        raise ValueError(f"manager, subresource and time of managedFields[{at}] must be texts")
    who = Manager(name, str(operation), version if operation == UPDATE else "", subresource)
    return who, Owned(read(entry.get("fieldsV1") or {}), version, time)


def is_reset(document: Document) -> bool:
    """Whether `document` asks to forget who owns what: its list is empty, or has one empty item."""
    return mapping(document, "metadata").get("managedFields") in ([], [{}])


def entries(managed: Mapping[Manager, Owned]) -> list[Document]:
    """As `metadata.managedFields`: appliers first, then by time, name, version, subresource."""
    ordered = sorted(
        managed.items(),
        key=lambda one: (
            one[0].operation,
            int(seconds_or(one[1].time, 0)),
            one[0].name,
            one[1].api_version,
            one[0].subresource,
        ),
    )
    return [_written(who, owned) for who, owned in ordered]


def _written(who: Manager, owned: Owned) -> Document:
    told = {
        "manager": who.name,
        "operation": who.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": FIELDS_TYPE,
        "fieldsV1": owned.fields.document(),
        "subresource": who.subresource,
    }
    return {key: value for key, value in told.items() if value or key == "fieldsV1"}


def capped(managed: Managed) -> Managed:
    """At most `MOST_UPDATERS` entries of Update if the oldest of one version can be made one."""
    updaters = [who for who in managed if who.operation == UPDATE]
    many = len(updaters)
    if many <= MOST_UPDATERS:
        return managed
    updaters.sort(key=lambda who: (int(seconds_or(managed[who].time, 0)), who.text()))
    kept = dict(managed)
    firsts: dict[str, Manager] = {}
    for who in updaters:
        if many <= MOST_UPDATERS:
            break
        owned = kept[who]
        first = firsts.setdefault(owned.api_version, who)
        if first is who:
            continue
        bucket = Manager(ANCIENT, UPDATE, owned.api_version)
        older = kept.get(bucket) or kept.pop(first)
        del kept[who]
        kept[bucket] = Owned(owned.fields | older.fields, owned.api_version, owned.time)
        many -= 1
    return kept


class Conflict(NamedTuple):
    """A field that is to change belongs to somebody else."""

    manager: Manager
    path: str


def conflict_error(conflicts: Iterable[Conflict]) -> ApiError:
    """409, in the reference's words.

    :param conflicts: at least one
    """
    ordered = sorted(conflicts, key=lambda one: one.manager.text())
    causes = [Cause("FieldManagerConflict", f"conflict with {one.manager.told()}", one.path) for one in ordered]
    if len(ordered) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {ordered[0].path}"
    else:
        lines: list[str] = []
        for at, one in enumerate(ordered):
            if not at or ordered[at - 1].manager != one.manager:
                lines.append(f"conflicts with {one.manager.told()}:")
            lines.append(f"- {one.path}")
        message = f"Apply failed with {len(ordered)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, causes=causes)
