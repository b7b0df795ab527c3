"""Counts to keep with measurements, as `python -m tests.counts --json` makes them: an installed package has
no tests."""

import sys
from pathlib import Path

import msgspec

from podyard.cli.errors import InputError
from podyard.cli.files import STANDARD_INPUT


def read(name: str) -> dict[str, float]:
    """Counts by name.

    :param name: a file, or `-` for standard input
    :raises InputError: if there are none
    """
    place = "standard input" if name == STANDARD_INPUT else name
    try:
        content = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
        return msgspec.json.decode(content, type=dict[str, float])
    except OSError as error:
        raise InputError(f"{place}: {error.strerror or error}", "is the name right?") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(
            f"{place}: no counts: {error}", "give it what `python -m tests.counts --json` prints in a checkout"
        ) from error
