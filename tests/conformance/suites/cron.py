"""Suite `cron`: the next times of a CronJob's schedule, as robfig/cron v3.0.1 finds them."""

from collections.abc import Iterator
from typing import Any

import msgspec

from podyard.objects import cron
from tests.conformance import shapes
from tests.conformance.differences import Difference, between

FOLLOWING = 4
"""So many times are found, each after the one before."""


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule, the name of a time zone (empty: UTC), and seconds since 1970."""

    schedule: str
    zone: str
    after: int


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The times, seconds since 1970, the last one None if there is none within five years; or what is
    wrong."""

    next: list[int | None] = []
    error: str = ""


check = shapes.of(Given, Expected)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """What Podyard finds."""
    asked = msgspec.convert(given, Given)
    try:
        schedule = cron.parse(asked.schedule, asked.zone)
    except cron.ScheduleError as error:
        return {"error": str(error)}
    found: list[int | None] = []
    at: int | None = asked.after
    while at is not None and len(found) < FOLLOWING:
        at = schedule.next(at)
        found.append(at)
    return {"next": found}


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """All of it."""
    yield from between(expected, got)
