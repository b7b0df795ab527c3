"""Protobuf bodies, as client-go's typed clients send them when they are told to: read into the document that
JSON would have brought.

A body is the magic number and an `Unknown`: apiVersion, kind, and the object as a message of its own. What
the reference ignores is ignored: `contentEncoding` and `contentType`, and fields whose numbers nobody knows,
in strict validation too. Fields that are absent stay absent.

Source: kubernetes v1.36.2, staging/src/k8s.io/apimachinery: pkg/runtime/serializer/protobuf/protobuf.go
(Decode), pkg/runtime/generated.proto; and the Unmarshal functions of each package's generated.pb.go. Faults
are worded as there. What is refused here alone: text that is not UTF-8, entries of maps with the wrong wire
type, JSON inside that is none, nesting beyond `bounds.NESTING`, more than `MOST_PARTS` parts.
"""

from typing import Any, Final

from podyard.kube_api.core.errors import bad_request
from podyard.kube_api.core.protobuf_shapes import BYTES, FIXED64, VARINT, Entry, Fault, Shape, shape_of
from podyard.objects import api_numbers, bounds
from podyard.objects.documents import Document

MAGIC: Final = b"k8s\x00"
"""How a body begins."""

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

MOST_PARTS: Final = 100_000
"""Messages, items of lists and entries of maps in one body. A message may be two bytes, a mapping takes a
hundred times as many: with 300 bytes a part and twelve times the body, a document of 3 MB takes 70 MB at
most. JSON inside takes what it takes elsewhere. An object of 1.5 MiB, the largest that is stored, has so many
parts only if they are of 15 bytes each."""

_TOLD: Final = 63
"""Characters of a kind that nobody knows, in a refusal."""

_SHOWN: Final = 30
"""Bytes of a body in a refusal. Source: summarizeData, in apiserver, pkg/endpoints/handlers/rest.go."""

_UNKNOWN: Final = "apimachinery.pkg.runtime.Unknown"

_START_GROUP, _END_GROUP, _FIXED32 = 3, 4, 5
_UINT64: Final = 2**64 - 1
_TAG: Final = 2**35 - 1
"""A number of 32 bits and the wire type: the reference looks at no more of a tag."""

_OVERFLOW: Final = "proto: integer overflow"
_EOF: Final = "unexpected EOF"
_NEGATIVE_LENGTH: Final = "proto: negative length found during unmarshaling"


def decode(body: bytes, api_version: str = "", kind: str = "") -> Document:
    """The object in a body, as JSON says it. It is not checked against the kind that is expected.

    :param api_version: of the kind that is expected (`v1`, `apps/v1`); for a body that says none
    :raises ApiError: BadRequest, for a body that is none, or a kind that is not written as protobuf
    """
    try:
        found = _unwrapped(body)
    except Fault as fault:
        wanted = f" (must be of type {kind})" if kind else ""
        raise bad_request(f"the object provided is unrecognized{wanted}: {fault} ({_summary(body)})") from fault
    said_kind, said_version = found.get("kind") or kind, found.get("apiVersion") or api_version
    for value, name in ((said_kind, "Kind"), (said_version, "apiVersion")):
        if not value:
            raise bad_request(f"Object '{name}' is missing in the protobuf body ({_summary(body)})")
    message = api_numbers.message_of(said_version, said_kind)
    if message is None:
        told = f'no kind "{said_kind[:_TOLD]}" is registered for version "{said_version[:_TOLD]}"'
        raise bad_request(f"{told} as protobuf: send it as JSON if it is a kind")
    document: Document = {"apiVersion": said_version, "kind": said_kind}
    try:
        _Reader(found.get("raw", b"")).whole(message, document)
    except Fault as fault:
        version = said_version.rpartition("/")[2]
        told = f'{said_kind} in version "{version}" cannot be handled as a {kind or said_kind}: {fault}'
        raise bad_request(told) from fault
    return document


def _unwrapped(body: bytes) -> Document:
    """The `Unknown` of a body; its `raw` as bytes.

    :raises Fault: it is none
    """
    if not body:
        raise Fault("empty data")
    if not body.startswith(MAGIC):
        raise Fault(
            f"provided data does not appear to be a protobuf message, expected prefix [{' '.join(map(str, MAGIC))}]"
        )
    if len(body) == len(MAGIC):
        raise Fault("empty body")
    found: Document = {}
    _Reader(body, len(MAGIC)).whole(_UNKNOWN, found)
    return found


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    return body[:_SHOWN].hex() + (" ..." if len(body) > _SHOWN else "")


