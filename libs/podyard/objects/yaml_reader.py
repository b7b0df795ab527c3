"""YAML as kubectl reads it, strict where kubectl is strict, bounded everywhere.

Plain scalars mean what they mean to sigs.k8s.io/yaml (go-yaml v2): `yes`, `on` and `y` are true, `0777` is
octal, `1e3` is a number, while `12:30` and `2001-01-01` stay text (PyYAML would make numbers and dates of
them). Keys that are no text become text (`on:` is the key `true`). Duplicate keys are errors. Aliases are
copied, and their copies count: an alias bomb is refused.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from podyard.objects import bounds
from podyard.objects.documents import is_list, is_mapping, plain

LARGEST_TEXT_BYTES: Final = 64 * 1024 * 1024
"""Files above it are refused before they are read."""
LARGEST_DOCUMENT_NODES: Final = 500_000
"""Scalars, lists and mappings in a document, aliases expanded. The API server takes 3 MiB a request: fewer
nodes by far."""
DEEPEST_NESTING: Final = bounds.NESTING

_TRUE: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_FALSE: Final = frozenset(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"))
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_INTEGER: Final = re.compile(r"[-+]?(0b[01]+|0o?[0-7]*|0x[0-9a-fA-F]+|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_TAGS: Final = "tag:yaml.org,2002:"


class YamlError(ValueError):
    """Text that is no YAML, or none that is accepted. `document` and `line` count from 1."""

    def __init__(self, document: int, line: int, field: str, detail: str) -> None:
        self.document = document
        self.line = line
        self.field = field
        self.detail = detail
        super().__init__(f"document {document}, line {line}: {detail}")


class Document(NamedTuple):
    """One document: its number and first line, from 1, and its content as JSON has it."""

    number: int
    line: int
    content: Any


def read(text: str, *, twice: list[YamlError] | None = None) -> Iterator[Document]:
    """The documents of `text`, in order, empty ones (content None) included.

    :param twice: given a list, duplicate keys are put there and the last value counts, instead of raising
    :raises YamlError: at the first fault; what came before it was right
    """
    reader = _Reader(text, twice)
    while (document := reader.document()) is not None:
        yield document


class _Anchor(NamedTuple):
    content: Any
    nodes: int


class _Reader:
    """Builds documents from the parser's events. One pass, recursion bounded by `DEEPEST_NESTING`."""

    def __init__(self, text: str, twice: list[YamlError] | None) -> None:
        self._twice = twice
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        self._number = 0
        self._line = 1
        self._nodes = 0
        self._anchors: dict[str, _Anchor] = {}

    def document(self) -> Document | None:
        """The next document, `None` at the end."""
        event = self._next()
        while not isinstance(event, yaml.DocumentStartEvent):
            if isinstance(event, yaml.StreamEndEvent):
                return None
            event = self._next()
        self._number += 1
        self._nodes = 0
        self._anchors = {}
        first = self._next()
        line = self._line
        content = self._build(first, "", 0)
        return Document(self._number, line, content)

    def _next(self) -> Any:
        try:
            event = next(self._events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            detail = f"not valid YAML: {error.problem or error.context or error}"
            raise YamlError(max(1, self._number), mark.line + 1 if mark else self._line, "", detail) from error
        except yaml.YAMLError as error:
            raise YamlError(max(1, self._number), self._line, "", f"not valid YAML: {error}") from error
        self._line = event.start_mark.line + 1
        return event

    def _fault(self, field: str, detail: str) -> YamlError:
        return YamlError(self._number, self._line, field, detail)

    def _build(self, event: Any, path: str, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        self._count(1, path)
        if depth > DEEPEST_NESTING:
            raise self._fault("", f"nested more than {DEEPEST_NESTING} deep")
        before = self._nodes
        if isinstance(event, yaml.ScalarEvent):
            content = self._scalar(event, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            content = self._sequence(path, depth)
        else:
            content = self._mapping(path, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(content, self._nodes - before + 1)
        return content

    def _count(self, nodes: int, path: str) -> None:
        self._nodes += nodes
        if self._nodes > LARGEST_DOCUMENT_NODES:
            detail = f"the document has more than {LARGEST_DOCUMENT_NODES} values (aliases expanded): split it"
            raise self._fault(path, detail)

    def _alias(self, event: Any, path: str) -> Any:
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise self._fault(path, f"alias *{event.anchor} refers to no complete value above it")
        self._count(anchor.nodes, path)
        return plain(anchor.content)

    def _sequence(self, path: str, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._build(event, f"{path}[{len(items)}]", depth + 1))
        return items

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        merged: list[Any] = []
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            line = self._line
            merge = isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]
            key = "<<" if merge else self._key(event, path, depth)
            where = f"{path}.{key}" if path else key
            value = self._build(self._next(), where, depth + 1)
            if merge:
                merged.append(value)
            elif key in items:
                self._set_again(items, key, value, where, line)
            else:
                items[key] = value
        for value in merged:
            self._merge(items, value, path)
        return items

    def _set_again(self, items: dict[str, Any], key: str, value: Any, path: str, line: int) -> None:
        fault = YamlError(self._number, line, path, f'key "{key}" is already set in this mapping')
        if self._twice is None:
            raise fault
        self._twice.append(fault)
        items[key] = value

    def _key(self, event: Any, path: str, depth: int) -> str:
        key = self._build(event, path, depth + 1)
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, str | int | float):
            return str(key)
        raise self._fault(path, "a key must be text")

    def _merge(self, items: dict[str, Any], value: Any, path: str) -> None:
        for source in value if is_list(value) else [value]:
            if not is_mapping(source):
                raise self._fault(path, "<< needs a mapping, or a list of mappings")
            for key, item in source.items():
                items.setdefault(key, item)

    def _scalar(self, event: Any, path: str) -> Any:
        tag: str | None = event.tag
        if tag is None or tag == "!":
            return self._plain(event.value, path) if event.implicit[0] and tag is None else event.value
        return self._tagged(tag.removeprefix(_TAGS), event.value, path)

    def _tagged(self, tag: str, text: str, path: str) -> Any:
        if tag == "str":
            return text
        if tag == "binary":
            try:
                return base64.b64decode(text, validate=False).decode()
            except (binascii.Error, UnicodeDecodeError) as error:
                raise self._fault(path, f"!!binary is no base64 text: {error}") from error
        content = self._plain(text, path)
        wanted = {"null": type(None), "bool": bool, "int": int, "float": (int, float)}.get(tag)
        if wanted is None:
            raise self._fault(path, f"the tag {tag} is not known")
        if not isinstance(content, wanted):
            raise self._fault(path, f'"{text}" is no {tag}')
        return content

    def _plain(self, text: str, path: str) -> Any:
        if text in _NULL:
            return None
        if text[0] not in "+-.0123456789":
            return True if text in _TRUE else False if text in _FALSE else text
        digits = text.replace("_", "")
        if _NOT_FINITE.fullmatch(text):
            raise self._fault(path, f"{text} is no number that JSON knows")
        if len(digits) <= 64 and _INTEGER.fullmatch(digits):
            return _integer(digits)
        if len(digits) <= 64 and _FLOAT.fullmatch(digits):
            return self._float(digits, path)
        return text

    def _float(self, digits: str, path: str) -> float | int:
        number = float(digits)
        if number in (float("inf"), float("-inf")):
            raise self._fault(path, f"{digits} is too large a number")
        return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _integer(digits: str) -> int | float:
    """Source: strconv.ParseInt with base 0; what 64 bits do not hold becomes a float."""
    sign = -1 if digits[0] == "-" else 1
    body = digits.lstrip("+-")
    octal = len(body) > 1 and body[0] == "0" and body[1] not in "xXbBoO"
    number = sign * int(body, 8 if octal else 0)
    return number if -(2**63) <= number < 2**64 else float(number)
