"""How the messages of Kubernetes' API are read: which field a tag belongs to, and what its value is in JSON.

Most messages become mappings. Some types have a JSON of their own: times, quantities, int-or-string, JSON
inside. Source: kubernetes v1.36.2, staging/src/k8s.io: apimachinery, pkg/apis/meta/v1/time_proto.go,
micro_time_proto.go and the MarshalJSON beside them, pkg/api/resource/quantity_proto.go,
pkg/util/intstr/intstr.go, pkg/runtime/extension.go; apiextensions-apiserver,
pkg/apis/apiextensions/v1/marshal.go.
"""

import struct
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from math import isfinite
from typing import Any, Final

import msgspec

from podyard.objects import api_numbers, api_types, bounds
from podyard.objects.api_numbers import META, Number
from podyard.objects.documents import Document, is_list, is_mapping
from podyard.proto.codec import why_unreadable

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
"""Wire types of fields that there are: whole numbers and booleans, doubles, all else."""

_EXTENSIONS: Final = "apiextensions-apiserver.pkg.apis.apiextensions.v1"
_DOUBLE: Final = struct.Struct("<d")
_EXACT: Final = 2**53
"""Whole numbers below it are the same as doubles."""


class Fault(ValueError):
    """Bytes that are not the message they should be; the text says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is done with a tag."""

    name: str
    """The field's, in JSON."""
    read: Callable[[Any], Any]
    """A scalar's JSON, of a whole number without sign or of bytes. Of a map: what an entry has that says no
    value."""
    zero: bool = True
    """JSON shows the zero."""
    many: bool = False
    packed: bool = False
    """Whole numbers one after the other."""
    inline: bool = False
    map: bool = False
    shape: "Callable[[], Shape] | None" = None
    """The message; of a map, that of an entry (`key`, `value`)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A message."""

    name: str
    """Without its package."""
    entries: Mapping[int, Entry]
    """By tag: number and wire type."""
    names: Mapping[int, str]
    """Fields' names by number, for refusals."""
    convert: Callable[[Document], Any] | None
    """Of a message that is no mapping in JSON: its value, from its fields. None of it: JSON's null."""


@cache
def shape_of(message: str) -> Shape:
    """The shape of a message of the table."""
    known = api_numbers.table().messages[message]
    fields = known.fields or (Number(number=1, name="items", type=known.type, zero=True),)
    convert = _items if known.type else _CONVERSIONS.get(message)
    return _shape(message, fields, convert)


def _shape(message: str, fields: tuple[Number, ...], convert: Callable[[Document], Any] | None) -> Shape:
    entries: dict[int, Entry] = {}
    for field in fields:
        entries.update(_entries(message, field))
    names = {field.number: field.name or field.type.rpartition(".")[2] for field in fields}
    return Shape(message.rpartition(".")[2], entries, names, convert)


def _entries(message: str, field: Number) -> Mapping[int, Entry]:
    """A field's entries by their tags: a list of whole numbers has two."""
    if field.type.startswith(api_types.MAP):
        return {field.number << 3 | BYTES: _map_entry(field, field.type.removeprefix(api_types.MAP))}
    many = field.type.startswith(api_types.LIST)
    type_ = field.type.removeprefix(api_types.LIST)
    scalar = _SCALARS.get(type_)
    if scalar is None:
        entry = Entry(field.name, _nothing, many=many, inline=not field.name, shape=partial(shape_of, type_))
        return {field.number << 3 | BYTES: entry}
    wire, read = scalar
    if type_ == "bytes":
        read = _INSIDE.get(message, read)
    entry = Entry(field.name, read, field.zero, many)
    entries = {field.number << 3 | wire: entry}
    if many and wire == VARINT:
        entries[field.number << 3 | BYTES] = replace(entry, packed=True)
    return entries


def _map_entry(field: Number, type_: str) -> Entry:
    pair = (Number(1, "key", "string", zero=True), Number(2, "value", type_, zero=True))
    shape = _shape(f"{field.name}Entry", pair, None)
    return Entry(field.name, partial(_missing, type_), map=True, shape=lambda: shape)


def _missing(type_: str, _: Any) -> Any:
    """The value of an entry that has none."""
    if type_ in _SCALARS:
        return ""  # there are maps of texts and of bytes
    convert = shape_of(type_).convert
    return {} if convert is None else convert({})


# ---- scalars -----------------------------------------------------------------------------------------------


