"""Plain values into the Structs of `wire`, as Go's JSON decoder reads them: null means absent, numbers are no
text, case counts.

Source: sigs.k8s.io/json (UnmarshalCaseSensitivePreserveInts, UnmarshalStrict) and encoding/json, as
apimachinery's strict serializer uses them: a wrong type ends the reading, unknown and duplicate fields are
gathered.
"""

import base64
import binascii
import difflib
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import inspect

from podyard.configuration.errors import Fault
from podyard.configuration.wire import DURATION
from podyard.objects import go_syntax
from podyard.objects.documents import is_list, is_mapping

S = TypeVar("S", bound=msgspec.Struct)

NO_DURATION: Final = "0s"
_INT32: Final = (-(2**31), 2**31 - 1)


class Pairs(dict[str, Any]):
    """A JSON object that remembers which of its keys came twice."""

    twice: tuple[str, ...] = ()


class TypeFault(ValueError):
    """A value of a wrong type, or outside of what its type can hold."""

    def __init__(self, path: str, detail: str) -> None:
        self.fault = Fault(path, detail)
        super().__init__(str(self.fault))


class Reader:
    """Reads one document, or the arguments of one plugin. `strict`: unknown and duplicate fields."""

    def __init__(self) -> None:
        self.strict: list[Fault] = []

    def read(self, raw: Any, type_: type[S]) -> S:
        """
        :raises TypeFault: at the first value of a wrong type
        """
        return cast("S", self._struct(_structure(type_), raw, ""))

    def _value(self, info: inspect.Type, raw: Any, path: str) -> Any:
        match info:
            case inspect.Metadata(type=inner):
                if _is_duration(info):
                    return _duration(raw, path)
                return self._value(inner, raw, path)
            case inspect.UnionType():
                return None if raw is None else self._value(_given(info), raw, path)
            case inspect.AnyType():
                return raw
            case _ if raw is None:
                return self._zero(info, path)
            case inspect.StructType():
                return self._struct(info, raw, path)
            case inspect.VarTupleType(item_type=item_type):
                items = _expect(is_list(raw), raw, "a list", path)
                return tuple(self._value(item_type, item, f"{path}[{at}]") for at, item in enumerate(items))
            case inspect.DictType(value_type=value_type):
                mapping = _expect(is_mapping(raw), raw, "a mapping", path)
                self._note_twice(mapping, path)
                return {key: self._value(value_type, item, f"{path}.{key}") for key, item in mapping.items()}
            case _:
                return _scalar(info, raw, path)

    def _struct(self, info: inspect.StructType, raw: Any, path: str) -> Any:
        mapping: dict[str, Any] = _expect(is_mapping(raw), raw, "a mapping", path)
        self._note_twice(mapping, path)
        names = [field.encode_name for field in info.fields]
        self.strict += [Fault(_below(path, key), _unknown(key, names)) for key in mapping if key not in names]
        found: dict[str, Any] = {}
        for field in info.fields:
            if field.encode_name in mapping and (mapping[field.encode_name] is not None or _refuses_null(field.type)):
                where = _below(path, field.encode_name)
                found[field.name] = self._value(field.type, mapping[field.encode_name], where)
            elif field.required:
                found[field.name] = self._zero(field.type, _below(path, field.encode_name))
        return info.cls(**found)

    def _note_twice(self, mapping: dict[str, Any], path: str) -> None:
        if isinstance(mapping, Pairs):
            self.strict += [Fault(_below(path, key), "duplicate field") for key in mapping.twice]

    def _zero(self, info: inspect.Type, path: str) -> Any:
        match info:
            case inspect.Metadata(type=inner):
                return NO_DURATION if _is_duration(info) else self._zero(inner, path)
            case inspect.StructType():
                return self._struct(info, {}, path)
            case inspect.VarTupleType():
                return ()
            case inspect.UnionType() | inspect.AnyType():
                return None
            case inspect.DictType():
                return {}
            case inspect.StrType() | inspect.BytesType():
                return "" if isinstance(info, inspect.StrType) else b""
            case _:
                return False if isinstance(info, inspect.BoolType) else 0


def _unknown(key: str, names: list[str]) -> str:
    letters = {name.lower(): name for name in names}
    close = difflib.get_close_matches(key.lower(), letters, n=1)
    return f"unknown field; did you mean {letters[close[0]]}?" if close else "unknown field"


@cache
def _structure(type_: type[msgspec.Struct]) -> inspect.StructType:
    return cast("inspect.StructType", inspect.type_info(type_))


def _given(info: inspect.UnionType) -> inspect.Type:
    return next(kind for kind in info.types if not isinstance(kind, inspect.NoneType))


def _refuses_null(info: inspect.Type) -> bool:
    """Go asks a duration that is no pointer to read null, and it cannot."""
    return isinstance(info, inspect.Metadata) and _is_duration(info)


def _is_duration(info: inspect.Metadata) -> bool:
    extra = cast("dict[str, Any] | None", info.extra)  # pyright: ignore[reportUnknownMemberType] - msgspec leaves it open
    return extra == DURATION


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _expect(fits: bool, raw: Any, wanted: str, path: str) -> Any:
    if not fits:
        raise TypeFault(path, f"must be {wanted}, is {_named(raw)}")
    return raw


def _duration(raw: Any, path: str) -> str:
    text = "" if raw is None else _expect(isinstance(raw, str), raw, 'a duration such as "10s"', path)
    try:
        return go_syntax.duration_text(go_syntax.parse_duration(text))
    except ValueError as error:
        raise TypeFault(path, str(error)) from error


def _scalar(info: inspect.Type, raw: Any, path: str) -> Any:
    match info:
        case inspect.StrType():
            return _expect(isinstance(raw, str), raw, "text", path)
        case inspect.BoolType():
            return _expect(isinstance(raw, bool), raw, "true or false", path)
        case inspect.IntType() | inspect.FloatType():
            whole = isinstance(info, inspect.IntType)
            kinds = int if whole else int | float
            fits = isinstance(raw, kinds) and not isinstance(raw, bool)
            number = _expect(fits, raw, "a whole number" if whole else "a number", path)
            low, high = info.ge or _INT32[0], info.le or _INT32[1]  # numbers of the API's own types are int32
            if not low <= number <= high:
                raise TypeFault(path, f"{number} is outside of {low} to {high}")
            return number
        case _:
            return _bytes(_expect(isinstance(raw, str), raw, "base64 text", path), path)


def _bytes(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except binascii.Error as error:
        raise TypeFault(path, f"is no base64 text: {error}") from error


def _named(raw: Any) -> str:
    if raw is None or isinstance(raw, bool):
        return "null" if raw is None else f"{raw}".lower()
    if is_mapping(raw) or is_list(raw):
        return "a mapping" if is_mapping(raw) else "a list"
    return f'the text "{raw}"' if isinstance(raw, str) else f"the number {raw}"
