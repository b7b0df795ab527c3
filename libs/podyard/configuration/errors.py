"""What can be wrong with a configuration file.

    ValueError
    └── ConfigurationError      a file that cannot be used: final, its author must change it
        ├── DecodeError         the text is not a configuration: syntax, types, unknown or duplicate fields
        ├── InvalidConfiguration  it is one, but values are not allowed: carries all that are not
        └── BuildError          values are allowed, but a profile, plugin or extender cannot be made of them

The reference has the same three stages, one after the other: a later one is only reached if the earlier found
nothing.
"""

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from podyard.objects.errors import placed


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, as the reference words it."""

    field: str
    """Path from the top of the file, e.g. `profiles[0].pluginConfig[1].args.bindTimeoutSeconds`."""
    type: str
    """FieldValueInvalid, FieldValueRequired, FieldValueDuplicate, FieldValueNotSupported or
    FieldValueForbidden."""
    detail: str = ""
    bad_value: Any = UNSET
    """What was there, if it is text, a number or true or false; else UNSET."""
    shown: str = ""
    """What was there, as it is shown; empty for types that show no value."""

    def __str__(self) -> str:
        return str(self.fault())

    def fault(self, path: str = "") -> "Fault":
        """Where, from `path` on, and what, in words."""
        value = f": {self.shown}" if self.shown else ""
        detail = f": {self.detail}" if self.detail else ""
        return Fault(f"{path}.{self.field}".strip("."), f"{_SENTENCES[self.type]}{value}{detail}")


_SENTENCES = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
}


class Fault(NamedTuple):
    """One fault of any stage: where (a path, a line, or empty for the file as a whole), and what is wrong and
    would be right."""

    field: str
    detail: str

    def __str__(self) -> str:
        return placed(self.field, self.detail)


class ConfigurationError(ValueError):
    """A configuration file that cannot be used. `faults`: all that was found at the stage, at least one.
    `further`: what was found beyond it, if somebody looked (`checking`)."""

    def __init__(self, stage: str, faults: tuple[Fault, ...]) -> None:
        self.stage = stage
        self.faults = faults
        self.further: tuple[Fault, ...] = ()
        super().__init__("; ".join(map(str, faults)))


class DecodeError(ConfigurationError):
    """The text is not a configuration. `strict`: only because of unknown or duplicate fields."""

    def __init__(self, *faults: Fault, strict: bool = False) -> None:
        self.strict = strict
        super().__init__("decode", faults)


class InvalidConfiguration(ConfigurationError):
    """Values that are not allowed: `errors` has all of them, in document order."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        self.errors = errors
        super().__init__("validate", tuple(error.fault() for error in errors))


class BuildError(ConfigurationError):
    """A profile, plugin or extender that cannot be made. `field`: where in the file, for faults that are
    given as texts."""

    def __init__(self, *faults: Fault | str, field: str = "") -> None:
        super().__init__("build", tuple(Fault(field, fault) if isinstance(fault, str) else fault for fault in faults))
