"""How objects are written: whole, or their metadata alone; one, a list of them, an event of a watch. Pure.

Objects' bytes are made once and kept as long as there is room; lists and events are put together of them.

Source: kubernetes v1.36.2, staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core import hidden_values
from podyard.kube_api.core.completing import complete
from podyard.kube_api.core.items import Item
from podyard.memory.kept import Kept
from podyard.objects.documents import Document

BODY_BYTES: Final = 64 * 1024 * 1024
"""Of the objects' bytes that are kept."""

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark after which a watch tells what comes."""

META_VERSION: Final = "meta.k8s.io/v1"

Convert = Callable[[Document], Document]
"""From a stored document to the one that is shown."""


class Page(NamedTuple):
    """What a list answers."""

    items: Sequence[Item]
    version: int
    """As of which the items are."""
    more: str = ""
    """Token for what follows; empty: nothing does."""
    remaining: int | None = None
    """How many items follow; `None` if nobody counted."""


class Form(Protocol):
    """One way to write objects."""

    @property
    def key(self) -> str:
        """The same for forms that write the same."""
        ...

    @property
    def late(self) -> bool:
        """Whether events can be written only when they are sent: they hold ages, or values that have to be
        asked for."""
        ...

    def one(self, item: Item, now: float) -> bytes:
        """An object by itself. `now`: seconds since 1970."""
        ...

    def pieces(self, items: Sequence[Item], now: float) -> list[bytes]:
        """Objects as items of a list. `now`: seconds since 1970."""
        ...

    def several(self, page: Page, pieces: Sequence[bytes]) -> bytes:
        """A list of all the items of a page."""
        ...

    def event(self, type_: str, item: Item, now: float, *, first: bool) -> bytes:
        """A line of a watch; `first`: none was written before it."""
        ...

    def bookmark(self, version: int, *, initial_end: bool, first: bool) -> bytes:
        """A line that tells how far a watch has come."""
        ...


class Bodies:
    """Objects' bytes: a JSON mapping without its opening brace, kind and apiVersion."""

    def __init__(self, most_bytes: int = BODY_BYTES, convert: Convert | None = None) -> None:
        """
        :param most_bytes: that the kept ones take together
        :param convert: what is stored into what is shown; None: it is the same
        """
        self._kept = Kept[Item, bytes](most_bytes)
        self._convert = convert

    @property
    def held(self) -> int:
        """Bytes: what the kept ones take together."""
        return self._kept.bytes

    def of(self, item: Item) -> bytes:
        """An object, values of a Secret hidden."""
        found = self._kept.get(item)
        if found is not None:
            self._kept.use(item)
            return found
        made = body_of(item, {}, self._convert)
        self._kept.keep(item, made, len(made) + item.bytes)
        return made


def body_of(item: Item, shown: Mapping[str, str], convert: Convert | None = None) -> bytes:
    """An object as it is now.

    :param shown: values of a Secret that are told, in base64 by key
    :param convert: what is stored into what is shown; None: it is the same
    """
    return msgspec.json.encode(document_of(item, shown, convert))[1:]


def document_of(item: Item, shown: Mapping[str, str], convert: Convert | None = None) -> dict[str, Any]:
    """The same as a document, without kind and apiVersion, its metadata first."""
    document = hidden_values.encode(item.moment.document(shown), item.key.resource)
    if not item.moment.fault:
        complete(item.key.resource, document, item.moment.evidence)
    if convert is not None:
        document = convert(document)
    document.pop("apiVersion", None)
    document.pop("kind", None)
    metadata = document.pop("metadata")
    metadata["resourceVersion"] = str(item.version)
    return {"metadata": in_order(metadata), **document}


_ORDER: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
"""Of metadata. Source: apimachinery v0.36.2, pkg/apis/meta/v1/types.go, ObjectMeta."""


