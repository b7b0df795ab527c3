"""Times as Kubernetes writes them (RFC 3339, UTC), and how long ago they were, as kubectl says it."""

from datetime import UTC, datetime
from functools import lru_cache

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def rfc3339(now: float) -> str:
    """`now` (seconds since 1970, UTC) as Kubernetes writes it: whole seconds, rounded down."""
    return _written(int(now))


@lru_cache(maxsize=16)
def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=4096)
def seconds_of(text: str) -> float:
    """The time `text` (RFC 3339) in seconds since 1970; without a zone it is UTC.

    :raises ValueError: if it is no time
    """
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def age(since: str | None, now: float) -> str:
    """How long `since` was before `now`, as kubectl's AGE; `<unknown>` without a time, `<invalid>` for one in the future.

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
