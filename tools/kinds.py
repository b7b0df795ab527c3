"""`make kinds`: tables of Kubernetes' kinds, from its release: two of facts, one of words.

    python -m tools.kinds FOLDER            write the tables
    python -m tools.kinds FOLDER --check    say whether FOLDER has what would be written

The one, `api_types.json.gz`, is made from the API document: `api/openapi-spec/swagger.json` in the zip of the
Go module k8s.io/kubernetes. The other, `api_numbers.json.gz`, from the sources of the types in the modules of
the same release (`tools.kind_numbers`). Both hold facts only: names and types of fields, the keys of lists,
how they are patched, which kinds are served where, numbers. The third, `api_words.json.gz`, has what the
document says in words (`tools.kind_words`). The Go tool chain fetches the modules and checks them against the
checksum database. `podyard.objects.api_types`, `api_numbers` and `api_words` say what the tables hold, and
read them. The same release makes the same bytes.
"""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools import kind_numbers, kind_words

MODULE: Final = "k8s.io/kubernetes"
VERSION: Final = "v1.36.2"
DOCUMENT: Final = "api/openapi-spec/swagger.json"
TYPES: Final = "api_types.json.gz"
NUMBERS: Final = "api_numbers.json.gz"
WORDS: Final = "api_words.json.gz"
SOURCES: Final = ("k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/kube-aggregator")
"""The modules that have the types of the API document, as protobuf too."""

SOURCES_VERSION: Final = VERSION.replace("v1.", "v0.", 1)
DOWNLOAD_S: Final = 600
"""Seconds that a module (20 MB) may take to come."""

PREFIX: Final = "io.k8s."
"""All definitions' names begin so; the table leaves it out."""

REFERENCE: Final = "#/definitions/" + PREFIX
VERBS: Final = ("get", "post", "put", "patch", "delete")
OPEN: Final = "any"
"""The type of a definition that says none: any JSON."""

Json = Mapping[str, Any]


class ToolError(Exception):
    """A table cannot be made; the text says why and what to do."""


def main(arguments: list[str]) -> None:
    """Write the tables, or check them."""
    check = "--check" in arguments
    names = [word for word in arguments if word != "--check"]
    if len(names) != 1:
        raise ToolError("say which folder: python -m tools.kinds FOLDER [--check]")
    types = table(read_document())
    made = {TYPES: types, NUMBERS: numbers(types["definitions"]), WORDS: words(types["definitions"])}
    for name, facts in made.items():
        path = Path(names[0], name)
        packed = pack(facts)
        if not check:
            path.write_bytes(packed)
            print(f"{path}: {len(packed)} bytes")
        elif not path.exists() or unpacked(path.read_bytes()) != unpacked(packed):
            raise ToolError(f"{path} is not what {MODULE} {VERSION} says: make kinds")


def read_document(name: str = DOCUMENT) -> bytes:
    """The API document, or another file, out of the module's zip.

    :raises ToolError: as `fetch` does
    """
    with zipfile.ZipFile(fetch(MODULE, VERSION)["Zip"]) as archive:
        return archive.read(f"{MODULE}@{VERSION}/{name}")


def fetch(module: str, version: str) -> Mapping[str, str]:
    """What the Go tool chain says of a module that it has fetched: `Zip`, the file, `Sum`, its checksum.

    :raises ToolError: there is no Go tool chain, or it cannot fetch the module
    """
    command = ["go", "mod", "download", "-json", f"{module}@{version}"]
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    try:
        done = subprocess.run(
            command, cwd="/", env=environment, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False
        )
    except FileNotFoundError as error:
        raise ToolError("Go is needed to fetch the module: install Go 1.24 or later") from error
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{' '.join(command)} took more than {DOWNLOAD_S} s") from error
    if done.returncode:
        raise ToolError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def table(document: bytes) -> dict[str, Any]:
    """The facts of the API document, in the order of names."""
    swagger = json.loads(document)
    return {
        "origin": {
            "module": MODULE,
            "version": VERSION,
            "file": DOCUMENT,
            "sha256": hashlib.sha256(document).hexdigest(),
        },
        "definitions": {
            name.removeprefix(PREFIX): _definition(definition)
            for name, definition in sorted(swagger["definitions"].items())
        },
        "kinds": list(_kinds(swagger)),
    }


def numbers(definitions: Json) -> dict[str, Any]:
    """How the types of the API document are written as protobuf: of the packages that it names, all messages.

    :raises ToolError: as `fetch` does, and for a package that is not as expected
    """
    wanted = {name.rpartition(".")[0] for name in definitions}
    origin: list[dict[str, str]] = []
    packages: list[kind_numbers.Package] = []
    for module in SOURCES:
        fetched = fetch(module, SOURCES_VERSION)
        origin.append({"module": module, "version": SOURCES_VERSION, "sum": fetched["Sum"]})
        with zipfile.ZipFile(fetched["Zip"]) as archive:
            packages += (package for package in _packages(archive, module) if package.name in wanted)
    versions = {kind_numbers.group_version(package): package.name for package in packages}
    versions.pop(None, None)
    try:
        return {"origin": origin, "versions": versions, "messages": dict(kind_numbers.messages(packages))}
    except kind_numbers.NumberError as error:
        raise ToolError(f"{' '.join(SOURCES)} {SOURCES_VERSION}: {error}") from error


