"""Objects as a Table of meta.k8s.io/v1: what kubectl prints. Pure.

Sources: kubernetes v1.36.2, pkg/printers/internalversion/printers.go; staging/src/k8s.io:
apiserver/pkg/endpoints/handlers/response.go (asTable), apiserver/pkg/registry/rest/table.go,
apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.kube_api.core import columns, document_cells
from podyard.kube_api.core.columns import Column
from podyard.kube_api.core.errors import bad_request
from podyard.kube_api.core.forms import META_VERSION, Bodies, Page, list_metadata, mark_metadata, partial
from podyard.kube_api.core.items import Item
from podyard.kube_api.core.json_paths import Path
from podyard.objects.documents import Document, is_mapping, mapping
from podyard.objects.kinds import Kind
from podyard.objects.pod import ENDED
from podyard.objects.times import age
from podyard.telling import tables
from podyard.telling.node_room import TakenNode

NOTHING: Final = "None"
METADATA: Final = "Metadata"
OBJECT: Final = "Object"

_ENDED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}
_NO_ROOM: Final[dict[str, int]] = {}


class CustomColumn(NamedTuple):
    """A column that the definition of a kind adds."""

    column: Column
    path: Path | None
    """Where its value lies; `None`: nobody can read what the definition says."""


def custom_columns(added: Sequence[Document]) -> tuple[CustomColumn, ...]:
    """The columns after Name of a kind of which a definition is stored.

    :param added: `additionalPrinterColumns` of the served version; empty: the age alone
    """
    if not added:
        return (CustomColumn(columns.AGE, Path(".metadata.creationTimestamp")),)
    return tuple(map(_custom, added))


def _custom(one: Document) -> CustomColumn:
    where = str(one.get("jsonPath", ""))
    told = f"Custom resource definition column (in JSONPath format): {where}"
    priority = one.get("priority")
    column = Column(
        str(one.get("name", "")),
        str(one.get("type", "string")),
        str(one.get("format") or ""),
        priority if isinstance(priority, int) else 0,
        str(one.get("description") or told),
    )
    try:
        return CustomColumn(column, Path(where))
    except ValueError:
        return CustomColumn(column, None)


def check_include(include: str) -> None:
    """
    :raises ApiError: `includeObject` is none of the words there are
    """
    if include not in ("", NOTHING, METADATA, OBJECT):
        allowed = f'supported values: "{METADATA}", "{NOTHING}", "{OBJECT}", ""'
        told = f'includeObject: Unsupported value: "{include[:100]}": {allowed}'
        raise bad_request(f"Unable to convert to Table as requested: {told}")


class Table:
    """Objects as rows of a table."""

    late = True  # ages

    def __init__(
        self,
        bodies: Bodies,
        *,
        kind: Kind,
        api_version: str,
        include: str = "",
        custom: Sequence[CustomColumn] | None = None,
    ) -> None:
        """
        :param include: `includeObject`: None, Metadata, Object; empty: Metadata
        :param custom: of a custom kind the columns of its definition
        :raises ApiError: for another word
        """
        check_include(include)
        self.key = f"table {api_version} {kind.kind} {include}"
        self._bodies = bodies
        self._include = include or METADATA
        self._rows = _rows_of(kind, custom)
        self._prefix = msgspec.json.encode({"kind": kind.kind, "apiVersion": api_version})[:-1] + b","
        self._heads = msgspec.json.encode([column.document() for column in self._rows.columns])

    def one(self, item: Item, now: float) -> bytes:
        return self._table(b'{"resourceVersion":"%d"}' % item.version, [self._row(item, now)], self._heads) + b"\n"

    def pieces(self, items: Sequence[Item], now: float) -> list[bytes]:
        return [self._row(item, now) for item in items]

    def several(self, page: Page, pieces: Sequence[bytes]) -> bytes:
        return self._table(list_metadata(page), pieces, self._heads) + b"\n"

    def event(self, type_: str, item: Item, now: float, *, first: bool) -> bytes:
        heads = self._heads if first else b"null"
        table = self._table(b'{"resourceVersion":"%d"}' % item.version, [self._row(item, now)], heads)
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), table)

    def bookmark(self, version: int, *, initial_end: bool, first: bool) -> bytes:
        """The row of an object that is nothing but a version."""
        cells = msgspec.json.encode(["", *[None] * (len(self._rows.columns) - 1)])
        told = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%b}'
        row = b'{"cells":%b,"object":%b}' % (cells, told % mark_metadata(version, initial_end))
        table = self._table(b'{"resourceVersion":"%d"}' % version, [row], self._heads if first else b"null")
        return b'{"type":"BOOKMARK","object":%b}\n' % table

    def _table(self, metadata: bytes, rows: Sequence[bytes], heads: bytes) -> bytes:
        return b'{"kind":"Table","apiVersion":"%b","metadata":%b,"columnDefinitions":%b,"rows":[%b]}' % (
            META_VERSION.encode(),
            metadata,
            heads,
            b",".join(rows),
        )

    def _row(self, item: Item, now: float) -> bytes:
        cells = msgspec.json.encode(self._rows.cells(item, now))
        return b'{"cells":%b%b,"object":%b}' % (cells, _conditions(item), self._object(item))

    def _object(self, item: Item) -> bytes:
        if self._include == NOTHING:
            return b"null"
        if self._include == METADATA:
            return partial(self._bodies, item)
        return self._prefix + self._bodies.of(item)


def _conditions(item: Item) -> bytes:
    """Of a pod that has ended, that it has. Source: printPod."""
    viewed = item.moment.viewed
    if not isinstance(viewed, PodView) or viewed.pod.status.phase not in ENDED:
        return b""
    phase = viewed.pod.status.phase
    told = {"type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase]}
    return b',"conditions":[%b]' % msgspec.json.encode(told)


class _Rows:
    """The columns of a kind, and an object's cells."""

    columns: Sequence[Column]

    def cells(self, item: Item, now: float) -> Sequence[Any]:
        raise NotImplementedError


