"""The types of Kubernetes' API: which fields each kind has, of which types, how its lists are keyed and
patched, where it is served.

The table is `api_types.json.gz` beside this module. `make kinds` makes it from
`api/openapi-spec/swagger.json` of the Go module k8s.io/kubernetes v1.36.2 (Apache-2.0): facts only, no word
of the descriptions. It has 771 definitions with 3,137 fields, and 95 resources. It is read once, when it is
first asked for.
"""

import gzip
from functools import cache
from importlib.resources import files
from typing import Final, Literal

import msgspec

TABLE: Final = "api_types.json.gz"
OBJECT_META: Final = "apimachinery.pkg.apis.meta.v1.ObjectMeta"
"""The definition of every object's metadata."""

QUANTITY: Final = "apimachinery.pkg.api.resource.Quantity"

LIST: Final = "[]"
MAP: Final = "map[string]"
"""How the type of a list and of a map begin: `[]int32`, `map[string][]string`."""


class Field(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One field of a definition.

    `type` is spelled as in Go: `string`, `boolean`, `int32`, `int64`, `double`, `byte` (base64), `date-time`
    (RFC 3339), `int-or-string`, `any`, the name of a definition, or a list (`[]int32`) or map
    (`map[string]string`) of one of these.
    """

    type: str
    required: bool = False
    list_type: Literal["", "atomic", "set", "map"] = ""
    """How server-side apply joins the list; empty: as a whole."""
    list_keys: tuple[str, ...] = ()
    """The fields that name an item of a list of type `map`."""
    patch: tuple[Literal["merge", "replace", "retainKeys"], ...] = ()
    """How a strategic merge patch joins the field; empty: as a whole if it is a list."""
    merge_key: str = ""
    """The field that names an item in a strategic merge patch."""
    map_type: Literal["", "atomic", "granular"] = ""


class Definition(msgspec.Struct, frozen=True, gc=False):
    """One type of the API. A structure has `fields`, by their JSON names; anything else has a `type`, spelled
    as a field's."""

    fields: dict[str, Field] = {}
    type: str = ""
    map: Literal["", "atomic"] = ""


class ServedKind(msgspec.Struct, frozen=True, gc=False):
    """A kind under its resource in one version. `resource` is the plural, `definition` the name of its
    type."""

    group: str
    version: str
    resource: str
    kind: str
    scope: Literal["Namespaced", "Cluster"]
    definition: str
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()


class Origin(msgspec.Struct, frozen=True):
    """What the table was made from; `sha256` is the file's."""

    module: str
    version: str
    file: str
    sha256: str


class Table(msgspec.Struct, frozen=True):
    """All facts. `definitions` are named as in the API document, without `io.k8s.`; `kinds` go by group,
    version, resource."""

    origin: Origin
    definitions: dict[str, Definition]
    kinds: tuple[ServedKind, ...]


@cache
def table() -> Table:
    """The table, read at the first call (some 5 ms)."""
    packed = files("podyard.objects").joinpath(TABLE).read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=Table)


@cache
def _definitions() -> dict[tuple[str, str], str]:
    return {(f"{kind.group}/{kind.version}".lstrip("/"), kind.kind): kind.definition for kind in table().kinds}


def definition_of(api_version: str, kind: str) -> str | None:
    """The name of the definition of a kind, None if Kubernetes v1.36 serves no such kind in that version.

    :param api_version: `v1`, `apps/v1`
    """
    return _definitions().get((api_version, kind))
