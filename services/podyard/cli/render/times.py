"""Times for people: `12s`, `3m5s`, `14:02:11.042`."""

from datetime import UTC, datetime

from podyard.objects import times


def duration(seconds: float) -> str:
    """A length of time as `get` writes ages (`podyard.objects.times`), below one second in milliseconds; a
    negative one, of clocks that differ, is `0s`."""
    return f"{seconds * 1000:.0f}ms" if 0 < seconds < 1 else times.duration(max(seconds, 0))


def clock(at: float) -> str:
    """Seconds since 1970 as local time of day with milliseconds; empty for 0, and for what no calendar
    has."""
    if not at:
        return ""
    try:
        return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError):
        return ""
