"""How a strategic merge patch joins each field, by the table of the API's types.

Source: kubernetes v1.36.2, apimachinery pkg/util/strategicpatch/meta.go and
third_party/forked/golang/json/fields.go.
"""

from typing import Final, NamedTuple

from podyard.kube_api.core.patching.go_words import quoted
from podyard.kube_api.core.patching.refusals import unexpected
from podyard.objects.api_types import LIST, MAP, table

_GO_KINDS: Final = {
    "string": "string",
    "boolean": "bool",
    "int32": "int32",
    "int64": "int64",
    "double": "float64",
    "byte": "slice",
}


class Patched(NamedTuple):
    """A field that a patch joins."""

    type: str
    """Of the field; of a list's items."""
    strategy: str
    """merge, replace or empty: as a list is replaced, as a mapping joined."""
    merge_key: str


def field(type_name: str, key: str) -> Patched:
    """How the mapping `key` of the type is joined.

    :raises ApiError: 500, in the reference's words, if the type has no such field
    """
    definition = table().definitions.get(type_name)
    if definition is None:
        raise unexpected(f"merging an object in json but data type is not struct, instead is: {go_kind(type_name)}")
    found = definition.fields.get(key)
    if found is None:
        name = type_name.rpartition(".")[2]
        raise unexpected(f"unable to find api field in struct {name} for the json field {quoted(key)}")
    strategy = next((one for one in found.patch if one != "retainKeys"), "")
    return Patched(found.type, strategy, found.merge_key)


def items(type_name: str, key: str) -> Patched:
    """How the list `key` of the type is joined."""
    found = field(type_name, key)
    if not found.type.startswith(LIST):
        raise unexpected(f"expected slice or array type, but got: {go_kind(type_name)}")
    return found._replace(type=found.type.removeprefix(LIST))


def go_kind(type_name: str) -> str:
    """The kind of Go's type."""
    if type_name.startswith(LIST):
        return "slice"
    return "map" if type_name.startswith(MAP) else _GO_KINDS.get(type_name, "struct")
