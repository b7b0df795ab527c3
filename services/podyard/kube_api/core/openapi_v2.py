"""The document of OpenAPI v2, of all groups together: made of those of v3. Pure.

kubectl reads it where v3 does not help: before it applies a List, whose items it checks itself. It asks for
protobuf, as the messages of gnostic.

Source: gnostic-models v0.7.0, openapiv2/OpenAPIv2.proto; kube-openapi v0.0.0-20260317180543,
pkg/handler/handler.go, pkg/util/proto/document.go (what clients can read of it); apiextensions-apiserver
v0.36.2, pkg/controller/openapi/v2/conversion.go (ToStructuralOpenAPIV2).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from podyard.objects.documents import Document, is_list, is_mapping, mapping

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_BEFORE: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""How clients ask for it, although it is no valid media type."""

_COMPONENTS: Final = "#/components/schemas/"
_DEFINITIONS: Final = "#/definitions/"
_KIND: Final = "x-kubernetes-group-version-kind"
_METHODS: Final = ("get", "put", "post", "delete", "patch")
_NOT_IN_V2: Final = frozenset(("oneOf", "anyOf", "allOf", "not", "nullable"))
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_ANY_FIELDS: Final = "x-kubernetes-preserve-unknown-fields"


def document_of(documents: Iterable[Document]) -> Document:
    """One document of all.

    :param documents: of OpenAPI v3, one for each version of a group
    """
    paths: dict[str, Document] = {}
    definitions: dict[str, Document] = {}
    for one in documents:
        for path, item in one["paths"].items():
            paths[path] = _path(item)
        for name, schema in one["components"]["schemas"].items():
            definition = _definition(schema)
            before = definitions.get(name)
            if before is not None and _KIND in before:  # options are kinds of every group
                known = before[_KIND]
                definition[_KIND] = [*known, *(kind for kind in definition.get(_KIND, ()) if kind not in known)]
            definitions[name] = definition
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def _path(item: Document) -> Document:
    found: Document = {}
    for method in _METHODS:
        operation = item.get(method)
        if operation is None:
            continue
        body = mapping(operation, "requestBody", "content")
        parameters = [_parameter(one) for one in operation.get("parameters", ())]
        if body:
            schema = mapping(next(iter(body.values())), "schema")
            required = operation["requestBody"].get("required", False)
            parameters.append({"name": "body", "in": "body", "required": required, "schema": _definition(schema)})
        told = {key: value for key, value in operation.items() if key.startswith("x-")}
        consumes = {"consumes": list(body)} if body else {}
        answer = {code: {"description": one["description"]} for code, one in operation["responses"].items()}
        found[method] = {**consumes, "produces": ["application/json"], "parameters": parameters, "responses": answer}
        found[method] |= told
    if item.get("parameters"):
        found["parameters"] = [_parameter(one) for one in item["parameters"]]
    return found


def _parameter(parameter: Document) -> Document:
    schema = mapping(parameter, "schema")
    return {**{key: value for key, value in parameter.items() if key != "schema"}, **schema}


def _definition(schema: Document) -> Document:
    """A schema as v2 has it: a reference stands alone, and what is one of several is of no type."""
    whole = schema.get("allOf")
    if is_list(whole) and len(whole) == 1 and "$ref" in whole[0]:
        kept = {key: value for key, value in schema.items() if key == "description" or key.startswith("x-kubernetes")}
        return {**_definition(whole[0]), **kept}
    if "$ref" in schema:
        return {"$ref": _DEFINITIONS + str(schema["$ref"]).removeprefix(_COMPONENTS)}
    found = {key: value for key, value in schema.items() if key not in _NOT_IN_V2}
    if "oneOf" in schema and schema.get("type") is None:  # a quantity, a number or text: text for clients of v2
        found["type"] = "string"
    if schema.get(_INT_OR_STRING) is True or (schema.get("nullable") is True and "type" in schema):
        for key in ("type", "properties", "items", "additionalProperties"):
            found.pop(key, None)
    if schema.get(_ANY_FIELDS) is True:
        found.pop("properties", None)
        found.pop("type", None)
    if is_mapping(properties := found.get("properties")):
        found["properties"] = {name: _definition(one) for name, one in properties.items()}
    for key in ("items", "additionalProperties"):
        if is_mapping(inner := found.get(key)):
            found[key] = _definition(inner)
    return found


