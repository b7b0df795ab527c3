"""Times as Kubernetes writes them (RFC 3339, UTC), and how long ago they were, as kubectl says it."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TypeVar

T = TypeVar("T")

LAST: Final = 253_402_300_799
"""The last second that RFC 3339 can say, 9999-12-31T23:59:59Z, in seconds since 1970."""

_LONGEST_REMEMBERED: Final = 64
"""Letters of a time that is remembered: RFC 3339 needs 35, but sets no bound to the digits of a fraction."""

_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def rfc3339(at: float) -> str:
    """`at` (seconds since 1970, UTC, 0 or more) as metav1.Time: in whole seconds, rounded down, `LAST` at
    most."""
    return _written(int(min(at, LAST)))


@lru_cache(maxsize=16)
def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=16)
def rfc3339_micro(at: float) -> str:
    """`at` (seconds since 1970, UTC) to the microsecond: metav1.MicroTime."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    """The time `text` in seconds since 1970. A time without a zone is none: nobody can say when it is.

    Source: apimachinery v0.36, pkg/apis/meta/v1/time.go, UnmarshalJSON (time.Parse(time.RFC3339)). What only
    Go takes is none here: an hour of one digit, the year 0, a zone of 24 hours.

    :raises ValueError: if it is no time
    """
    return (_remembered if len(text) <= _LONGEST_REMEMBERED else _read)(text)


@lru_cache(maxsize=4096)
def _remembered(text: str) -> float:
    return _read(text)


def _read(text: str) -> float:
    if _RFC3339.fullmatch(text) is None:
        raise ValueError(f"{text[:_LONGEST_REMEMBERED]!r} is no time with a zone (RFC 3339)")
    return datetime.fromisoformat(text).timestamp()


def seconds_or(text: str | None, default: T) -> float | T:
    """The time `text` in seconds since 1970; `default` for none, and for what is no time: an object may hold
    anything."""
    if not text:
        return default
    try:
        return seconds_of(text)
    except ValueError:
        return default


def age(since: str | None, now: float) -> str:
    """How long `since` was before `now`, as kubectl's AGE; `<unknown>` without a time, `<invalid>` for one in
    the future.

    Source: pkg/printers/internalversion, translateTimestampSince.
    """
    if not since:
        return "<unknown>"
    try:
        return duration(now - seconds_of(since))
    except ValueError:
        return "<invalid>"


def duration(seconds: float) -> str:
    """A length of time in at most two units, e.g. `90s`, `5m30s`, `3h`, `2d4h`.

    Source: apimachinery/pkg/util/duration, HumanDuration.
    """
    whole = int(seconds)
    if whole < 0:
        return "<invalid>" if whole < -1 else "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 3 * _HOUR:
        return _pair(whole, _MINUTE, "m", 1, "s", whole < 10 * _MINUTE)
    if whole < 2 * _DAY:
        return _pair(whole, _HOUR, "h", _MINUTE, "m", whole < 8 * _HOUR)
    if whole < 2 * _YEAR:
        return _pair(whole, _DAY, "d", _HOUR, "h", whole < 8 * _DAY)
    return _pair(whole, _YEAR, "y", _DAY, "d", whole < 8 * _YEAR)


def _pair(seconds: int, unit: int, name: str, small: int, small_name: str, both: bool) -> str:
    rest = seconds % unit // small
    return f"{seconds // unit}{name}{rest}{small_name}" if both and rest else f"{seconds // unit}{name}"
