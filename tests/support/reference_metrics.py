"""What the reference's programs show on `/metrics`: the committed table of their families."""

from pathlib import Path
from typing import Literal

import msgspec

TABLE = Path(__file__).with_name("reference_metrics.json")


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One family of metrics."""

    name: str
    """As it stands in the text format, with `_total` if it is there."""
    type: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    """Names, sorted; without `le`."""
    known_from: Literal["served", "defined"]
    """A run of the program served it; or its source defines it, and that run had no use for it."""
    buckets: tuple[float, ...] = ()
    """Upper bounds, without +Inf."""


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program, or the library that has what several show."""

    program: str
    version: str
    families: tuple[Family, ...]


def programs() -> dict[str, Program]:
    """By name."""
    found = msgspec.json.decode(TABLE.read_bytes(), type=tuple[Program, ...])
    return {each.program: each for each in found}