# ---- protobuf ----------------------------------------------------------------------------------------------

_NUMBER: Final = 0
_BYTES: Final = 2
_TEXTS: Final[Mapping[str, int]] = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
"""Of a schema, by their numbers in the message; so are the next two."""
_COUNTS: Final[Mapping[str, int]] = {
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "uniqueItems": 16,
    "maxProperties": 17,
    "minProperties": 18,
    "exclusiveMaximum": 8,
    "exclusiveMinimum": 10,
}
_OPERATIONS: Final[Mapping[str, int]] = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def protobuf(document: Document) -> bytes:
    """The document as the message openapi.v2.Document."""
    info = document["info"]
    paths = b"".join(_part(2, _named(path, _path_item(item))) for path, item in document["paths"].items())
    definitions = b"".join(_part(1, _named(name, _schema(one))) for name, one in document["definitions"].items())
    return (
        _text(1, document["swagger"])
        + _part(2, _text(1, info["title"]) + _text(2, info["version"]))
        + _part(8, paths)
        + _part(9, definitions)
    )


def _path_item(item: Document) -> bytes:
    found = b"".join(_part(_OPERATIONS[method], _operation(item[method])) for method in _METHODS if method in item)
    return found + b"".join(_part(9, _parameters_item(one)) for one in item.get("parameters", ()))


def _operation(operation: Document) -> bytes:
    responses = b"".join(
        _part(1, _named(code, _part(1, _text(1, one["description"])))) for code, one in operation["responses"].items()
    )
    return (
        b"".join(_text(6, one) for one in operation["produces"])
        + b"".join(_text(7, one) for one in operation.get("consumes", ()))
        + b"".join(_part(8, _parameters_item(one)) for one in operation["parameters"])
        + _part(9, responses)
        + _extensions(13, operation)
    )


def _parameters_item(parameter: Document) -> bytes:
    name, place = parameter["name"], parameter["in"]
    required = bool(parameter.get("required"))
    if place == "body":
        body = _text(2, name) + _text(3, place) + _count(4, required) + _part(5, _schema(parameter["schema"]))
        return _part(1, _part(1, body))
    common = _count(1, required) + _text(2, place) + _text(4, name)
    if place == "query":
        own = common + _text(6, parameter.get("type", "")) + _count(20, bool(parameter.get("uniqueItems")))
        return _part(1, _part(2, _part(3, own)))
    own = common + _text(5, parameter.get("type", "")) + _count(19, bool(parameter.get("uniqueItems")))
    return _part(1, _part(2, _part(4, own)))


def _schema(schema: Document) -> bytes:
    found = bytearray()
    for key, value in schema.items():
        if key in _TEXTS:
            found += _text(_TEXTS[key], str(value))
        elif key in _COUNTS:
            found += _count(_COUNTS[key], int(value))
        elif key == "default":
            found += _part(5, _any(value))
        elif key == "required":
            found += b"".join(_text(19, one) for one in value)
        elif key == "enum":
            found += b"".join(_part(20, _any(one)) for one in value)
        elif key == "additionalProperties":
            found += _part(
                21, _part(1, _schema(value)) if is_mapping(value) else _tag(2, _NUMBER) + bytes([bool(value)])
            )
        elif key == "type":
            found += _part(22, _text(1, str(value)))
        elif key == "items":
            found += _part(23, _part(1, _schema(value)))
        elif key == "properties":
            found += _part(25, b"".join(_part(1, _named(name, _schema(one))) for name, one in value.items()))
    return bytes(found) + _extensions(31, schema)


def _extensions(number: int, document: Document) -> bytes:
    return b"".join(_part(number, _named(key, _any(value))) for key, value in document.items() if key.startswith("x-"))


def _any(value: Any) -> bytes:
    """JSON is YAML."""
    return _text(2, msgspec.json.encode(value).decode())


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _part(2, value)


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode()) if text else b""


def _count(number: int, value: int) -> bytes:
    return _tag(number, _NUMBER) + _varint(value) if value else b""


def _part(number: int, payload: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(payload)) + payload


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    found = bytearray()
    value &= 2**64 - 1
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
