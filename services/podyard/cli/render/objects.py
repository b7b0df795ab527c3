"""Objects as `podyard get` shows them: kubectl's tables by `podyard.objects.printing`, or documents."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from podyard.cli.objects_view import ObjectsView
from podyard.cli.render import names, plain
from podyard.objects import printing
from podyard.objects.kinds import Kind, kind_of_resource
from podyard.proto import subjects
from podyard.proto.subjects import ObjectSubject

BLIND: Final = "Blind"
"""In a node's STATUS: what its agent said last cannot be read."""

Cells = tuple[str, ...]


def headers(kind: Kind, *, wide: bool, namespaces: bool) -> Cells:
    """Headers of a kind's table."""
    return printing.headers(kind, wide=wide, namespace=namespaces and kind.namespaced)


def row(
    view: ObjectsView, kind: Kind, key: ObjectSubject, now: float, *, wide: bool, namespaces: bool, prefixed: bool
) -> Cells:
    """Cells of one object; one that cannot be decoded has its name only.

    :param prefixed: the name as `kind/name`, where several kinds are listed
    """
    shown = namespaces and kind.namespaced
    item = view.typed(key)
    if item is None:
        width = len(headers(kind, wide=wide, namespaces=namespaces))
        cells = ((key.namespace, key.name) if shown else (key.name,)) + ("<unreadable>",)
        return (cells + ("",) * width)[:width]
    cells = printing.row(kind, item, now, wide=wide, namespace=shown)
    if key.resource == subjects.NODES and view.doubts(key):
        cells = (cells[0], f"{cells[1]},{BLIND}", *cells[2:])
    if not prefixed:
        return cells
    at = 1 if shown else 0
    return (*cells[:at], names.of_kind(kind, cells[at]), *cells[at + 1 :])


def notes(view: ObjectsView, keys: Sequence[ObjectSubject]) -> Iterator[str]:
    """What cannot be read of these objects, why, and what to do, a line each."""
    for key in keys:
        full = names.of_resource(key.resource, key.name)
        where = f" -n {key.namespace}" if key.namespace else ""
        if fault := view.fault(key):
            yield f"{full}{where}: unreadable, counts as absent: {fault}; `podyard delete {full}{where}` removes it"
        for doubt in view.doubts(key):
            yield f"{full}{where}: {doubt}"


def documents(view: ObjectsView, keys: Sequence[ObjectSubject], form: str, *, single: bool) -> str:
    """JSON or YAML: the object itself if one was named, else a List."""
    found = [view.document(key) for key in keys]
    whole: Any = found[0] if single and len(found) == 1 else {"apiVersion": "v1", "kind": "List", "items": found}
    return plain.dump(whole, form)


def name(key: ObjectSubject) -> str:
    """`kind.group/name`."""
    return names.of_kind(kind_of_resource(key.resource), key.name)
