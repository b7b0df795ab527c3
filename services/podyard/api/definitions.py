"""What stored CustomResourceDefinitions say of custom objects. Pure.

A custom object without a definition is taken as it is: it is namespaced if it names a namespace.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Protocol

from podyard.cluster.keys import ObjectKey
from podyard.objects import decoding
from podyard.objects.admission import DEFAULT_NAMESPACE
from podyard.objects.documents import Document, is_mapping, mapping, mappings
from podyard.objects.errors import ObjectError, UnknownKindError
from podyard.objects.extensions import DEFINITIONS, CustomResourceDefinition
from podyard.objects.kinds import Kind, kind_for, plural_of


class Lists(Protocol):
    """Who knows the definitions: typed views, or documents of this request."""

    def list(self, resource: str) -> Iterable[Any]:
        """All of a resource."""
        ...


def definition_of(kind: Kind, known: Lists) -> CustomResourceDefinition | None:
    """The definition of a custom kind, None if nobody has stored one.

    :param kind: it may lack its name, and then goes by its plural
    """
    plural = kind.resource.partition(".")[0]
    for one in known.list(DEFINITIONS):
        definition = _typed(one)
        if definition is None or definition.spec.group != kind.group:
            continue
        names = definition.spec.names
        if kind.kind == names.kind or (not kind.kind and plural in (names.plural, plural_of(names.kind))):
            return definition
    return None


class Knows(Lists, Protocol):
    """Who has the definitions as they are written, too."""

    def written(self, key: ObjectKey) -> bytes | None:
        """The document of an object in JSON; None if there is none."""
        ...


def schema_of(kind: Kind, known: Knows) -> Document | None:
    """What the definition says of objects of a custom kind in its version; None: nothing."""
    definition = definition_of(kind, known)
    if definition is None:
        return None
    written = known.written(ObjectKey(DEFINITIONS, "", definition.metadata.name))
    version = kind.api_version.rpartition("/")[2]
    return None if written is None else _schemas(written).get(version)


@lru_cache(maxsize=8)
def _schemas(written: bytes) -> dict[str, Document]:
    """By version. Nobody may change them."""
    found: dict[str, Document] = {}
    for version in mappings(mapping(decoding.document(written), "spec"), "versions"):
        schema = mapping(version, "schema").get("openAPIV3Schema")
        if is_mapping(schema):
            found[str(version.get("name"))] = schema
    return found


def _typed(one: Any) -> CustomResourceDefinition | None:
    if isinstance(one, CustomResourceDefinition):
        return one
    try:
        return decoding.convert(CustomResourceDefinition, one)
    except ObjectError:
        return None


def namespace_of(kind: Kind, definition: CustomResourceDefinition | None, given: str) -> str:
    """The namespace of a custom object that names this one or, if it is empty, none."""
    if definition is None:
        return given
    return (given or DEFAULT_NAMESPACE) if definition.spec.scope == "Namespaced" else ""


def stored_as(kind: Kind, definition: CustomResourceDefinition | None) -> Kind:
    """The kind under which objects of a version are stored: that of the version that stores. Source:
    apiextensions-apiserver v0.36.2, pkg/apiserver/conversion/nop_converter.go."""
    storing = "" if definition is None else definition.storing()
    if not storing or storing == kind.api_version.rpartition("/")[2]:
        return kind
    return kind_for(f"{kind.group}/{storing}", kind.kind)


def check_version(kind: Kind, definition: CustomResourceDefinition | None) -> None:
    """
    :raises UnknownKindError: the definition does not serve the version; says which it serves
    """
    version = kind.api_version.rpartition("/")[2]
    if definition is None or version in definition.served():
        return
    served = " or ".join(f"{kind.group}/{one}" for one in definition.served()) or "none: it serves no version"
    name = definition.metadata.name
    detail = f'no kind "{kind.kind}" in version "{kind.api_version}": {name} serves {served}'
    raise UnknownKindError(detail, "apiVersion")
