"""What `podyard get` says of stored objects: rows of kubectl's tables, whole documents, and what cannot be
read.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from podyard.cluster.keys import ObjectKey
from podyard.objects.kinds import Kind, kind_of_resource
from podyard.proto import subjects
from podyard.telling import names, tables
from podyard.telling.objects import Objects

BLIND: Final = "Blind"
"""In a node's STATUS: what its agent said last cannot be read."""

Cells = tuple[str, ...]


def headers(kind: Kind, *, wide: bool, namespaces: bool) -> Cells:
    """Headers of a kind's table."""
    return tables.headers(kind, wide=wide, namespace=namespaces and kind.namespaced)


def row(
    objects: Objects, kind: Kind, key: ObjectKey, now: float, *, wide: bool, namespaces: bool, prefixed: bool
) -> Cells:
    """Cells of one object; one that cannot be decoded has its name only.

    :param prefixed: the name as `kind/name`, where several kinds are listed
    """
    shown = namespaces and kind.namespaced
    item = objects.for_table(key)
    if item is None:
        width = len(headers(kind, wide=wide, namespaces=namespaces))
        cells = ((key.namespace, key.name) if shown else (key.name,)) + ("<unreadable>",)
        return (cells + ("",) * width)[:width]
    cells = tables.row(kind, item, now, wide=wide, namespace=shown)
    if key.resource == subjects.NODES and objects.doubts(key):
        cells = (cells[0], f"{cells[1]},{BLIND}", *cells[2:])
    if not prefixed:
        return cells
    at = 1 if shown else 0
    return (*cells[:at], names.of_kind(kind, cells[at]), *cells[at + 1 :])


def notes(objects: Objects, keys: Sequence[ObjectKey]) -> Iterator[str]:
    """What cannot be read of these objects, why, and what to do, a line each."""
    for key in keys:
        full = names.of_resource(key.resource, key.name)
        where = f" -n {key.namespace}" if key.namespace else ""
        if fault := objects.fault(key):
            yield f"{full}{where}: unreadable, counts as absent: {fault}; `podyard delete {full}{where}` removes it"
        for doubt in objects.doubts(key):
            yield f"{full}{where}: {doubt}"


def document(objects: Objects, keys: Sequence[ObjectKey], *, single: bool) -> dict[str, Any]:
    """For JSON and YAML: the object itself if one was named, else a List."""
    found = [objects.document(key) for key in keys]
    return found[0] if single and len(found) == 1 else {"apiVersion": "v1", "kind": "List", "items": found}


def name(key: ObjectKey) -> str:
    """`kind.group/name`."""
    return names.of_kind(kind_of_resource(key.resource), key.name)
