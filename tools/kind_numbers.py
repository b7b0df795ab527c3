"""How Kubernetes' types are written as protobuf: the numbers of their fields, and which zeros JSON shows.

Numbers and types are in the `generated.proto` of each package of Kubernetes' Go modules. Two facts are in the
Go source beside it alone: a field's JSON name, and whether JSON leaves out its zero (`omitempty`, and no
pointer). Facts only; `podyard.objects.api_numbers` says what the table holds.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

PROTO: Final = "generated.proto"
_TYPELESS: Final = ("_test.go", ".pb.go", "zz_generated.deepcopy.go")
"""How the names of Go files end that declare no type of the API."""

_MESSAGE: Final = re.compile(r"^message (?P<name>\w+) \{\n(?P<body>.*?)^\}$", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(
    r"(?:(?P<label>optional|repeated) (?P<type>[\w.]+)|map<string, (?P<value>[\w.]+)>) (?P<name>\w+) = (?P<number>\d+);"
)
_STRUCT: Final = re.compile(r"^type (?P<name>\w+) struct ?\{(?:\n(?P<body>.*?)^)?\}$", re.MULTILINE | re.DOTALL)
_LIST: Final = re.compile(r"^type (?P<name>\w+) (?P<list>\[\]\w+)$", re.MULTILINE)
_OTHERS: Final = re.compile(r"^type (?P<name>\w+) =? ?(?P<import>\w+)\.(?P<type>\w+)$", re.MULTILINE)
_IMPORT: Final = re.compile(r'^\t(?P<name>\w+) "(?P<path>k8s\.io/\S+)"$', re.MULTILINE)
_GO_FIELD: Final = re.compile(r"^\t(?:\w+\s+)?(?P<type>\S+)\s+`(?P<tags>[^`]*)`", re.MULTILINE)
_TAG: Final = re.compile(r'(?P<key>\w+):"(?P<value>[^"]*)"')
_GROUP: Final = re.compile(r'^const GroupName = "(?P<name>[^"]*)"$', re.MULTILINE)
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?")

_SCALARS: Final = frozenset(("string", "bool", "bytes", "int32", "int64", "double"))


class NumberError(Exception):
    """A package is not as expected; the text says which and what."""


class Package(NamedTuple):
    """One package of a module."""

    name: str
    """As the API document calls it: `api.core.v1`."""
    proto: str
    """Its `generated.proto`."""
    sources: Collection[str]
    """Its Go files that may declare types."""


class _GoField(NamedTuple):
    name: str
    """Of JSON; empty: the fields of the type stand among the structure's own."""
    zero: bool
    """JSON shows its zero."""


class _GoStruct(NamedTuple):
    fields: Mapping[int, _GoField]
    """By protobuf number."""
    is_kind: bool


def folders(files: Collection[str]) -> Iterator[str]:
    """The folders, in a module's zip, that have messages."""
    for name in sorted(files):
        if PurePosixPath(name).name == PROTO:
            yield str(PurePosixPath(name).parent)


def package_name(module: str, version: str, folder: str) -> str:
    """What the API document calls a package: `api.core.v1` for `k8s.io/api@v0.36.2/core/v1`."""
    return _dotted(folder.replace(f"{module}@{version}", module, 1))


def is_source(name: str) -> bool:
    """Whether a file of a package may declare types."""
    return name.endswith(".go") and not name.endswith(_TYPELESS)


