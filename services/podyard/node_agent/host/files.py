"""Reads and writes the small files in which the kernel says what is, and is told what should be."""

import os
from pathlib import Path
from typing import Final

from podyard.node_agent.host.errors import HostError

MOST_BYTES: Final = 1 << 20
"""More is no file of the kernel's: a `cgroup.procs` of 100,000 processes has 700 kB."""


class Missing(HostError):
    """There is no such file: what it is about has gone, or the kernel does not have it."""


def read(path: Path) -> str:
    """The text of a file.

    :raises Missing: if there is none
    :raises HostError: if it cannot be read
    """
    try:
        with path.open("rb", buffering=0) as file:
            text = b"".join(iter(lambda: file.read(1 << 16), b""))[: MOST_BYTES + 1]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Missing(f"there is no {path}") from error
    except OSError as error:  # a cgroup that is being removed: ENODEV
        raise HostError(f"{path} cannot be read: {error.strerror}") from error
    if len(text) > MOST_BYTES:
        raise HostError(f"{path} is longer than {MOST_BYTES} bytes")
    return text.decode("ascii", "replace")


def read_number(path: Path) -> int | None:
    """The one number in a file; None if it says `max`: no limit.

    :raises HostError: as `read`, and if it is no number
    """
    text = read(path).strip()
    return None if text == "max" else number(path, text)


def read_table(path: Path) -> dict[str, int]:
    """A file with a word and a number in each line.

    :raises HostError: as `read`, and if a line is none such
    """
    found: dict[str, int] = {}
    for line in read(path).splitlines():
        word, _, amount = line.partition(" ")
        found[word] = number(path, amount.strip())
    return found


def number(path: Path, text: str) -> int:
    """:raises HostError: if the text is none that is at least 0"""
    if not (text.isascii() and text.isdigit()):
        raise HostError(f"{path} says {text[:80]!r} where a number should be")
    return int(text)


def write(path: Path, text: str) -> None:
    """Tell the kernel.

    :raises Missing: if there is no such file
    :raises HostError: if it is not taken
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        raise Missing(f"there is no {path}") from error
    except OSError as error:
        raise HostError(f"{path} does not take {text.strip()!r}: {error.strerror}") from error
