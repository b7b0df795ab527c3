"""Conformance files: JSON Lines with one case a line, plain or gzip; or one JSON document, of which each
top-level key is a case."""

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

GZIP_MAGIC: Final = b"\x1f\x8b"


class FileError(Exception):
    """A file that cannot be used: which, where, and why."""

    def __init__(self, path: Path, why: str, line: int = 0) -> None:
        self.path = path
        self.line = line
        super().__init__(f"{path}{f', line {line}' if line else ''}: {why}")


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case: what goes in, and what the reference made of it."""

    id: str
    category: str = ""
    about: str = ""
    quirks: list[str] = []
    input: dict[str, Any]
    expected: Any


def read_lines(path: Path) -> list[Case]:
    """All cases of a JSON Lines file, in its order.

    :raises FileError: if the file cannot be read, holds no case, a line is not a case, or an id comes twice
    """
    decoder = msgspec.json.Decoder(Case)
    found: dict[str, Case] = {}
    for number, line in enumerate(contents(path).split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            case = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise FileError(path, f"not a case: {error}", number) from error
        if case.id in found:
            raise FileError(path, f"case {case.id} comes twice", number)
        found[case.id] = case
    if not found:
        raise FileError(path, "holds no case")
    return list(found.values())


def read_document(path: Path) -> list[Case]:
    """One JSON object as cases: each key is the id of what it holds.

    :raises FileError: if the file cannot be read or is not one JSON object with keys
    """
    try:
        document = msgspec.json.decode(contents(path), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FileError(path, f"not a JSON object: {error}") from error
    if not document:
        raise FileError(path, "holds nothing")
    return [Case(id=key, input={}, expected=value) for key, value in document.items()]


def contents(path: Path) -> bytes:
    """A file's bytes, unpacked if it is gzip (by its first bytes, whatever its name).

    :raises FileError: if it cannot be read
    """
    try:
        packed = path.read_bytes()
        return gzip.decompress(packed) if packed.startswith(GZIP_MAGIC) else packed
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(path, getattr(error, "strerror", None) or str(error)) from error


def one_of(cases: Sequence[Case], path: Path, wanted: str) -> Case:
    """The case with the id `wanted`.

    :raises FileError: if there is none
    """
    for case in cases:
        if case.id == wanted:
            return case
    raise FileError(path, f"has no case {wanted!r}; its first is {cases[0].id!r}")