class _Reader:
    """One message's bytes. Places (`at`, `end`) are offsets in them: nothing is copied but text."""

    __slots__ = ("_data", "_left", "_start")

    def __init__(self, data: bytes, start: int = 0) -> None:
        self._data = data
        self._start = start
        self._left = MOST_PARTS

    def whole(self, message: str, found: Document) -> None:
        """Put the message's fields into `found`.

        :raises Fault: it is not such a message
        """
        self._fill(shape_of(message), self._start, len(self._data), 1, found)

    def _fill(self, shape: Shape, at: int, end: int, depth: int, found: Document) -> None:
        """Put the fields of one message into `found`, which may have some: a message that comes twice is
        joined."""
        data, entries = self._data, shape.entries
        while at < end:
            start = at
            tag = data[at]
            at += 1
            if tag > 127:
                tag, at = self._varint(start, end)
                tag &= _TAG
            entry = entries.get(tag)
            if entry is None:
                at = self._ignored(shape, tag, at, end)
                continue
            if at == end:
                raise Fault(_EOF)
            wire = tag & 7
            if wire == VARINT:
                number = data[at]
                at += 1
                if number > 127:
                    number, at = self._varint(at - 1, end)
                self._put(found, entry, entry.read(number))
            elif wire == BYTES:
                length = data[at]
                at += 1
                if length > 127:
                    length, at = self._varint(at - 1, end)
                stop = self._stop(at, length, end)
                if entry.shape is not None:
                    self._put_message(found, entry, entry.shape(), at, stop, depth)
                elif entry.packed:
                    self._put_packed(found, entry, at, stop)
                else:
                    self._put(found, entry, entry.read(data[at:stop]))
                at = stop
            else:  # a double: no other field has a fixed size
                stop = self._stop(at, 8, end)
                self._put(found, entry, entry.read(data[at:stop]))
                at = stop

    def _put_packed(self, found: Document, entry: Entry, at: int, stop: int) -> None:
        while at < stop:
            number, at = self._varint(at, stop)
            self._put(found, entry, entry.read(number))

    def _put_message(self, found: Document, entry: Entry, shape: Shape, at: int, stop: int, depth: int) -> None:
        """Put the message between `at` and `stop` where it belongs: among the fields of `found`, into a map
        or a list, or under its name, where one may be that it is joined with."""
        if entry.inline:
            self._fill(shape, at, stop, depth, found)
            return
        if depth >= bounds.NESTING:
            raise Fault(f"{entry.name} is nested too deep: more than {bounds.NESTING} levels")
        if entry.map:
            self._count()
            pair: Document = {}
            self._fill(shape, at, stop, depth + 1, pair)
            value = pair["value"] if "value" in pair else entry.read(None)
            found.setdefault(entry.name, {})[pair.get("key", "")] = value
        elif shape.convert is not None:
            parts: Document = {}
            self._fill(shape, at, stop, depth, parts)
            self._put(found, entry, shape.convert(parts))
        else:
            held: Document | None = None if entry.many else found.get(entry.name)
            if held is None:
                held = {}
                self._put(found, entry, held)
            self._fill(shape, at, stop, depth + 1 + entry.many, held)

    def _put(self, found: Document, entry: Entry, value: Any) -> None:
        if entry.many:
            self._count()
            items = found.get(entry.name)
            if items is None:
                found[entry.name] = [value]
            else:
                items.append(value)
        elif value or (entry.zero and value is not None):
            found[entry.name] = value
        else:  # a time that is none, or a zero that JSON leaves out
            found.pop(entry.name, None)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Fault(f"it has more than {MOST_PARTS} parts (messages, items of lists, entries of maps): send fewer")

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        """A whole number without sign, of 64 bits, and where it ends."""
        data = self._data
        value = shift = 0
        while True:
            if shift >= 64:
                raise Fault(_OVERFLOW)
            if at >= end:
                raise Fault(_EOF)
            byte = data[at]
            at += 1
            if byte < 128:
                return (value | byte << shift) & _UINT64, at
            value |= (byte & 127) << shift
            shift += 7

    def _stop(self, at: int, length: int, end: int) -> int:
        """Where something that begins at `at` stops."""
        if length >> 63:
            raise Fault(_NEGATIVE_LENGTH)
        if at + length > end:
            raise Fault(_EOF)
        return at + length

    def _ignored(self, shape: Shape, tag: int, at: int, end: int) -> int:
        """Where a field ends that has no entry: its number is unknown.

        :raises Fault: it has a known number with another wire type, or is no field
        """
        number, wire = tag >> 3, tag & 7
        if wire == _END_GROUP:
            raise Fault(f"proto: {shape.name}: wiretype end group for non-group")
        if number == 0 or number >> 31:
            raise Fault(f"proto: {shape.name}: illegal tag {number - (number >> 31 << 32)} (wire type {tag})")
        if number in shape.names:
            raise Fault(f"proto: wrong wireType = {wire} for field {shape.names[number]}")
        groups = 0
        while True:
            if wire == VARINT:
                _, at = self._varint(at, end)
            elif wire == FIXED64:
                at = self._stop(at, 8, end)
            elif wire == BYTES:
                length, at = self._varint(at, end)
                at = self._stop(at, length, end)
            elif wire == _START_GROUP:
                groups += 1
            elif wire == _END_GROUP:
                groups -= 1
            elif wire == _FIXED32:
                at = self._stop(at, 4, end)
            else:
                raise Fault(f"proto: illegal wireType {wire}")
            if not groups:
                return at
            tag, at = self._varint(at, end)
            wire = tag & 7
