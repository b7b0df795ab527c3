"""Files of objects: YAML or JSON, one or many documents, Lists; every fault says file, document and field.

A file is right as a whole or refused as a whole. Fields that Podyard does not know are kept. Nulls mean
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


def load(source_name: str, text: str) -> list[Manifest]:
    """The objects of a file, in order; Lists are opened. `source_name` is what errors call the file.

    :raises ManifestError: at the first fault; nothing of the file may then be applied
    """
    if len(text) > yaml_reader.LARGEST_TEXT_BYTES:
        limit = yaml_reader.LARGEST_TEXT_BYTES // 1024**2
        raise ManifestError(source_name, 0, "", f"larger than {limit} MiB: split it")
    found: list[Manifest] = []
    try:
        for document in _documents(text.removeprefix("\ufeff")):
            if document.content is not None:
                found += _opened(source_name, document.number, document.line, document.content, "", 0)
    except yaml_reader.YamlError as error:
        raise ManifestError(source_name, error.document, error.field, error.detail, error.line) from error
    return found


def _documents(text: str) -> Iterator[yaml_reader.Document]:
    """Source: apimachinery/pkg/util/yaml, GuessJSONStream: what begins with a brace is JSON."""
    return _json_documents(text) if text.lstrip().startswith("{") else yaml_reader.read(text)


def _json_documents(text: str) -> Iterator[yaml_reader.Document]:
    decoder = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=no_constant)
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
        yield yaml_reader.Document(number, line, content)


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f'key "{twice}" is already set in this mapping')
    return content


def _opened(source: str, index: int, line: int, content: Any, path: str, depth: int) -> Iterator[Manifest]:
    """The object itself, or those of a List."""

    def fault(field: str, detail: str) -> ManifestError:
        return ManifestError(source, index, _join(path, field), detail, line)

    if not is_mapping(content):
        raise fault("", f"must be a mapping with apiVersion, kind and metadata, is {_named(content)}")
    document = content
    for key in ("apiVersion", "kind"):
        if not isinstance(document.get(key), str) or not document[key]:
            raise fault(key, "must be text, such as apiVersion: v1 and kind: Pod")
    items = document.get("items")
    if not (document["kind"].endswith("List") and (is_list(items) or document["kind"] == "List")):
        yield _checked(source, index, line, document, path)
        return
    if depth >= _DEEPEST_LIST:
        raise fault("items", f"Lists inside of Lists more than {_DEEPEST_LIST} deep")
    for at, item in enumerate(items if is_list(items) else ()):
        yield from _opened(source, index, line, _typed_item(document, item), _join(path, f"items[{at}]"), depth + 1)


def _typed_item(document: Document, item: Any) -> Any:
    """An item of a PodList needs no kind of its own: it has that of the list."""
    kind = document["kind"].removesuffix("List")
    if kind and is_mapping(item) and "kind" not in item:
        return {"apiVersion": document["apiVersion"], "kind": kind, **item}
    return item


def _checked(source: str, index: int, line: int, document: Document, path: str) -> Manifest:
    try:
        kind = kind_for(document["apiVersion"], document["kind"])
        _check_metadata(document)
        strip_nulls(document["metadata"] if kind.custom else document)
        for fault in faults(document, branches(kind.type)) if not kind.custom else ():
            raise ObjectError(fault.field, fault.detail)
        view(kind, document)
        if len(msgspec.json.encode(document)) > bounds.OBJECT_BYTES:
            raise ObjectError("", f"larger than {bounds.OBJECT_BYTES // 1024} KiB of JSON")
    except ObjectError as error:
        raise ManifestError(source, index, _join(path, error.field), error.detail, line) from error
    return Manifest(document=document, index=index, source=source, kind=kind, path=path, line=line)


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