def in_order(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata in the order in which the API server writes it."""
    found = {key: metadata[key] for key in _ORDER if key in metadata}
    return found | metadata if len(found) < len(metadata) else found


class Whole:
    """Objects with all they have."""

    def __init__(
        self,
        bodies: Bodies,
        *,
        api_version: str,
        kind: str,
        list_kind: str,
        typed: bool = True,
        revealed: Mapping[ObjectKey, Mapping[str, str]] | None = None,
    ) -> None:
        """
        :param typed: whether it is a kind of Kubernetes: items of lists do not say then what they are
        :param revealed: values of Secrets in base64, which whoever writes may see; whoever gives it puts in
            what is written next
        """
        self.key = f"whole {api_version} {kind}" + ("" if revealed is None else f" {id(revealed)}")
        self.late = revealed is not None
        self._bodies = bodies
        self._revealed = revealed
        self._prefix = _prefix(kind, api_version)
        self._item_prefix = b"{" if typed else self._prefix
        self._list_prefix = _prefix(list_kind, api_version)

    def one(self, item: Item, now: float) -> bytes:
        return b"%b%b\n" % (self._prefix, self._body(item))

    def pieces(self, items: Sequence[Item], now: float) -> list[bytes]:
        return [b"%b%b" % (self._item_prefix, self._body(one)) for one in items]

    def several(self, page: Page, pieces: Sequence[bytes]) -> bytes:
        return listed(self._list_prefix, page, pieces)

    def event(self, type_: str, item: Item, now: float, *, first: bool) -> bytes:
        return b'{"type":"%b","object":%b%b}\n' % (type_.encode(), self._prefix, self._body(item))

    def bookmark(self, version: int, *, initial_end: bool, first: bool) -> bytes:
        return bookmark(self._prefix, version, initial_end=initial_end)

    def _body(self, item: Item) -> bytes:
        if self._revealed is None:
            return self._bodies.of(item)
        return body_of(item, self._revealed.get(item.key, {}))


class MetadataOnly:
    """Objects as PartialObjectMetadata."""

    key = "metadata"
    late = False
    _prefix: Final = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies

    def one(self, item: Item, now: float) -> bytes:
        return partial(self._bodies, item) + b"\n"

    def pieces(self, items: Sequence[Item], now: float) -> list[bytes]:
        return [partial(self._bodies, item) for item in items]

    def several(self, page: Page, pieces: Sequence[bytes]) -> bytes:
        return listed(_prefix("PartialObjectMetadataList", META_VERSION), page, pieces)

    def event(self, type_: str, item: Item, now: float, *, first: bool) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), partial(self._bodies, item))

    def bookmark(self, version: int, *, initial_end: bool, first: bool) -> bytes:
        return bookmark(self._prefix, version, initial_end=initial_end)


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_decode_metadata: Final = msgspec.json.Decoder(_Metadata).decode


def partial(bodies: Bodies, item: Item) -> bytes:
    """A PartialObjectMetadata."""
    metadata = bytes(_decode_metadata(b"{" + bodies.of(item)).metadata)
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%b}' % metadata


def listed(prefix: bytes, page: Page, items: Sequence[bytes]) -> bytes:
    """A list of items that are written already."""
    return b'%b"metadata":%b,"items":[%b]}\n' % (prefix, list_metadata(page), b",".join(items))


def list_metadata(page: Page) -> bytes:
    """The metadata of a list. Source: apimachinery v0.36.2, metav1.ListMeta."""
    found: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.more:
        found["continue"] = page.more
    if page.remaining is not None:
        found["remainingItemCount"] = page.remaining
    return msgspec.json.encode(found)


def bookmark(prefix: bytes, version: int, *, initial_end: bool) -> bytes:
    """A bookmark's line.

    :param prefix: of an object, up to its metadata
    """
    return b'{"type":"BOOKMARK","object":%b"metadata":%b}}\n' % (prefix, mark_metadata(version, initial_end))


def mark_metadata(version: int, initial_end: bool) -> bytes:
    """The metadata of a bookmark's object."""
    found: dict[str, Any] = {"resourceVersion": str(version)}
    if initial_end:
        found["annotations"] = {INITIAL_EVENTS_END: "true"}
    return msgspec.json.encode(found)


def _prefix(kind: str, api_version: str) -> bytes:
    return msgspec.json.encode({"kind": kind, "apiVersion": api_version})[:-1] + b","
