"""How the types of Kubernetes' API are written as protobuf: the numbers of fields, and which zeros their JSON
shows.

The table is `api_numbers.json.gz` beside this module, apart from that of `api_types`: few read it. `make
kinds` makes it from the `generated.proto` and the Go source of each package that the API document names, in
the Go modules k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator v0.36.2 (Apache-2.0):
facts only. It has 912 messages with 3,148 fields. It is read once, when it is first asked for.
"""

import gzip
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

TABLE: Final = "api_numbers.json.gz"
META: Final = "apimachinery.pkg.apis.meta.v1"
"""The package whose options are kinds of every group and version."""


class Number(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One field of a message.

    `type` is spelled as in Go: `string`, `bool`, `int32`, `int64`, `double`, `bytes`, the name of a message,
    or a list or map of one of these, as in `api_types`.
    """

    number: int
    name: str
    """In JSON; empty: the fields of the message stand among those of the structure around it."""
    type: str
    zero: bool
    """Whether JSON shows its zero (`0`, `""`, `false`): Go points to it, or never leaves it out."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message: its `fields`, or the `type` of the list that it only wraps (in a field of the number
    1)."""

    fields: tuple[Number, ...] = ()
    type: str = ""
    kind: bool = False
    """Whether it stands alone: it has `apiVersion` and `kind`."""


class Origin(msgspec.Struct, frozen=True):
    """A module that the table was made from; `sum` is its checksum, as go.sum spells it."""

    module: str
    version: str
    sum: str


class Table(msgspec.Struct, frozen=True):
    """All facts. `messages` are named as the definitions of `api_types`; `versions` are packages by group and
    version (`apps/v1`)."""

    origin: tuple[Origin, ...]
    versions: dict[str, str]
    messages: dict[str, Message]


@cache
def table() -> Table:
    """The table, read at the first call (some 5 ms)."""
    packed = files("podyard.objects").joinpath(TABLE).read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=Table)


def message_of(api_version: str, kind: str) -> str | None:
    """The name of the message of a kind, None if no such kind is written as protobuf.

    Options (DeleteOptions, CreateOptions) are kinds of every group and version. Source: apimachinery v0.36.2,
    pkg/apis/meta/v1/register.go, AddToGroupVersion.

    :param api_version: `v1`, `apps/v1`
    """
    package = table().versions.get(api_version)
    if package is None:
        return None
    for home in (package, META) if kind.endswith("Options") else (package,):
        found = table().messages.get(f"{home}.{kind}")
        if found is not None and found.kind:
            return f"{home}.{kind}"
    return None
