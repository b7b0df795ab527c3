"""What Kubernetes' API document says of its types in words: descriptions, and which texts a field may have.

`api/openapi-spec` leaves the texts out that a field may have, as if the feature OpenAPIEnums were off. An API
server answers with `pkg/generated/openapi/zz_generated.openapi.go` of its release, which has both. That is
Go, generated, and so regular that its tabs say what belongs to what.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

SOURCE: Final = "pkg/generated/openapi/zz_generated.openapi.go"

_FUNCTION: Final = re.compile(
    r"^func schema_(?:k8sio_)?(?P<name>\w+)\(.*?\{\n(?P<body>.*?)^\}$", re.MULTILINE | re.DOTALL
)
_PROPERTIES: Final = "Properties: map[string]spec.Schema{"
_PROPERTY: Final = re.compile(r'^"(?P<name>[^"]+)": \{$')
_DESCRIPTION: Final = re.compile(r'^Description: +(?P<text>".*"),$')
_ENUM: Final = re.compile(r"^Enum: +\[\]interface\{\}\{(?P<texts>.*)\},$")
_UNICODE: Final = re.compile(r"\\U(?P<code>[0-9a-f]{8})|\\x(?P<byte>[0-9a-f]{2})")

_DEEPER: Final = 2
"""Tabs between the name of a property and what is said of it; what is said of its items stands deeper."""


class WordError(Exception):
    """The source is not as expected; the text says where."""


def words(source: str, definitions: Iterable[str]) -> dict[str, Any]:
    """What is said of each definition: `[description, {field: [description, texts, texts of its items]}]`;
    what is empty at the end is left out.

    :param definitions: as the API document calls them, without `io.k8s.`
    :raises WordError: nothing is said of one
    """
    said = {match["name"]: match["body"] for match in _FUNCTION.finditer(source)}
    found: dict[str, Any] = {}
    for name in definitions:
        body = _body(said, name)
        if body is None:
            raise WordError(f"{SOURCE} has no function for {name}")
        found[name] = _definition(body.splitlines())
    return found


def _body(said: Mapping[str, str], name: str) -> str | None:
    """Functions are called after the end of the package's path, as much of it as the generator took."""
    parts = re.split(r"[.-]", name)
    return next((said[end] for at in range(len(parts) - 1) if (end := "_".join(parts[at:])) in said), None)


def _definition(lines: Sequence[str]) -> list[Any]:
    begin = next((at for at, line in enumerate(lines) if line.strip() == _PROPERTIES), None)
    head = lines if begin is None else lines[:begin]
    own = next((text for line in head if (text := _description(line))), "")
    fields = {} if begin is None else dict(_fields(lines[begin:]))
    return _short([own, fields])


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    depth = _tabs(lines[0]) + 1
    name = ""
    facts: list[Any] = []
    for line in lines[1:]:
        tabs, text = _tabs(line), line.strip()
        if tabs < depth:
            break
        if tabs == depth and (match := _PROPERTY.match(text)):
            name, facts = match["name"], list[Any](("", [], []))
        elif tabs == depth:
            yield name, _short(facts)
        elif tabs == depth + _DEEPER and (said := _description(line)):
            facts[0] = said
        elif match := _ENUM.match(text):
            facts[1 if tabs == depth + _DEEPER else 2] = json.loads(f"[{match['texts']}]")


def _description(line: str) -> str:
    match = _DESCRIPTION.match(line.strip())
    return "" if match is None else _text(match["text"])


def _text(literal: str) -> str:
    """A literal of Go, which is one of JSON but for a few escapes."""
    return json.loads(_UNICODE.sub(_escaped, literal))


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(chr(int(match["code"] or match["byte"], 16)))[1:-1]


def _tabs(line: str) -> int:
    return len(line) - len(line.lstrip("\t"))


def _short(facts: list[Any]) -> list[Any]:
    while facts and not facts[-1]:
        facts.pop()
    return facts
