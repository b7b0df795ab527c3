"""What server-side apply knows of a value's type: whether it may be a scalar, a list or a mapping, and how
far managers own parts of it.

Sources: kube-openapi pkg/schemaconv (openapi.go, smd.go) for how the types of the API document are read;
structured-merge-diff v6.3.2, schema/elements.go.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from podyard.kube_api.core.patching.implied_values import implied
from podyard.objects.api_types import LIST, MAP, OBJECT_META, QUANTITY, Definition, Field, table

_RAW: Final = "apimachinery.pkg.runtime.RawExtension"
_DEDUCED: Final = Field("any")
_SCALARS: Final = {
    "string": "string",
    "byte": "string",
    "boolean": "boolean",
    "int32": "numeric",
    "int64": "numeric",
    "double": "numeric",
}

_ZEROS: Final[Mapping[str, str | int | bool]] = {"string": "", "int32": 0, "int64": 0, "boolean": False}
_KEY_DEFAULTS: Final[Mapping[tuple[str, str], str | None]] = {
    ("api.core.v1.ContainerPort", "protocol"): "TCP",
    ("api.core.v1.ServicePort", "protocol"): "TCP",
    ("api.core.v1.LocalObjectReference", "name"): "",
    ("api.apiserverinternal.v1alpha1.ServerStorageVersion", "apiServerID"): None,
}
"""Fields that name items of lists and whose default is not told by `required`. Source: kubernetes v1.36.2,
api/openapi-spec/v3."""


class ListShape(NamedTuple):
    """A list. Items of one that is not atomic are named by `keys`, or by themselves if there are none."""

    items: Field
    atomic: bool
    keys: tuple[str, ...]


class MapShape(NamedTuple):
    """A mapping. `others` is what keys hold that are no field; None: there may be none."""

    fields: Mapping[str, Field]
    others: Field | None
    atomic: bool
    implied: Mapping[str, Any] = {}
    """What fields hold that nobody has set (`implied_values`)."""


class Shape(NamedTuple):
    """What a value may be; `scalar` is string, numeric, boolean, untyped or empty."""

    scalar: str = ""
    list: ListShape | None = None
    map: MapShape | None = None


Root: TypeAlias = Field
"""The type of an object as a whole."""

_CUSTOM: Final = Field("")
_ATOMIC: Final = Field("any", list_type="atomic", map_type="atomic")


def root(definition: str | None) -> Root:
    """Of a kind; None: of a custom resource, whose metadata alone has a type and whose other fields are as
    they are found: mappings are granular, lists atomic."""
    return Field(definition) if definition is not None else _CUSTOM


@cache
def shape(field: Field) -> Shape:
    """Of the values of a field. A field of `any` is whatever it is: a list as a whole, a mapping key by
    key."""
    type_name = field.type
    if field == _CUSTOM:
        return Shape(map=MapShape(_custom_fields(), _DEDUCED, False))
    if type_name == _RAW or field == _ATOMIC:
        return Shape("untyped", ListShape(_ATOMIC, True, ()), MapShape({}, _ATOMIC, True))
    if type_name.startswith(LIST):
        return Shape(list=_list(field))
    if type_name.startswith(MAP):
        return Shape(map=MapShape({}, Field(type_name.removeprefix(MAP)), field.map_type == "atomic"))
    if type_name in _SCALARS:
        return Shape(_SCALARS[type_name])
    if type_name in (QUANTITY, "date-time"):
        return Shape("untyped")
    if type_name in ("any", "int-or-string"):
        return Shape("untyped", ListShape(_ATOMIC, True, ()), MapShape({}, _DEDUCED, False))
    definition = table().definitions[type_name]
    if definition.type:
        return shape(Field(definition.type, map_type=field.map_type))
    return Shape(map=_structure(definition, field))


def _custom_fields() -> Mapping[str, Field]:
    return {"apiVersion": Field("string"), "kind": Field("string"), "metadata": Field(OBJECT_META)}


def _structure(definition: Definition, field: Field) -> MapShape:
    atomic = field.map_type == "atomic" or (definition.map == "atomic" and field.map_type != "granular")
    others = None if definition.fields else _DEDUCED
    return MapShape(definition.fields, others, atomic, implied(field.type))


def _list(field: Field) -> ListShape:
    items = Field(field.type.removeprefix(LIST))
    if field.list_type:
        return ListShape(items, field.list_type == "atomic", field.list_keys)
    if "merge" in field.patch:
        return ListShape(items, False, (field.merge_key,) if field.merge_key else ())
    return ListShape(items, True, ())


@cache
def key_default(items: str, key: str) -> Any:
    """What a field that names items holds if it is left out; None: it is no part of the name then."""
    if (items, key) in _KEY_DEFAULTS:
        return _KEY_DEFAULTS[items, key]
    definition = table().definitions.get(items)
    field = definition.fields.get(key) if definition is not None else None
    return _ZEROS.get(field.type) if field is not None and field.required else None
