"""Files of objects: YAML or JSON, one or many documents, Lists; every fault says file, document and field.

A file is right as a whole or refused as a whole. Fields that a kind does not have are kept: the api refuses
them or leaves them out. Nulls mean
"absent", as everywhere in Kubernetes, and are dropped (not inside custom kinds, whose meaning only their
owner knows).
"""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from podyard.objects import bounds, yaml_reader
from podyard.objects.decoding import view
from podyard.objects.documents import Document, is_list, is_mapping, no_constant, strip_nulls
from podyard.objects.errors import ManifestError, ObjectError
from podyard.objects.kinds import Kind, kind_for
from podyard.objects.quantity_fields import branches, faults

DUPLICATE_FIELD: Final = "duplicate field"

_DEEPEST_LIST: Final = 3


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One object of a file. `index`: number of its document, from 1; `path`: where it is inside of it
    (`items[3]`), or empty."""

    document: Document
    index: int
    source: str
    kind: Kind
    path: str = ""
    line: int = 0

    @property
    def namespace(self) -> str:
        """metadata.namespace, empty if the file names none."""
        return self.document["metadata"].get("namespace", "")

    @property
    def name(self) -> str:
        """metadata.name, empty if it is to be generated."""
        return self.document["metadata"].get("name", "")

    def fault(self, field: str, detail: str) -> ManifestError:
        """An error about a field of this object, for those who find one later."""
        return ManifestError(self.source, self.index, _join(self.path, field), detail, self.line)


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds."""

    manifests: list[Manifest]
    """The objects that can be used, in order."""
    faults: list[ManifestError]
    """What is wrong with the others. What follows a fault of YAML or JSON is not looked at."""
    duplicates: list[ManifestError]
    """Fields that a mapping has twice; of each the last value counts."""


def read(source_name: str, text: str) -> Contents:
    """The objects of a file and all that is wrong with it; Lists are opened.

    :param source_name: what errors call the file
    """
    reading = _Reading(source_name)
    if len(text) > yaml_reader.LARGEST_TEXT_BYTES:
        limit = yaml_reader.LARGEST_TEXT_BYTES // 1024**2
        reading.faults.append(ManifestError(source_name, 0, "", f"larger than {limit} MiB: split it"))
        return reading.contents([])
    twice: list[yaml_reader.YamlError] = []
    try:
        for document in _documents(text.removeprefix("\ufeff"), twice):
            if document.content is not None:
                reading.open(document, document.content, "", 0)
    except yaml_reader.YamlError as error:
        reading.faults.append(ManifestError(source_name, error.document, error.field, error.detail, error.line))
    return reading.contents(twice)


def load(source_name: str, text: str) -> list[Manifest]:
    """The objects of a file, in order; Lists are opened. `source_name` is what errors call the file.

    :raises ManifestError: at the first fault; nothing of the file may then be applied
    """
    contents = read(source_name, text)
    for fault in (*contents.duplicates, *contents.faults):
        raise fault
    return contents.manifests


def _documents(text: str, twice: list[yaml_reader.YamlError]) -> Iterator[yaml_reader.Document]:
    """Source: apimachinery/pkg/util/yaml, GuessJSONStream: what begins with a brace is JSON."""
    return _json_documents(text, twice) if text.lstrip().startswith("{") else yaml_reader.read(text, twice=twice)


def _json_documents(text: str, twice: list[yaml_reader.YamlError]) -> Iterator[yaml_reader.Document]:
    names: list[str] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) != len(pairs):
            seen: set[str] = set()
            names.extend(key for key, _ in pairs if key in seen or seen.add(key))
        return content

    decoder = json.JSONDecoder(object_pairs_hook=mapping, parse_constant=no_constant)
    position, number = 0, 0
    while (position := _skip_blanks(text, position)) < len(text):
        number += 1
        line = text.count("\n", 0, position) + 1
        try:
            content, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise yaml_reader.YamlError(number, error.lineno, "", f"not valid JSON: {error.msg}") from error
        except (ValueError, RecursionError) as error:
            detail = "nested too deep" if isinstance(error, RecursionError) else str(error)
            raise yaml_reader.YamlError(number, line, "", detail) from error
        if names:
            twice += _located(number, line, content, names, text)
            names.clear()
        yield yaml_reader.Document(number, line, content)


