"""What Kubernetes' API document says of its types in words: descriptions, and which texts a field may have.

The table is `api_words.json.gz` beside this module, apart from that of `api_types`: it is ten times as large,
and only who describes the API reads it. `make kinds` makes it from
`pkg/generated/openapi/zz_generated.openapi.go` of the Go module k8s.io/kubernetes v1.36.2, copyright The
Kubernetes Authors, under the Apache License 2.0; the words are theirs, unchanged. It is read once, when it is
first asked for.
"""

import gzip
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

TABLE: Final = "api_words.json.gz"


class FieldWords(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is said of a field."""

    description: str = ""
    texts: tuple[str, ...] = ()
    """Those that it may have; empty: any."""
    item_texts: tuple[str, ...] = ()
    """Of a list or map: those that its items may be; empty: any."""


class Words(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is said of a definition, and of its fields by name."""

    description: str = ""
    fields: dict[str, FieldWords] = {}


class Origin(msgspec.Struct, frozen=True):
    """What the table was made from; `sha256` is the file's."""

    module: str
    version: str
    file: str
    sha256: str


class Table(msgspec.Struct, frozen=True):
    """All words. `definitions` are named as those of `api_types`."""

    origin: Origin
    definitions: dict[str, Words]


@cache
def table() -> Table:
    """The table, read at the first call (some 30 ms)."""
    packed = files("podyard.objects").joinpath(TABLE).read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=Table)