def _nothing(value: Any) -> Any:
    raise AssertionError("a message is no scalar")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Fault(f"text is not UTF-8: {error.reason} at byte {error.start}") from error


def _base64(value: bytes) -> str:
    return b64encode(value).decode("ascii")


def _int32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (value >> 31 << 32)


def _int64(value: int) -> int:
    return value - (value >> 63 << 64)


def _double(value: bytes) -> float:
    """As JSON has it: whole numbers without a point."""
    (number,) = _DOUBLE.unpack(value)
    if not isfinite(number):
        raise Fault(f"json: unsupported value: {number}")
    return int(number) if abs(number) < _EXACT and number.is_integer() else number


def _json(value: bytes) -> Any:
    """JSON inside."""
    try:
        found = msgspec.json.decode(value)
    except Exception as error:  # boundary: JSON from outside
        raise Fault(f"not valid JSON inside: {why_unreadable(error)}") from error
    level = [found]
    for _ in range(bounds.NESTING):
        level = [item for part in level for item in _inner(part)]
        if not level:
            return found
    raise Fault(f"JSON inside is nested too deep: more than {bounds.NESTING} levels")


def _inner(part: Any) -> Iterable[Any]:
    """What a mapping or a list holds."""
    if is_mapping(part):
        return part.values()
    return part if is_list(part) else ()


def _whole(value: bytes) -> bytes:
    return value


_SCALARS: Final[Mapping[str, tuple[int, Callable[[Any], Any]]]] = {
    "string": (BYTES, _text),
    "bytes": (BYTES, _base64),
    "bool": (VARINT, bool),
    "int32": (VARINT, _int32),
    "int64": (VARINT, _int64),
    "double": (FIXED64, _double),
}

_INSIDE: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "apimachinery.pkg.runtime.Unknown": _whole,
    "apimachinery.pkg.runtime.RawExtension": _json,
    f"{META}.FieldsV1": _json,
    f"{_EXTENSIONS}.JSON": _json,
}
"""Messages whose bytes are not base64 in JSON."""


# ---- messages with a JSON of their own ---------------------------------------------------------------------

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIME_S: Final = -62135596800
"""The first second of the year 1, Go's time that is none."""


def _items(parts: Document) -> list[Any]:
    return parts.get("items", [])


def _time(parts: Document) -> str | None:
    """RFC 3339, in whole seconds: nanos are not looked at."""
    seconds = parts.get("seconds", 0)
    if not parts or seconds == _NO_TIME_S:
        return None
    return _moment(seconds, 0).isoformat(timespec="seconds") + "Z"


def _micro_time(parts: Document) -> str | None:
    """RFC 3339 with six digits of a fraction."""
    seconds, micros = parts.get("seconds", 0), int(parts.get("nanos", 0) / 1000)
    if not parts or (seconds == _NO_TIME_S and not micros):
        return None
    return _moment(seconds, micros).isoformat(timespec="microseconds") + "Z"


def _moment(seconds: int, micros: int) -> datetime:
    try:
        return (_EPOCH + timedelta(seconds=seconds, microseconds=micros)).replace(tzinfo=None)
    except OverflowError as error:
        raise Fault(f"a time is not of the years 1 to 9999: {seconds} s since 1970") from error


def _quantity(parts: Document) -> str:
    return parts.get("string", "0")


def _int_or_string(parts: Document) -> int | str:
    match parts.get("type", 0):
        case 0:
            return parts.get("intVal", 0)
        case 1:
            return parts.get("strVal", "")
        case _:
            raise Fault("impossible IntOrString.Type")


def _raw(parts: Document) -> Any:
    return parts.get("raw")


def _fields(parts: Document) -> Any:
    return parts.get("Raw")


def _schema_or_bool(parts: Document) -> Any:
    return parts.get("schema", parts.get("allows", False))


def _schema_or_schemas(parts: Document) -> Any:
    return parts.get("jSONSchemas") or parts.get("schema")


def _schema_or_texts(parts: Document) -> Any:
    return parts.get("property") or parts.get("schema")


_CONVERSIONS: Final[Mapping[str, Callable[[Document], Any]]] = {
    f"{META}.Time": _time,
    f"{META}.MicroTime": _micro_time,
    f"{META}.FieldsV1": _fields,
    api_types.QUANTITY: _quantity,
    "apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "apimachinery.pkg.runtime.RawExtension": _raw,
    f"{_EXTENSIONS}.JSON": _raw,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_schemas,
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_texts,
}