def _located(number: int, line: int, content: Any, names: list[str], text: str) -> list[yaml_reader.YamlError]:
    """Where a JSON document has fields twice: a reader of YAML, which most JSON is, knows paths. Of what it
    cannot read the names are told."""
    found: list[yaml_reader.YamlError] = []
    try:
        documents = list(yaml_reader.read(text, twice=found))
    except yaml_reader.YamlError:
        documents = []
    if len(documents) == 1 and documents[0].content == content and found:
        return found
    return [yaml_reader.YamlError(number, line, name, "is there twice") for name in dict.fromkeys(names)]


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


class _Reading:
    """One file while it is read."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._found: list[Manifest] = []
        self.faults: list[ManifestError] = []

    def contents(self, twice: list[yaml_reader.YamlError]) -> Contents:
        """What was found."""
        duplicates = [
            ManifestError(self._source, error.document, error.field, DUPLICATE_FIELD, error.line) for error in twice
        ]
        return Contents(manifests=self._found, faults=self.faults, duplicates=duplicates)

    def open(self, place: yaml_reader.Document, content: Any, path: str, depth: int) -> None:
        """Take the object itself, or those of a List."""

        def fault(field: str, detail: str) -> None:
            self._refuse(place, path, ObjectError(field, detail))

        if not is_mapping(content):
            fault("", f"must be a mapping with apiVersion, kind and metadata, is {_named(content)}")
            return
        document = content
        for key in ("apiVersion", "kind"):
            if not isinstance(document.get(key), str) or not document[key]:
                fault(key, "must be text, such as apiVersion: v1 and kind: Pod")
                return
        items = document.get("items")
        if not (document["kind"].endswith("List") and (is_list(items) or document["kind"] == "List")):
            self._take(place, document, path)
            return
        if depth >= _DEEPEST_LIST:
            fault("items", f"Lists inside of Lists more than {_DEEPEST_LIST} deep")
            return
        for at, item in enumerate(items if is_list(items) else ()):
            self.open(place, _typed_item(document, item), _join(path, f"items[{at}]"), depth + 1)

    def _take(self, place: yaml_reader.Document, document: Document, path: str) -> None:
        try:
            kind = kind_for(document["apiVersion"], document["kind"])
            wrong = _wrong_with(kind, document)
        except ObjectError as error:
            self._refuse(place, path, error)
            return
        for one in wrong:
            self._refuse(place, path, one)
        if not wrong:
            self._found.append(
                Manifest(
                    document=document, index=place.number, source=self._source, kind=kind, path=path, line=place.line
                )
            )

    def _refuse(self, place: yaml_reader.Document, path: str, error: ObjectError) -> None:
        field = _join(path, error.field)
        self.faults.append(ManifestError(self._source, place.number, field, error.detail, place.line))


def _wrong_with(kind: Kind, document: Document) -> list[ObjectError]:
    """All amounts that are none; else the first of other faults is raised.

    :raises ObjectError: it has not the kind's shape, or is too large
    """
    _check_metadata(document)
    strip_nulls(document["metadata"] if kind.custom else document)
    wrong = [] if kind.custom else [ObjectError(one.field, one.detail) for one in faults(document, branches(kind.type))]
    if not wrong:
        view(kind, document)
        if len(msgspec.json.encode(document)) > bounds.OBJECT_BYTES:
            raise ObjectError("", f"larger than {bounds.OBJECT_BYTES // 1024} KiB of JSON")
    return wrong


def _typed_item(document: Document, item: Any) -> Any:
    """An item of a PodList needs no kind of its own: it has that of the list."""
    kind = document["kind"].removesuffix("List")
    if kind and is_mapping(item) and "kind" not in item:
        return {"apiVersion": document["apiVersion"], "kind": kind, **item}
    return item


def _check_metadata(document: Document) -> None:
    metadata = document.get("metadata")
    if not is_mapping(metadata):
        raise ObjectError("metadata", f"must be a mapping with a name, is {_named(metadata)}")
    if metadata.get("name") in (None, "") and metadata.get("generateName") in (None, ""):
        raise ObjectError("metadata.name", "Required value: name or generateName is required")


def _named(content: Any) -> str:
    if content is None or isinstance(content, bool):
        return "missing" if content is None else "true or false"
    if is_mapping(content) or is_list(content):
        return "a mapping" if is_mapping(content) else "a list"
    return "text" if isinstance(content, str) else "a number"


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path and field else path or field
