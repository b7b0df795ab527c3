"""JSON documents: the stored form of objects. Walking, copying, dropping nulls."""

from typing import Any, TypeAlias, TypeGuard

import msgspec

Document: TypeAlias = dict[str, Any]
"""A JSON mapping; of an object as a whole or of a part of it."""


def is_mapping(value: Any) -> TypeGuard[Document]:
    """Whether `value` is a JSON mapping."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether `value` is a JSON list."""
    return isinstance(value, list)


def child(document: Document, key: str) -> Document:
    """The mapping under `key`, made and put there if it is missing."""
    found = document.get(key)
    if is_mapping(found):
        return found
    made: Document = {}
    document[key] = made
    return made


def mapping(document: Document, *keys: str) -> Document:
    """The mapping along `keys`; an empty one, not put there, if any step is missing."""
    for key in keys:
        found = document.get(key)
        if not is_mapping(found):
            return {}
        document = found
    return document


def mappings(document: Document, key: str) -> list[Document]:
    """The mappings of the list under `key`; empty if it is missing."""
    found = document.get(key)
    return [item for item in found if is_mapping(item)] if is_list(found) else []


def content(document: Document) -> bytes:
    """The same for equal documents, another for others: for sets of documents."""
    return msgspec.json.encode(document, order="deterministic")


def fill(document: Document, /, **values: Any) -> None:
    """Set each key that is missing."""
    for key, value in values.items():
        if key not in document:
            document[key] = value


def no_constant(name: str) -> Any:
    """For JSON decoders (`parse_constant`).

    :raises ValueError: for NaN and infinities, which JSON does not know
    """
    raise ValueError(f"{name} is no number that JSON knows")


def plain(value: Any) -> Any:
    """A deep copy of mappings and lists, each of Python's own type."""
    if is_mapping(value):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if is_list(value) else value


def copy(document: Document) -> Document:
    """A deep copy, as JSON would come back: tuples become lists."""
    return msgspec.json.decode(msgspec.json.encode(document))


def copy_without_nulls(document: Document) -> Document:
    """A deep copy in which absent is absent; see `strip_nulls`."""
    text = msgspec.json.encode(document)
    copied = msgspec.json.decode(text)
    return strip_nulls(copied) if b"null" in text else copied


def strip_nulls(value: Any) -> Any:
    """Drop keys whose value is null, in place, at any depth: Kubernetes reads them as absent."""
    left = [value]
    while left:
        part = left.pop()
        if is_mapping(part):
            for key in [key for key, item in part.items() if item is None]:
                del part[key]
            left += [item for item in part.values() if isinstance(item, dict | list)]
        elif is_list(part):
            left += [item for item in part if isinstance(item, dict | list)]
    return value
