"""Objects as `podyard get` shows them: kubectl's tables by `podyard.objects.printing`, or documents."""

from collections.abc import Sequence
from typing import Any

from podyard.cli.objects_view import ObjectsView
from podyard.cli.render import names, plain
from podyard.objects import printing
from podyard.objects.kinds import Kind, kind_of_resource
from podyard.proto.subjects import ObjectSubject

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
    if not prefixed:
        return cells
    at = 1 if shown else 0
    return (*cells[:at], names.of_kind(kind, cells[at]), *cells[at + 1 :])


def documents(view: ObjectsView, keys: Sequence[ObjectSubject], form: str, *, single: bool) -> str:
    """JSON or YAML: the object itself if one was named, else a List."""
    found = [view.document(key) for key in keys]
    whole: Any = found[0] if single and len(found) == 1 else {"apiVersion": "v1", "kind": "List", "items": found}
    return plain.dump(whole, form)


def name(key: ObjectSubject) -> str:
    """`kind.group/name`."""
    return names.of_kind(kind_of_resource(key.resource), key.name)
