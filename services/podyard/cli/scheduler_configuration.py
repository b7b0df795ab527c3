"""A KubeSchedulerConfiguration that a person names: read it, and say what is wrong with it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from podyard.cli.errors import InputError, listed

if TYPE_CHECKING:
    from podyard.configuration import Configuration, ConfigurationError

STANDARD_INPUT: Final = "-"


def text_of(name: str) -> str:
    """The text of a file, or of standard input for `-`.

    :raises InputError: if it cannot be read
    """
    try:
        return sys.stdin.read() if name == STANDARD_INPUT else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}", "is the name right?") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 text (byte {error.start})") from error


def of(text: str) -> "Configuration":
    """The configuration in `text`, its plugins made once to see that they can be.

    :raises ConfigurationError: if it cannot be used, with what is wrong beyond the first stage that fails
    """
    from podyard import configuration

    try:
        found = configuration.load(text)
        found.profiles()
    except configuration.ConfigurationError as error:
        known = set(error.faults)
        error.further = tuple(fault for fault in configuration.faults(text) if fault not in known)
        raise
    return found


def check(name: str) -> None:
    """Whether services can run by a file.

    :raises InputError: with everything that is wrong with it
    """
    from podyard.configuration import ConfigurationError

    try:
        of(text_of(name))
    except ConfigurationError as error:
        raise wrong(name, error) from error


def wrong(name: str, error: "ConfigurationError") -> InputError:
    """What is wrong with a file, as an error of the command line."""
    faults = listed([f"{name}: {fault}" for fault in (*error.faults, *error.further)])
    return InputError(faults, f"`podyard config validate {name}` shows them as a table")


def report(error: "ConfigurationError") -> dict[str, Any]:
    """What is wrong, for programs: the stage that failed and every fault, with type and bad value as far as
    there are."""
    from msgspec import UNSET

    from podyard.configuration import DecodeError, InvalidConfiguration

    found: dict[str, Any] = {"valid": False, "stage": error.stage}
    if isinstance(error, DecodeError):
        found["strict"] = error.strict
    if error.further:
        found["further"] = [{"field": fault.field, "detail": fault.detail} for fault in error.further]
    if not isinstance(error, InvalidConfiguration):
        return {**found, "errors": [{"field": fault.field, "detail": fault.detail} for fault in error.faults]}
    return {
        **found,
        "errors": [
            {
                "field": fault.field,
                "type": fault.type,
                **({} if fault.bad_value is UNSET else {"badValue": fault.bad_value}),
                "detail": fault.detail,
            }
            for fault in error.errors
        ],
    }
