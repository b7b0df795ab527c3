"""Schemas of OpenAPI v3: of Kubernetes' types, made from their table, and of custom kinds, as their
definitions have them.

Of a field there are type, format, description, whether it is required, which texts it may have, and how lists
and maps are joined; no default, which no table has.

Source: kube-openapi v0.0.0-20260317180543, pkg/builder3/openapi.go; kubernetes v1.36.2, api/openapi-spec/v3;
apiextensions-apiserver v0.36.2, pkg/controller/openapi/builder/builder.go.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from podyard.kube_api.core.built_in import BODIES
from podyard.kube_api.core.order import METRICS
from podyard.kube_api.core.served import Served
from podyard.objects import api_types, api_words, documents
from podyard.objects.api_types import LIST, MAP, Definition, Field
from podyard.objects.api_words import FieldWords, Words
from podyard.objects.documents import Document

META: Final = "apimachinery.pkg.apis.meta.v1"
DELETE_OPTIONS: Final = f"{META}.DeleteOptions"
PATCH: Final = f"{META}.Patch"
STATUS: Final = f"{META}.Status"
_LIST_META: Final = f"{META}.ListMeta"

KIND: Final = "x-kubernetes-group-version-kind"
_PREFIX: Final = "io.k8s."
_NO_WORDS: Final = FieldWords()
_LIKE_ANY: Final = "api.core.v1.Pod"
"""A kind whose apiVersion, kind and metadata are described as those of any other; its list likewise."""

_PRIMITIVES: Final[Mapping[str, Document]] = {
    "any": {},
    "boolean": {"type": "boolean"},
    "byte": {"type": "string", "format": "byte"},
    "date-time": {"type": "string", "format": "date-time"},
    "double": {"type": "number", "format": "double"},
    "int-or-string": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "string": {"type": "string"},
}
_QUANTITY: Final[Document] = {"oneOf": [{"type": "string"}, {"type": "number"}]}

_METRICS: Final = "metrics.pkg.apis.metrics.v1beta1"
_METRIC_FIELDS: Final = {
    "apiVersion": Field("string"),
    "kind": Field("string"),
    "metadata": Field(api_types.OBJECT_META),
    "timestamp": Field(f"{META}.Time", required=True),
    "window": Field("string", required=True),
}
_USAGE: Final = Field(f"{MAP}{api_types.QUANTITY}", required=True)
_METRIC_KINDS: Final[Mapping[str, Definition]] = {
    f"{_METRICS}.NodeMetrics": Definition({**_METRIC_FIELDS, "usage": _USAGE}),
    f"{_METRICS}.PodMetrics": Definition(
        {**_METRIC_FIELDS, "containers": Field(f"{LIST}{_METRICS}.ContainerMetrics", required=True)}
    ),
}
_METRIC_TYPES: Final[Mapping[str, Definition]] = {
    **_METRIC_KINDS,
    f"{_METRICS}.ContainerMetrics": Definition({"name": Field("string", required=True), "usage": _USAGE}),
}
"""Source: k8s.io/metrics v0.36.2, pkg/apis/metrics/v1beta1/types.go. Kubernetes' own document lacks
them."""


def definition_of(served: Served) -> str | None:
    """The name of the definition of a built-in resource; None of a custom one."""
    if served.group == METRICS:
        return f"{_METRICS}.{served.kind}"
    return served.definition


def component(served: Served) -> str:
    """How the schema of a resource is called. Source: apiextensions-apiserver, builder.go, gvkToModelName;
    kube-openapi, pkg/util/util.go, ToRESTFriendlyName."""
    definition = definition_of(served)
    if definition is not None:
        return _PREFIX + definition
    return ".".join((*reversed(served.group.split(".")), served.version, served.kind))


def list_component(served: Served) -> str:
    """How the schema of a list of them is called."""
    return component(served).removesuffix(served.kind) + served.list_kind


def ref(name: str) -> Document:
    """A reference to a component, or to a definition without its prefix."""
    return {"$ref": f"#/components/schemas/{name}"}


def of_definition(name: str) -> str:
    """How the schema of a definition is called."""
    return _PREFIX + name


def schemas(resources: Iterable[Served]) -> dict[str, Document]:
    """The components of one version of a group: the kinds, their lists, what is sent with requests, and all
    that they refer to, by name.

    :param resources: of one group and version
    """
    found: dict[str, Document] = {}
    kinds = dict(_kinds())
    kinds[DELETE_OPTIONS] = [kind("", "v1", "DeleteOptions")]
    left = [DELETE_OPTIONS, PATCH, STATUS]
    for served in resources:
        own = kind(served.group, served.version, "DeleteOptions")
        if own not in kinds[DELETE_OPTIONS]:
            kinds[DELETE_OPTIONS].append(own)
        if served.custom:
            found[component(served)] = _custom(served)
            left.append(api_types.OBJECT_META)
        else:
            left.append(definition_of(served) or "")
        if "list" in served.verbs:
            found[list_component(served)] = _list(served)
            left.append(_LIST_META)
        left += [part.definition for part in served.subresources if part.definition is not None]
    for name in _reached(left):
        found[of_definition(name)] = _structure(name, kinds.get(name, ()))
    return dict(sorted(found.items()))


@cache
def _kinds() -> Mapping[str, list[Document]]:
    """The kind of each definition that has one, served or part of another."""
    found = {one.definition: [kind(one.group, one.version, one.kind)] for one in api_types.table().kinds}
    for name in _METRIC_KINDS:
        found[name] = [kind(METRICS, "v1beta1", name.rpartition(".")[2])]
    for part in BODIES:
        found[part.definition or ""] = [kind(part.group, part.version, part.kind)]
    found[STATUS] = [kind("", "v1", "Status")]
    return found


def kind(group: str, version: str, name: str) -> Document:
    """One of `x-kubernetes-group-version-kind`."""
    return {"group": group, "version": version, "kind": name}


def _definition(name: str) -> Definition | None:
    return _METRIC_TYPES.get(name) or api_types.table().definitions.get(name)


def _reached(names: Iterable[str]) -> Iterable[str]:
    """These definitions, and those that they refer to."""
    left, seen = list(names), set[str]()
    while left:
        name = left.pop()
        definition = _definition(name)
        if name in seen or definition is None:
            continue
        seen.add(name)
        left += [_innermost(field.type) for field in definition.fields.values()]
    return seen


def _innermost(type_: str) -> str:
    while True:
        inner = type_.removeprefix(LIST).removeprefix(MAP)
        if inner == type_:
            return type_
        type_ = inner


def _structure(name: str, kinds: Iterable[Document]) -> Document:
    definition, words = _definition(name) or Definition(), _words(name)
    if name == api_types.QUANTITY:
        return _said(words.description, _QUANTITY)
    if definition.type:
        return _said(words.description, _value(definition.type))
    found: Document = {
        **_said(words.description, {"type": "object"}),
        "properties": {
            key: _field(field, words.fields.get(key, _NO_WORDS)) for key, field in sorted(definition.fields.items())
        },
    }
    required = sorted(key for key, field in definition.fields.items() if field.required)
    if required:
        found["required"] = required
    if definition.map:
        found["x-kubernetes-map-type"] = definition.map
    if kinds := list(kinds):
        found[KIND] = kinds
    return found


def _words(name: str) -> Words:
    return api_words.table().definitions.get(name, Words())


def _said(description: str, schema: Document) -> Document:
    return {"description": description, **schema} if description else schema


def _field(field: Field, words: FieldWords) -> Document:
    found: Document = _value(field.type)
    if "$ref" in found:
        found = {"allOf": [found]}
    if words.item_texts:
        inner = "items" if "items" in found else "additionalProperties"
        found[inner] = {**found[inner], "enum": list(words.item_texts)}
    found = _said(words.description, found)
    said: dict[str, Any] = {
        "enum": list(words.texts),
        "x-kubernetes-list-type": field.list_type,
        "x-kubernetes-list-map-keys": list(field.list_keys),
        "x-kubernetes-map-type": field.map_type,
        "x-kubernetes-patch-strategy": ",".join(field.patch),
        "x-kubernetes-patch-merge-key": field.merge_key,
    }
    return found | {key: value for key, value in said.items() if value}


def _value(type_: str) -> Document:
    """The schema of a type as the table spells it, without what is said of a field."""
    if type_.startswith(LIST):
        return {"type": "array", "items": _item(type_.removeprefix(LIST))}
    if type_.startswith(MAP):
        inner = type_.removeprefix(MAP)
        return {"type": "object"} if inner == "any" else {"type": "object", "additionalProperties": _item(inner)}
    primitive = _PRIMITIVES.get(type_)
    return ref(of_definition(type_)) if primitive is None else dict(primitive)


def _item(type_: str) -> Document:
    """Of a list or a map: a reference to a structure stands in `allOf`."""
    found = _value(type_)
    definition = _definition(type_)
    return {"allOf": [found]} if definition is not None and definition.fields else found


def _list(served: Served) -> Document:
    words = _words(list_component(served).removeprefix(_PREFIX))
    like_any = _words(f"{_LIKE_ANY}List").fields
    properties: dict[str, Document] = {
        "apiVersion": {"type": "string"},
        "items": {"type": "array", "items": {"allOf": [ref(component(served))]}},
        "kind": {"type": "string"},
        "metadata": {"allOf": [ref(of_definition(_LIST_META))]},
    }
    if not words.fields:
        words = Words(f"{served.list_kind} is a list of {served.kind}", {**like_any, "items": _NO_WORDS})
    return {
        **_said(words.description, {"type": "object"}),
        "required": ["items"],
        "properties": {name: _said(words.fields[name].description, schema) for name, schema in properties.items()},
        KIND: [kind(served.group, served.version, served.list_kind)],
    }


def _custom(served: Served) -> Document:
    """The schema of a definition, with what all objects have; without one any object is of it."""
    own: dict[str, Any] = {"type": "object"}
    if served.schema is not None:
        of_all: dict[str, Document] = {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [ref(of_definition(api_types.OBJECT_META))]},
        }
        words = _words(_LIKE_ANY).fields
        own = {
            **served.schema,
            "properties": {
                **documents.mapping(served.schema, "properties"),
                **{name: _said(words[name].description, schema) for name, schema in of_all.items()},
            },
        }
    own[KIND] = [kind(served.group, served.version, served.kind)]
    return own
