"""Bad messages of every kind: what nobody can read at all, and good ones in which one value is absurd.

`whole()` gives payloads; `spoilt(document)` gives, for each value of a good document, the document with that
value replaced by each of `ABSURD`. Each comes with words for the place and the kind of harm.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from podyard.proto.streams import MEBIBYTE

LEVELS: Final = 900
"""Deeper than any reader of ours may recurse, and less than Python itself allows: what 1,000 levels do is
seen in `whole`."""


def _lists(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def _mappings(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


ABSURD: Final[Mapping[str, bytes]] = {
    "null": b"null",
    "a number": b"7",
    "text": b'"text"',
    "true": b"true",
    "an empty text": b'""',
    "an empty list": b"[]",
    "an empty mapping": b"{}",
    "negative": b"-1",
    "half": b"0.5",
    "2^63": b"9223372036854775808",
    "-2^63-1": b"-9223372036854775809",
    "10^30": b"1" + b"0" * 30,
    "1e999": b"1e999",
    "NaN": b"NaN",
    "a text of digits": b'"1' + b"0" * 30 + b'"',
    "not UTF-8": b'"\xff\xfe"',
    "half a surrogate": rb'"\ud800"',
    "a NUL": rb'"\u0000"',
    "5,000 characters": b'"' + b"a" * 5_000 + b'"',
    "a list of nulls": b"[" + b"null," * 99 + b"null]",
    "2,000 entries": b"{" + b",".join(b'"example.com/k%d":"%d"' % (n, n) for n in range(2_000)) + b"}",
    "nested lists": _lists(LEVELS),
    "nested mappings": _mappings(LEVELS),
}
"""JSON, or nearly, by what is wrong with it."""


class Poison(NamedTuple):
    """One bad payload."""

    what: str
    """Where the harm is, and which."""
    payload: bytes


def whole() -> Iterator[Poison]:
    """Payloads that are bad from their first byte on."""
    yield Poison("no bytes", b"")
    yield Poison("bytes", b"\x00\xff\xfe")
    yield Poison("half a document", b'{"op":"put","object":{"spec":7')
    yield Poison("lists without end", b"[" * 100_000)
    yield Poison("100,000 nested lists", _lists(100_000))
    yield Poison("100,000 nested mappings", _mappings(100_000))
    yield Poison("a huge text", b'"' + b"a" * (2 * MEBIBYTE) + b'"')
    yield Poison("a huge list", b"[" + b"0," * (MEBIBYTE // 2) + b"0]")
    yield from (Poison(f"all of it {what}", value) for what, value in ABSURD.items())


def spoilt(document: Any, *, every: int = 1, first: int = 0) -> Iterator[Poison]:
    """`document` with one value replaced, for every value in it, and every absurd one.

    :param document: JSON-able
    :param every: one of so many only, spread over all places and kinds of harm
    :param first: which of them comes first
    """
    number = first
    for path in _places(document):
        for what, value in ABSURD.items():
            number += 1
            if number % every == 0:
                yield Poison(f"{path}: {what}", msgspec.json.encode(_with(document, path.split(_DOT)[1:], value)))


_DOT: Final = " › "


def _places(document: Any, path: str = "") -> Iterator[str]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield f"{path}{_DOT}{key}"
            yield from _places(value, f"{path}{_DOT}{key}")
    elif isinstance(document, list | tuple):
        for index, value in enumerate(document):
            yield f"{path}{_DOT}{index}"
            yield from _places(value, f"{path}{_DOT}{index}")


def _with(document: Any, steps: list[str], value: bytes) -> Any:
    if not steps:
        return msgspec.Raw(value)
    step, rest = steps[0], steps[1:]
    if isinstance(document, dict):
        return {key: _with(old, rest, value) if key == step else old for key, old in document.items()}
    return [_with(old, rest, value) if str(index) == step else old for index, old in enumerate(document)]
