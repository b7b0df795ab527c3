"""Which services a lab runs, how often, and when one that ended is started again. Pure."""

from typing import Final, NamedTuple

from podyard.cli import services
from podyard.cli.errors import InputError

MOST: Final = 16
"""Instances of one service: more makes no sense on one machine."""

FIRST_DELAY_S: Final = 0.2
LONGEST_DELAY_S: Final = 10.0
MOST_DOUBLINGS: Final = 16
"""Of the first delay: many more than lead to the longest."""
STABLE_AFTER_S: Final = 30.0
"""A service that ran so long starts again with the first delay."""


class Planned(NamedTuple):
    """One process to run."""

    service: str
    instance: str


def parse(text: str) -> tuple[Planned, ...]:
    """The processes for `--services`: names by commas, `queue=2` or `queue*2` for two of it; empty is one of
    each.

    :raises InputError: for an unknown service or a number that makes no sense
    """
    if not text.strip():
        return tuple(Planned(name, f"{name}-1") for name in services.NAMES)
    counts: dict[str, int] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = word.replace("*", "=").partition("=")
        name = services.check(name)
        count = int(number) if number.isdecimal() else 0 if equals else 1
        if not 1 <= count <= MOST:
            raise InputError(f"--services {word}: the number must be from 1 to {MOST}", "for example queue=2")
        counts[name] = counts.get(name, 0) + count
    return tuple(
        Planned(name, f"{name}-{number}") for name in services.NAMES for number in range(1, counts.get(name, 0) + 1)
    )


def restart_delay_s(failures: int) -> float:
    """Seconds to wait before the next start; `failures` ends in a row without a stable time between, from
    1."""
    return min(FIRST_DELAY_S * 2 ** min(failures - 1, MOST_DOUBLINGS), LONGEST_DELAY_S)


def failures_after(failures: int, ran_s: float) -> int:
    """How many ends in a row that makes, after a run of `ran_s` seconds."""
    return 1 if ran_s >= STABLE_AFTER_S else failures + 1
