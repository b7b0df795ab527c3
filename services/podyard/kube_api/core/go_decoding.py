"""What Go says of JSON that it cannot read: of a text that is none, and of a value that has no place in its
type. Pure.

Source: Go 1.26, encoding/json (scanner.go, decode.go); apimachinery v0.36.2, pkg/util/intstr,
pkg/api/resource.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from podyard.kube_api.core.patching.go_words import quoted
from podyard.objects import api_types
from podyard.objects.api_types import LIST, MAP
from podyard.objects.documents import is_list, is_mapping

_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_TRUNCATED: Final = "truncated"
_INTS: Final = {"int32": 32, "int64": 64}
_GO_NAMES: Final = {"boolean": "bool", "double": "float64", "byte": "[]uint8", "any": "interface {}"}
_INT_OR_STRING: Final = "apimachinery.pkg.util.intstr.IntOrString"
_OWN_READERS: Final = frozenset((api_types.QUANTITY, "date-time", "any"))
"""Types that read their values themselves, and say other things of them."""


def syntax_error(body: bytes) -> str:
    """What is said of bytes that are no JSON."""
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        told = str(error)
        at = _BYTE.search(told)
        if _TRUNCATED in told or not body.strip():
            return "unexpected end of JSON input"
        if at is None or int(at[1]) >= len(body):
            return told
        character = quoted(chr(body[int(at[1])]))[1:-1]
        return f"invalid character '{character}' looking for beginning of value"
    return ""


def mismatch(document: Any, definition: str) -> str:
    """What is said of the first value that is not of its type; empty if there is none.

    :param definition: of the document, in `api_types`
    """
    return next(_mismatches(document, definition, _Place("", "")), "")


class _Place(NamedTuple):
    """Where a value is."""

    structure: str
    """The innermost one that holds it."""
    path: str
    """JSON names of fields from the object down."""

    def told(self, value: Any, type_: str) -> str:
        return (
            f"json: cannot unmarshal {_kind(value)} into Go struct field {self.structure}.{self.path} of type {type_}"
        )


def _mismatches(value: Any, type_: str, place: _Place) -> Iterator[str]:
    if value is None or type_ in _OWN_READERS:
        return
    if type_.startswith(LIST):
        if not is_list(value):
            yield place.told(value, _go_type(type_))
            return
        for item in value:
            yield from _mismatches(item, type_.removeprefix(LIST), place)
        return
    if type_.startswith(MAP):
        if not is_mapping(value):
            yield place.told(value, _go_type(type_))
            return
        for item in value.values():
            yield from _mismatches(item, type_.removeprefix(MAP), place)
        return
    known = api_types.table().definitions.get(type_)
    if type_ in ("int-or-string", _INT_OR_STRING):
        if not isinstance(value, str) and not _is_int(value, 32):
            yield f"json: cannot unmarshal {_kind(value)} into Go value of type int32"
    elif known is not None and known.fields:
        if not is_mapping(value):
            yield place.told(value, _go_type(type_))
            return
        structure, below = type_.rpartition(".")[2], place.path
        for name, inner in value.items():
            if (field := known.fields.get(name)) is not None:
                path = f"{below}.{name}" if below else name
                yield from _mismatches(inner, field.type, _Place(structure, path))
    elif known is not None:
        if known.type != type_:
            yield from _mismatches(value, known.type, place)
    elif not _fits(value, type_):
        yield place.told(value, _go_type(type_))


def _fits(value: Any, type_: str) -> bool:
    if type_ in _INTS:
        return _is_int(value, _INTS[type_])
    if type_ == "boolean":
        return isinstance(value, bool)
    if type_ == "double":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)


def _is_int(value: Any, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _kind(value: Any) -> str:
    if is_mapping(value):
        return "object"
    if is_list(value):
        return "array"
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else "string"


def _go_type(type_: str) -> str:
    """`[]v1.Container`."""
    for prefix in (LIST, MAP):
        if type_.startswith(prefix):
            return prefix + _go_type(type_.removeprefix(prefix))
    if "." in type_:
        return ".".join(type_.split(".")[-2:])
    return _GO_NAMES.get(type_, type_)
