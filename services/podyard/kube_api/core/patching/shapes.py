"""What server-side apply knows of a value's type: whether it may be a scalar, a list or a mapping, and how
far managers own parts of it.

Sources: kube-openapi pkg/schemaconv (openapi.go, smd.go) for how the types of the API document are read;
structured-merge-diff v6.3.2, schema/elements.go.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from podyard.kube_api.core.patching.implied_values import implied
from podyard.objects.api_types import LIST, MAP, OBJECT_META, QUANTITY, Definition, Field, table
from podyard.objects.documents import Document, is_list, is_mapping, mapping

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
_ROOT: Final = "{root}"
"""What the type of a custom resource as a whole begins with; its schema follows."""
_WRITTEN: Final = "{"
_TYPES: Final = {"string": "string", "boolean": "boolean", "integer": "numeric", "number": "numeric"}
KEPT_SCHEMAS: Final = 512
"""Schemas, and parts of schemas, of custom resources whose shapes are remembered."""
_ATOMIC: Final = Field("any", list_type="atomic", map_type="atomic")


def root(definition: str | None, schema: Document | None = None) -> Root:
    """Of a kind.

    :param definition: None: of a custom resource, whose metadata has a type
    :param schema: of a custom resource; None: its other fields are as they are found, mappings granular,
        lists atomic
    """
    if definition is not None:
        return Field(definition)
    return _CUSTOM if schema is None else Field(_ROOT + _written(schema))


def shape(field: Field) -> Shape:
    """Of the values of a field. A field of `any` is whatever it is: a list as a whole, a mapping key by
    key."""
    return _described(field.type) if field.type.startswith(_WRITTEN) else _known(field)


@cache
def _known(field: Field) -> Shape:
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
        return _known(Field(definition.type, map_type=field.map_type))
    return Shape(map=_structure(definition, field))


def _written(schema: Any) -> str:
    """The type of what has a schema of its own: that schema in JSON."""
    return msgspec.json.encode(schema).decode()


@lru_cache(maxsize=KEPT_SCHEMAS)
def _described(type_name: str) -> Shape:
    """Of what has a schema in a CustomResourceDefinition."""
    of_root = type_name.startswith(_ROOT)
    schema: Document = msgspec.json.decode(type_name.removeprefix(_ROOT))
    type_, open_ = schema.get("type"), schema.get("x-kubernetes-preserve-unknown-fields") is True
    if schema.get("x-kubernetes-int-or-string") is True:
        return Shape("untyped")
    if type_ == "array":
        return Shape(list=_described_list(schema))
    if type_ != "object":
        return Shape(_TYPES[type_]) if type_ in _TYPES else _known(_DEDUCED)
    fields = {name: Field(_written(one)) for name, one in mapping(schema, "properties").items()}
    if of_root or schema.get("x-kubernetes-embedded-resource") is True:
        fields |= _custom_fields()
    others: Field | None = None
    if is_mapping(more := schema.get("additionalProperties")):
        others = Field(_written(more))
    elif open_ or more is True or not fields:
        others = _DEDUCED
    return Shape(map=MapShape(fields, others, schema.get("x-kubernetes-map-type") == "atomic"))


def _described_list(schema: Document) -> ListShape:
    items = schema.get("items")
    inner = Field(_written(items)) if is_mapping(items) else _DEDUCED
    type_, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    named = tuple(str(key) for key in keys) if type_ == "map" and is_list(keys) else ()
    return ListShape(inner, type_ not in ("map", "set"), named)


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


def key_default(items: str, key: str) -> Any:
    """What a field that names items holds if it is left out; None: it is no part of the name then."""
    if items.startswith(_WRITTEN):
        return mapping(msgspec.json.decode(items), "properties", key).get("default")
    return _key_default(items, key)


@cache
def _key_default(items: str, key: str) -> Any:
    if (items, key) in _KEY_DEFAULTS:
        return _KEY_DEFAULTS[items, key]
    definition = table().definitions.get(items)
    field = definition.fields.get(key) if definition is not None else None
    return _ZEROS.get(field.type) if field is not None and field.required else None
