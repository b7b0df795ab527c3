"""Whether a document has the types that Kubernetes' API gives its fields, within their bounds.

This comes first in admission, before anything else looks at the document: what passes can be copied, encoded
and converted. Fields that the API does not know are gathered; they are held to what every reader needs:
whole numbers of 64 bits, and no endless nesting. A null means "absent", as in Kubernetes; within a list it is
a fault.

Source: Kubernetes v1.36.2, apimachinery/pkg/util/validation/field/errors.go for the words; of a wrong type
Podyard's own. sigs.k8s.io/json, kubernetes.go (UnmarshalStrict): which fields are unknown, and that 100 are
told at most.
"""

from difflib import get_close_matches
from enum import Enum
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, cast

from podyard.objects import api_types, bounds, times
from podyard.objects.decoding import JSON_NAMES
from podyard.objects.documents import Document, is_list, is_mapping
from podyard.objects.faults import MOST, Faults

Path: TypeAlias = "tuple[Path, str] | None"
"""Where a value is: the way to what holds it, and the step from there. Made into text only for a fault."""


class Form(Enum):
    """What a value may be."""

    TEXT = "text"
    NAME = "name"
    """Text of at most 253 bytes."""
    TRUTH = "true or false"
    INT32 = "int32"
    INT64 = "int64"
    NUMBER = "a number"
    TIME = "time"
    COUNT_OR_PERCENT = "int32 or text"
    QUANTITY = "quantity"
    ANY = "any"
    LIST = "a list"
    MAP = "a mapping"
    STRUCTURE = "structure"


class Shape(NamedTuple):
    """What a value must look like."""

    form: Form
    quick: type | None = None
    """A value of exactly this Python type needs no further look."""
    item: "Shape | None" = None
    """Of a list or map: what each item must look like."""
    most: int = 0
    """Of a list: items at most; 0 is any number."""
    fields: "dict[str, Shape] | None" = None
    """Of a structure; filled after the shape is made, since definitions contain each other."""


class Unknown(NamedTuple):
    """A field that its kind does not have."""

    path: Path
    known: tuple[str, ...]
    """The fields that there are in its place."""

    @property
    def field(self) -> str:
        """Where it is: `spec.replica`."""
        return text_of(self.path)

    @property
    def advice(self) -> str:
        """What may have been meant; empty if nothing is like it."""
        name = "" if self.path is None else self.path[1][1:]
        close = get_close_matches(name[:_LONGEST_FIELD], self.known, n=1)
        folded = [one for one in self.known if one.lower() == name.lower()]
        return f'did you mean "{(folded or close)[0]}"?' if folded or close else ""

    def leave_out(self, document: Document) -> None:
        """Take it out of a document; nothing happens if it is not there."""
        steps = _steps(self.path)
        at: Any = document
        for step in steps[:-1]:
            at = at[int(step[1:-1])] if is_list(at) else at.get(step[1:] if step[0] == "." else step[1:-1])
            if at is None:
                return
        at.pop(steps[-1][1:], None)


_ANY: Final = Shape(Form.ANY)
_SCALARS: Final = {
    "string": Shape(Form.TEXT, str),
    "byte": Shape(Form.TEXT, str),
    "boolean": Shape(Form.TRUTH, bool),
    "int32": Shape(Form.INT32),
    "int64": Shape(Form.INT64),
    "double": Shape(Form.NUMBER, float),
    "date-time": Shape(Form.TIME),
    "int-or-string": Shape(Form.COUNT_OR_PERCENT, str),
    "any": _ANY,
}
_NAME: Final = Shape(Form.NAME)
_QUANTITY: Final = Shape(Form.QUANTITY, str)
_WANTED: Final = {
    Form.TEXT: "text",
    Form.NAME: "text",
    Form.TRUTH: "true or false",
    Form.INT32: "a whole number",
    Form.INT64: "a whole number",
    Form.NUMBER: "a number",
    Form.TIME: "text",
    Form.COUNT_OR_PERCENT: "a whole number or text",
    Form.QUANTITY: "text",
    Form.LIST: "a list",
    Form.MAP: "a mapping",
    Form.STRUCTURE: "a mapping",
}
_RANGES: Final = {Form.INT32: bounds.INT32, Form.COUNT_OR_PERCENT: bounds.INT32, Form.INT64: bounds.INT64}
_TYPE_NAMES: Final = {
    str: "str",
    bool: "bool",
    int: "int",
    float: "float",
    list: "array",
    dict: "object",
    type(None): "null",
}


