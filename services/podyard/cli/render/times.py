"""Times for people: `12s`, `3m5s`, `14:02:11.042`."""

from datetime import UTC, datetime

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def duration(seconds: float) -> str:
    """Seconds as kubectl writes ages: two units up to ten minutes and ten hours, then one.

    Source: apimachinery/pkg/util/duration, HumanDuration; below one second in milliseconds.
    """
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f}ms" if seconds > 0 else "0s"
    whole = int(seconds)
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 10 * MINUTE:
        return f"{whole // MINUTE}m{_rest(whole % MINUTE, 's')}"
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return f"{whole // HOUR}h{_rest(whole % HOUR // MINUTE, 'm')}"
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    return f"{whole // DAY}d"


def _rest(amount: int, unit: str) -> str:
    return f"{amount}{unit}" if amount else ""


def clock(at: float) -> str:
    """Seconds since 1970 as local time of day with milliseconds; empty for 0, and for what no calendar has."""
    if not at:
        return ""
    try:
        return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError):
        return ""


def parse_rfc3339(text: str) -> float:
    """Seconds since 1970 of a Kubernetes time; 0 for an empty or wrong one."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
