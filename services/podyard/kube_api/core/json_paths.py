"""JSONPath as far as definitions of custom resources use it: keys, indices, `[*]`, and the one filter
`[?(@.type=="Ready")]`. Pure.

Source: kubernetes v1.36.2, staging/src/k8s.io/client-go/util/jsonpath/parser.go.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from podyard.objects.documents import is_list, is_mapping

LONGEST: Final = 1024
"""Characters of a path."""

_STEP: Final = re.compile(
    r"""
    \.(?P<key>(?:\\.|[^.\[\]\\])+)
    | \[(?P<index>-?\d{1,9})\]
    | \[(?P<all>\*)\]
    | \[(?P<quote>['"])(?P<quoted>(?:\\.|(?!(?P=quote)).)+)(?P=quote)\]
    | \[\?\(\s*@(?P<of>(?:\.(?:\\.|[^.\[\]\\=!<>\s])+)+)\s*==\s*(?P<mark>['"]?)(?P<value>.*?)(?P=mark)\s*\)\]
    """,
    re.VERBOSE,
)
_ESCAPED: Final = re.compile(r"\\(.)")


class _Filter(NamedTuple):
    """Of a list those whose field has this value."""

    field: tuple[str, ...]
    value: str


_Part: TypeAlias = str | int | _Filter | None
"""A key, an index, a filter; `None`: all of a list."""


class Path:
    """Where something lies in a document."""

    def __init__(self, text: str) -> None:
        """
        :param text: e.g. `.status.conditions[?(@.type=="Ready")].status`
        :raises ValueError: if it is not of that form
        """
        self._parts = tuple(_parsed(text))

    def first(self, document: Any) -> Any:
        """The first value that lies there; `None` if there is none."""
        return next(_found(document, self._parts), None)


def _parsed(text: str) -> Iterator[_Part]:
    if len(text) > LONGEST:
        raise ValueError(f"a path of {len(text)} characters: {LONGEST} are read")
    at = 0
    rest = text if text.startswith((".", "[")) else f".{text}"
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise ValueError(f"{text[:100]!r} is no path that is read: keys, indices, [*], [?(@.key=='value')] are")
        at = step.end()
        if (name := step["key"] or step["quoted"]) is not None:
            yield _plain(name)
        elif step["index"] is not None:
            yield int(step["index"])
        elif step["of"] is not None:
            yield _Filter(tuple(_plain(one) for one in re.split(r"(?<!\\)\.", step["of"])[1:]), step["value"])
        else:
            yield None


def _plain(name: str) -> str:
    return _ESCAPED.sub(r"\1", name)


def _found(value: Any, parts: tuple[_Part, ...]) -> Iterator[Any]:
    if not parts:
        yield value
        return
    part, rest = parts[0], parts[1:]
    if isinstance(part, str):
        if is_mapping(value) and part in value:
            yield from _found(value[part], rest)
    elif is_list(value):
        if isinstance(part, int):
            if -len(value) <= part < len(value):
                yield from _found(value[part], rest)
            return
        for one in value:
            if part is None or _fits(one, part):
                yield from _found(one, rest)


def _fits(value: Any, wanted: _Filter) -> bool:
    for key in wanted.field:
        if not is_mapping(value) or key not in value:
            return False
        value = value[key]
    return (str(value).lower() if isinstance(value, bool) else str(value)) == wanted.value