def _rows_of(kind: Kind, custom: Sequence[CustomColumn] | None) -> _Rows:
    if custom is not None:
        return _CustomRows(custom)
    found = columns.OF_RESOURCES.get(kind.resource)
    if found is None:
        return _DefaultRows()
    if kind.resource == "events":
        return _EventRows()
    of_document = document_cells.OF_RESOURCES.get(kind.resource)
    return _TypedRows(kind, found) if of_document is None else _DocumentRows(kind.resource, found, of_document)


class _DefaultRows(_Rows):
    """Of kinds without columns of their own: the name, and when it was made."""

    columns = columns.DEFAULT

    def cells(self, item: Item, now: float) -> Sequence[Any]:
        return item.key.name, _metadata(item).get("creationTimestamp")


class _EventRows(_Rows):
    """Of events, whose name does not come first."""

    columns = columns.OF_RESOURCES["events"]

    def cells(self, item: Item, now: float) -> Sequence[Any]:
        return document_cells.event(item.moment.document({}), now)


class _TypedRows(_Rows):
    """Of kinds that have a type here, as `podyard get` shows them."""

    def __init__(self, kind: Kind, found: Sequence[Column]) -> None:
        self.columns = found
        self._kind = kind
        headers = tables.headers(kind, wide=True)
        self._places = [headers.index(column.name.upper()) for column in found]

    def cells(self, item: Item, now: float) -> Sequence[Any]:
        viewed: Any = item.moment.viewed
        if viewed is None:
            return item.key.name, *[None] * (len(self.columns) - 1)
        if isinstance(viewed, PodView):
            row = tables.row(self._kind, viewed.pod, now, wide=True)
        elif isinstance(viewed, NodeView):
            taken: Any = TakenNode(viewed.node, _NO_ROOM, 0)
            row = tables.row(self._kind, taken, now, wide=True)
        else:
            row = tables.row(self._kind, viewed, now, wide=True)
        return [_cell(column, row[at]) for column, at in zip(self.columns, self._places, strict=True)]


class _DocumentRows(_Rows):
    """Of kinds that are known by their documents."""

    def __init__(self, resource: str, found: Sequence[Column], of_document: document_cells.CellsOf) -> None:
        self.columns = found
        self._resource = resource
        self._of_document = of_document

    def cells(self, item: Item, now: float) -> Sequence[Any]:
        document = item.moment.document({})
        name = document_cells.name_of(self._resource, document)
        cells = self._of_document(document, now)
        shown = [name, *cells]
        at = next((at for at, column in enumerate(self.columns) if column.name == "Age"), None)
        if at is not None:
            shown.insert(at, age(mapping(document, "metadata").get("creationTimestamp"), now))
        return shown


class _CustomRows(_Rows):
    """Of kinds that a definition describes."""

    def __init__(self, custom: Sequence[CustomColumn]) -> None:
        self.columns = (columns.NAME, *(one.column for one in custom))
        self._custom = custom

    def cells(self, item: Item, now: float) -> Sequence[Any]:
        document = item.moment.document({})
        return item.key.name, *(_value(one, document, now) for one in self._custom)


def _value(custom: CustomColumn, document: Document, now: float) -> Any:
    """Source: cellForJSONValue."""
    value = None if custom.path is None else custom.path.first(document)
    type_ = custom.column.type_
    if value is None:
        return None
    whole = isinstance(value, int) and not isinstance(value, bool)
    if type_ == "string":
        return _printed(value)
    if type_ == "integer":
        return int(value) if whole or isinstance(value, float) else None
    if type_ == "number":
        return float(value) if whole or isinstance(value, float) else None
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    return age(value, now) if type_ == "date" and isinstance(value, str) else None


def _printed(value: Any) -> str:
    """As JSONPath prints it: texts as they are, all else as JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _cell(column: Column, text: str) -> Any:
    if column.number:
        return int(text) if text.isdecimal() else text
    if column.type_ == "boolean" and text in ("true", "false"):
        return text == "true"
    return text


def _metadata(item: Item) -> Document:
    found = item.moment.document({}).get("metadata")
    return found if is_mapping(found) else {}
