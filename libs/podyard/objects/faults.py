"""Faults in the API server's words, gathered while an object is checked. Source:
apimachinery/pkg/util/validation/field/errors.go."""

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

from podyard.objects.errors import FieldFault

MOST: Final = 100
"""Faults that are told of one object; more are not looked for. An answer with them stays far below what a
message may have."""

SHOWN: Final = 512
"""Characters of a value, or of a path, that are shown; the API server shows all of it."""

_SHOWN_BITS: Final = 128


def shown(value: Any) -> str:
    """A value as the API server shows it: text in quotes, all else as JSON has it. What is very long is
    cut."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, dict | list):
        return cut(msgspec.json.encode(cast("Any", value)).decode())
    return str(value) if isinstance(value, int | float) else f'"{cut(str(value))}"'


def cut(text: str) -> str:
    """`text`, its end left out if it is very long."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


class Faults:
    """What is wrong with one object. Paths are given below the current prefix (see `below`)."""

    __slots__ = ("found", "prefix")

    def __init__(self) -> None:
        self.found: list[FieldFault] = []
        self.prefix = ""

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def enough(self) -> bool:
        """Whether as many were found as are told."""
        return len(self.found) >= MOST

    def below(self, path: str) -> "Below":
        """`with faults.below(path):` paths given inside of the block are below `path`."""
        return Below(self, path)

    def add(self, field: str, type_: str, detail: str) -> None:
        """A fault of a type that has no method of its own. Beyond `MOST` it is not kept."""
        if len(self.found) >= MOST:
            return
        path = self.prefix + field if field.startswith("[") or not (self.prefix and field) else f"{self.prefix}.{field}"
        self.found.append(FieldFault(field=cut(path), type=type_, detail=detail))

    def required(self, field: str, detail: str = "") -> None:
        """The field must be set."""
        self.add(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")

    def invalid(self, field: str, value: Any, detail: str) -> None:
        """The value is not allowed."""
        self.add(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")

    def unsupported(self, field: str, value: Any, supported: Iterable[str]) -> None:
        """The value is none of those there are."""
        listed = ", ".join(f'"{item}"' for item in sorted(supported))
        self.add(field, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}")

    def forbidden(self, field: str, detail: str) -> None:
        """The field may not be set, or not to this."""
        self.add(field, "FieldValueForbidden", f"Forbidden: {detail}")

    def duplicate(self, field: str, value: Any) -> None:
        """The value must be unique, and is not."""
        self.add(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")

    def too_long(self, field: str, most: int) -> None:
        """The text, or the whole, has more than so many bytes."""
        self.add(field, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")

    def too_many(self, field: str, count: int, most: int, what: str = "items") -> None:
        """There are more than so many of something."""
        self.add(field, "FieldValueTooMany", f"Too many: {count}: must have at most {most} {what}")

    def not_found(self, field: str, value: Any) -> None:
        """The value names something that does not exist."""
        self.add(field, "FieldValueNotFound", f"Not found: {shown(value)}")

    def one_of(self, field: str, value: str, supported: Iterable[str]) -> None:
        """Check that a text, if it is set, is one of those there are."""
        if value and value not in supported:
            self.unsupported(field, value, supported)

    def not_negative(self, field: str, value: int | None) -> None:
        """Check that a number, if it is set, is not below zero."""
        if value is not None and value < 0:
            self.invalid(field, value, "must be greater than or equal to 0")


class Below:
    """A block in which all paths are below one. A class of its own, since every pod passes a dozen of
    them."""

    __slots__ = ("_before", "_faults", "_path")

    def __init__(self, faults: Faults, path: str) -> None:
        self._faults = faults
        self._path = path
        self._before = faults.prefix

    def __enter__(self) -> None:
        before, path = self._before, self._path
        self._faults.prefix = before + path if path.startswith("[") or not before else f"{before}.{path}"

    def __exit__(self, *_: object) -> None:
        self._faults.prefix = self._before