@cache
def shape_of(definition: str) -> Shape:
    """The shape of a definition of `api_types`."""
    if definition == api_types.QUANTITY:
        return _QUANTITY
    known = api_types.table().definitions[definition]
    if known.type:
        return _shape_of_type(known.type)
    fields: dict[str, Shape] = {}
    made = Shape(Form.STRUCTURE, fields=fields)
    _MADE[definition] = made
    for name, field in known.fields.items():
        fields[name] = _field(definition, name, field.type)
    return made


_MADE: Final[dict[str, Shape]] = {}
"""Structures that are made or being made: a definition may contain itself."""


def _field(definition: str, name: str, type_: str) -> Shape:
    named = name in bounds.NAMES or name.endswith("Name")
    if type_ == "string" and named and (definition, name) not in bounds.LONGER_NAMES:
        return _NAME
    most = bounds.ITEMS.get((definition, name), 0)
    return _shape_of_type(type_)._replace(most=most) if most else _shape_of_type(type_)


def _shape_of_type(type_: str) -> Shape:
    if type_.startswith(api_types.LIST):
        return Shape(Form.LIST, item=_shape_of_type(type_.removeprefix(api_types.LIST)))
    if type_.startswith(api_types.MAP):
        return Shape(Form.MAP, item=_shape_of_type(type_.removeprefix(api_types.MAP)))
    return _SCALARS.get(type_) or _MADE.get(type_) or shape_of(type_)


@cache
def _custom() -> Shape:
    """An object of a kind that the API does not know: its metadata is as everywhere."""
    text = _SCALARS["string"]
    fields = {"apiVersion": text, "kind": text, "metadata": shape_of(api_types.OBJECT_META)}
    return Shape(Form.STRUCTURE, fields=fields)


def check_types(faults: Faults, document: Document, definition: str | None) -> list[Unknown]:
    """Add what has a wrong type or is beyond its bound, the size apart. The document may be any JSON mapping.

    :param definition: name of its kind's definition, None for a custom kind
    :return: the fields that the kind does not have, in their order; of a custom kind those of its metadata
    """
    if definition is None:
        walk = _Walk(faults)
        walk.structure(document, _custom().fields or {}, None, 1)
        walk.unknown = [one for one in walk.unknown if one.path is not None and one.path[0] is not None]
        return walk.unknown
    walk = _Walk(faults)
    walk.structure(document, shape_of(definition).fields or {}, None, 1)
    return walk.unknown