def words(definitions: Json) -> dict[str, Any]:
    """What is said of each definition in words.

    :raises ToolError: as `fetch` does, and for a source that is not as expected
    """
    source = read_document(kind_words.SOURCE)
    try:
        said = kind_words.words(source.decode(), definitions)
    except kind_words.WordError as error:
        raise ToolError(f"{MODULE} {VERSION}: {error}") from error
    digest = hashlib.sha256(source).hexdigest()
    return {
        "origin": {"module": MODULE, "version": VERSION, "file": kind_words.SOURCE, "sha256": digest},
        "definitions": said,
    }


def _packages(archive: zipfile.ZipFile, module: str) -> Iterator[kind_numbers.Package]:
    """The module's packages that have messages."""
    files = archive.namelist()
    for folder in kind_numbers.folders(files):
        inside = [name for name in files if str(Path(name).parent) == folder]
        yield kind_numbers.Package(
            kind_numbers.package_name(module, SOURCES_VERSION, folder),
            archive.read(f"{folder}/{kind_numbers.PROTO}").decode(),
            [archive.read(name).decode() for name in inside if kind_numbers.is_source(name)],
        )


def pack(facts: Json) -> bytes:
    """The table as it is committed: JSON without blanks, gzip without a time."""
    text = json.dumps(facts, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def unpacked(packed: bytes) -> bytes:
    """The JSON of a table. Two versions of zlib may pack the same text differently."""
    return gzip.decompress(packed)


# ---- definitions -------------------------------------------------------------------------------------------


def _definition(definition: Json) -> dict[str, Any]:
    """A structure has `fields`, anything else (a quantity, a time) a `type`."""
    found: dict[str, Any] = {}
    if "properties" in definition:
        required = set(definition.get("required", ()))
        properties = sorted(definition["properties"].items())
        found["fields"] = {name: _field(field, name in required) for name, field in properties}
    else:
        found["type"] = _type(definition)
    if map_type := definition.get("x-kubernetes-map-type"):
        found["map"] = map_type
    return found


def _field(field: Json, required: bool) -> list[Any]:
    """`[type, required, list type, list keys, patch strategies, merge key, map type]`; what is empty at the
    end is left out."""
    strategies = field.get("x-kubernetes-patch-strategy", "")
    facts: list[Any] = [
        _type(field),
        required,
        field.get("x-kubernetes-list-type", ""),
        field.get("x-kubernetes-list-map-keys", []),
        strategies.split(",") if strategies else [],
        field.get("x-kubernetes-patch-merge-key", ""),
        field.get("x-kubernetes-map-type", ""),
    ]
    while not facts[-1]:
        facts.pop()
    return facts


def _type(schema: Json) -> str:
    """A type in Go's spelling: `int32`, `[]string`, `map[string]api.core.v1.Container`."""
    if reference := schema.get("$ref"):
        return str(reference).removeprefix(REFERENCE)
    match schema.get("type"):
        case None:
            return OPEN
        case "array":
            return "[]" + _type(schema["items"])
        case "object":
            values = schema.get("additionalProperties")
            return "map[string]" + (_type(values) if values else OPEN)
        case "integer" | "number":
            return str(schema["format"])
        case "string":
            return str(schema.get("format", "string"))
        case plain:
            return str(plain)


# ---- kinds -------------------------------------------------------------------------------------------------


def _kinds(swagger: Json) -> Iterator[dict[str, Any]]:
    """Kinds that have a resource, by group, version and plural. Source: the paths and what they say of their
    operations."""
    served: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path, operations in sorted(swagger["paths"].items()):
        group, version, rest = _place(path)
        if not version or not rest or rest[0] == "watch":
            continue
        namespaced = rest[:2] == ["namespaces", "{namespace}"] and len(rest) > 2
        resource, *below = rest[2:] if namespaced else rest
        found = served.setdefault(
            (group, version, resource), {"group": group, "version": version, "resource": resource, "scope": "Cluster"}
        )
        if namespaced:
            found["scope"] = "Namespaced"
        if len(below) > 1:
            found.setdefault("subresources", set()).add(below[1])
            continue
        for verb in VERBS:
            if (operation := operations.get(verb)) is not None:
                found.setdefault("verbs", set()).add(operation["x-kubernetes-action"])
                found["kind"] = operation["x-kubernetes-group-version-kind"]["kind"]
    definitions = _named(swagger)
    for key in sorted(served):
        found = served[key]
        found["definition"] = definitions[found["group"], found["version"], found["kind"]]
        for listed in ("verbs", "subresources"):
            if listed in found:
                found[listed] = sorted(found[listed])
        yield found


def _place(path: str) -> tuple[str, str, list[str]]:
    """Group, version and the rest of a path; an empty version if it belongs to no kind."""
    match [part for part in path.split("/") if part]:
        case ["api", version, *rest]:
            return "", version, rest
        case ["apis", group, version, *rest]:
            return group, version, rest
        case _:
            return "", "", []


def _named(swagger: Json) -> dict[tuple[str, str, str], str]:
    """The definition of each kind. One that stands for a kind in every group (DeleteOptions) is of no
    resource's kind."""
    return {
        (kind["group"], kind["version"], kind["kind"]): name.removeprefix(PREFIX)
        for name, definition in swagger["definitions"].items()
        for kind in definition.get("x-kubernetes-group-version-kind", ())
    }


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ToolError as error:
        sys.exit(f"error: {error}")
