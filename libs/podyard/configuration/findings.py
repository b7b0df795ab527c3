"""Faults of a configuration, gathered in the reference's words. Source:
apimachinery/pkg/util/validation/field/errors.go."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from podyard.configuration.errors import FieldError

_SCALARS = (str, int, float, bool)


class Findings:
    """What is wrong with a configuration, in the order in which it was found."""

    def __init__(self) -> None:
        self.found: list[FieldError] = []

    def invalid(self, field: str, value: Any, detail: str) -> None:
        """The value is not allowed."""
        self._add(field, "FieldValueInvalid", detail, value, shown(value))

    def invalid_duration(self, field: str, value: str, detail: str) -> None:
        """The same for a duration, which Go has a structure for: shown, but no bad value."""
        self._add(field, "FieldValueInvalid", detail, UNSET, shown(value))

    def required(self, field: str, detail: str = "") -> None:
        """The field must be set."""
        self._add(field, "FieldValueRequired", detail, "", "")

    def duplicate(self, field: str, value: str) -> None:
        """The value was there already."""
        self._add(field, "FieldValueDuplicate", "", value, shown(value))

    def duplicate_name(self, field: str, name: str) -> None:
        """The same where the reference gives the place of the other one, a structure: no bad value."""
        self._add(field, "FieldValueDuplicate", "", UNSET, shown(name))

    def unsupported(self, field: str, value: str, supported: Iterable[str]) -> None:
        """The value is none of those there are."""
        listed = ", ".join(f'"{item}"' for item in supported)
        self._add(field, "FieldValueNotSupported", f"supported values: {listed}", value, shown(value))

    def forbidden(self, field: str, detail: str) -> None:
        """The field must not be set."""
        self._add(field, "FieldValueForbidden", detail, "", "")

    def _add(self, field: str, type_: str, detail: str, value: Any, shown_: str) -> None:
        bad_value = value if isinstance(value, _SCALARS) else UNSET
        self.found.append(FieldError(field=field, type=type_, detail=detail, bad_value=bad_value, shown=shown_))


def shown(value: Any) -> str:
    """A value as the reference shows it; an empty list was not given."""
    if isinstance(value, Sequence) and not isinstance(value, str) and not value:
        return "null"
    return msgspec.json.encode(value).decode()
