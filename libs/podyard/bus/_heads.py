"""Header blocks as NATS sends them: `NATS/1.0[ <status>[ <description>]]`, then `Name: value` lines."""

import re
from typing import Final

VERSION: Final = "NATS/1.0"
NO_RESPONDERS: Final = "503"
NOT_FOUND: Final = "404"
CONTROL: Final = "100"

_STATUS_PREFIX: Final = b"NATS/1.0 "
_NAME: Final = re.compile(r"[!-9;-~]+")
_LINE_BREAKS: Final = re.compile(r"[\r\n]+")


def status(head: bytes) -> str:
    """The three digits of a status, empty if it is a message."""
    return head[9:12].decode() if head.startswith(_STATUS_PREFIX) else ""


def description(head: bytes) -> str:
    """What stands after the status."""
    return head.partition(b"\r\n")[0][13:].decode("utf-8", "replace").strip()


def parse(head: bytes) -> dict[str, str]:
    """The named headers; of a name that comes twice the last."""
    lines: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            lines[name.strip()] = value.strip()
    return lines


def build(lines: dict[str, str]) -> bytes:
    """The header block with these names and values."""
    return block("".join(line(name, value) for name, value in lines.items()))


def block(text: str) -> bytes:
    """A header block of ready lines."""
    return f"{VERSION}\r\n{text}\r\n".encode()


def line(name: str, value: str) -> str:
    """One header line. Line breaks in a value become blanks, so that no value can pretend to be more than
    one.

    :raises ValueError: if a name has other than visible ASCII characters, or a colon
    """
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot be the name of a header")
    return f"{name}: {value if value.isprintable() else _LINE_BREAKS.sub(' ', value)}\r\n"