class _Walk:
    """One document. `depth` counts mappings and lists from the object down, itself being 1."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.unknown: list[Unknown] = []

    def structure(self, value: Document, fields: dict[str, Shape], path: Path, depth: int) -> None:
        """A mapping with known fields; the others may hold any JSON."""
        if depth > bounds.NESTING:
            self._too_deep(path)
            return
        for key, item in value.items():
            shape = fields.get(key)
            if shape is None:
                if len(self.unknown) < MOST:
                    self.unknown.append(Unknown((path, f".{key}"), tuple(fields)))
                shape = _ANY
            if type(item) is not shape.quick and item is not None:
                self._value(item, shape, (path, f".{key}"), depth)

    def _value(self, value: Any, shape: Shape, path: Path, depth: int) -> None:
        """Any value that is not at once as it should be."""
        form = shape.form
        if form is Form.ANY:
            self._any(value, path, depth)
        elif form is Form.STRUCTURE and is_mapping(value):
            self.structure(value, shape.fields or {}, path, depth + 1)
        elif form is Form.LIST and is_list(value):
            self._items(value, shape, path, depth + 1)
        elif form is Form.MAP and is_mapping(value):
            self._entries(value, shape.item or _ANY, path, depth + 1)
        elif form is Form.NAME and isinstance(value, str):
            if len(value) > bounds.NAME_BYTES or len(value.encode()) > bounds.NAME_BYTES:
                self._faults.too_long(text_of(path), bounds.NAME_BYTES)
        elif form is Form.TIME and isinstance(value, str):
            self._time(value, path)
        else:
            self._number(value, shape, path)

    def _items(self, value: list[Any], shape: Shape, path: Path, depth: int) -> None:
        if shape.most and len(value) > shape.most:
            self._faults.too_many(text_of(path), len(value), shape.most)
            return
        if depth > bounds.NESTING:
            self._too_deep(path)
            return
        inner = shape.item or _ANY
        for at, item in enumerate(value):
            if type(item) is not inner.quick:
                self._value(item, inner, (path, f"[{at}]"), depth)
                if self._faults.enough:
                    return

    def _entries(self, value: Document, inner: Shape, path: Path, depth: int) -> None:
        if depth > bounds.NESTING:
            self._too_deep(path)
            return
        for key, item in value.items():
            if type(item) is not inner.quick and item is not None:
                self._value(item, inner, (path, f"[{key}]"), depth)
                if self._faults.enough:
                    return

    def _any(self, value: Any, path: Path, depth: int) -> None:
        """JSON of which nothing is known."""
        if is_mapping(value):
            self._entries(value, _ANY, path, depth + 1)
        elif is_list(value):
            self._items(value, _ANY_LIST, path, depth + 1)
        elif type(value) is int:
            self._range(value, bounds.INT64, path)

    def _number(self, value: Any, shape: Shape, path: Path) -> None:
        """Numbers, and whatever has a wrong type."""
        form, type_ = shape.form, cast("type[Any]", type(value))
        if form in _RANGES and type_ is int:
            self._range(value, _RANGES[form], path)
        elif form in (Form.QUANTITY, Form.NUMBER) and type_ in (int, float):
            if type_ is int:
                self._range(value, bounds.INT64, path)
        else:
            is_ = JSON_NAMES.get(_TYPE_NAMES.get(type_, ""), type_.__name__)
            hint = ": put it in quotes" if _WANTED[form] == "text" and type_ in (int, float, bool) else ""
            self._faults.add(text_of(path), "FieldValueTypeInvalid", f"must be {_WANTED[form]}, is {is_}{hint}")

    def _range(self, value: int, between: tuple[int, int], path: Path) -> None:
        least, most = between
        if not least <= value <= most:
            self._faults.invalid(text_of(path), value, f"must be between {least} and {most}, inclusive")

    def _time(self, value: str, path: Path) -> None:
        try:
            times.seconds_of(value)
        except ValueError:
            self._faults.invalid(text_of(path), value, 'must be a time as "2006-01-02T15:04:05Z" (RFC 3339)')

    def _too_deep(self, path: Path) -> None:
        """Told at the outermost place where it is so; what is below is not looked at."""
        self._faults.add(
            text_of(path, steps=_STEPS_SHOWN),
            "FieldValueInvalid",
            f"Invalid value: mappings and lists are nested deeper than {bounds.NESTING} levels",
        )


_ANY_LIST: Final = Shape(Form.LIST, item=_ANY)
_STEPS_SHOWN: Final = 12
"""Of a path that is too deep: enough to find it, short enough to read."""


_LONGEST_FIELD: Final = 63
"""Letters of a field's name that are compared: the longest of Kubernetes has 50."""


def _steps(path: Path) -> list[str]:
    found: list[str] = []
    while path is not None:
        path, step = path
        found.append(step)
    found.reverse()
    return found


def text_of(path: Path, steps: int = bounds.NESTING) -> str:
    """`spec.containers[0].name`; of a longer path its first steps."""
    found = _steps(path)
    more = "..." if len(found) > steps else ""
    return "".join(found[:steps]).lstrip(".") + more
