"""Errors that people read: what went wrong, where, and what to do. Exit codes: 0 done, 1 failed, 2 wrong
input.

CliError(message, advice)      exit code 1
└── InputError                 exit code 2: the command line, a file, or an object in it
"""

from collections.abc import Sequence

MOST_FAULTS = 20
"""Faults shown at once: whoever has more mends these first."""


class CliError(Exception):
    """Something that the command cannot do. `advice` says what to do about it; it may be empty."""

    exit_code = 1

    def __init__(self, message: str, advice: str = "") -> None:
        self.message = message
        self.advice = advice
        super().__init__(message)


class InputError(CliError):
    """What was typed or given is wrong; nothing was done."""

    exit_code = 2


def listed(faults: Sequence[str]) -> str:
    """Faults one below the other, for an error's message."""
    shown = list(faults[:MOST_FAULTS])
    if len(faults) > MOST_FAULTS:
        shown.append(f"... and {len(faults) - MOST_FAULTS} more")
    return "\n       ".join(shown)