def messages(found: Collection[Package]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The packages' messages by their whole names, each with `fields` or, if it only wraps a list, with a
    `type`; `kind` says that it stands alone.

    :raises NumberError: a field has no counterpart in the Go source
    """
    declared = {name: what for package in found for name, what in _declared(package)}
    for package in found:
        for message in _MESSAGE.finditer(package.proto):
            name = f"{package.name}.{message['name']}"
            what = declared.get(name)
            if isinstance(what, str) and not what.startswith("[]"):
                what = declared.get(what)
            if what is None:
                raise NumberError(f"{name}: the Go source has no such type")
            yield name, {"type": what} if isinstance(what, str) else _message(package.name, message, what)


def group_version(package: Package) -> str | None:
    """`apps/v1`, `v1`; None of a package that has no kinds."""
    version = package.name.rpartition(".")[2]
    groups = {found["name"] for source in package.sources for found in _GROUP.finditer(source)}
    if not groups or _VERSION.fullmatch(version) is None:
        return None
    (group,) = groups
    return f"{group}/{version}" if group else version


def _dotted(path: str) -> str:
    return path.removeprefix("k8s.io/").replace("/", ".")


def _declared(package: Package) -> Iterator[tuple[str, _GoStruct | str]]:
    """The package's types by their whole names: structures, `[]string`, or the whole name of another
    package's."""
    for source in package.sources:
        for name, struct in _structs(source):
            yield f"{package.name}.{name}", struct
        for found in _LIST.finditer(source):
            yield f"{package.name}.{found['name']}", found["list"]
        imports = {found["name"]: _dotted(found["path"]) for found in _IMPORT.finditer(source)}
        for found in _OTHERS.finditer(source):
            if found["import"] in imports:
                yield f"{package.name}.{found['name']}", f"{imports[found['import']]}.{found['type']}"


def _message(package: str, message: re.Match[str], struct: _GoStruct) -> dict[str, Any]:
    fields = [_field(package, line) for line in _lines(message["body"])]
    found: dict[str, Any] = {"fields": [_joined(message["name"], *field, struct) for field in fields]}
    if struct.is_kind:
        found["kind"] = True
    return found


def _lines(body: str) -> Iterator[str]:
    """What a message declares, without comments and blank lines."""
    for line in map(str.strip, body.splitlines()):
        if line and not line.startswith("//"):
            yield line


def _field(package: str, line: str) -> tuple[int, str, str]:
    """Number, name and type; the type in Go's spelling, its messages by their whole names."""
    found = _FIELD.fullmatch(line)
    if found is None:
        raise NumberError(f"{package}: not the declaration of a field: {line}")
    type_ = _whole_name(package, found["type"] or found["value"])
    lead = "map[string]" if found["value"] else "[]" if found["label"] == "repeated" else ""
    return int(found["number"]), found["name"], lead + type_


def _whole_name(package: str, type_: str) -> str:
    if type_ in _SCALARS:
        return type_
    if type_.startswith("."):
        return type_.removeprefix(".k8s.io.").replace("_", "-")
    return f"{package}.{type_}"


def _joined(message: str, number: int, name: str, type_: str, struct: _GoStruct) -> list[Any]:
    """`[number, JSON name, type, whether JSON shows its zero]`. A structure with JSON of its own (a time, a
    quantity) tells no numbers: it has the names of its message."""
    if not struct.fields:
        return [number, name, type_, True]
    if number not in struct.fields:
        raise NumberError(f"{message}.{name}: the Go source has no field of the number {number}")
    field = struct.fields[number]
    return [number, field.name, type_, field.zero]


def _structs(source: str) -> Iterator[tuple[str, _GoStruct]]:
    for struct in _STRUCT.finditer(source):
        fields: dict[int, _GoField] = {}
        is_kind = False
        for field in _GO_FIELD.finditer(struct["body"] or ""):
            tags = {tag["key"]: tag["value"] for tag in _TAG.finditer(field["tags"])}
            json_name, *options = tags.get("json", "").split(",")
            if tags.get("protobuf", "-") == "-":
                is_kind |= field["type"].rpartition(".")[2] == "TypeMeta"
                continue
            _, number, *described = tags["protobuf"].split(",")
            named = next((part.removeprefix("name=") for part in described if part.startswith("name=")), "")
            inline = "inline" in options
            zero = field["type"].startswith("*") or "omitempty" not in options
            plain = json_name if json_name not in ("", "-") else named
            fields[int(number)] = _GoField("" if inline else plain, zero)
        yield struct["name"], _GoStruct(fields, is_kind)
