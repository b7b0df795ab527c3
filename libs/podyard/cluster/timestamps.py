"""Times of Kubernetes objects: RFC 3339 in UTC, whole seconds."""

from datetime import UTC, datetime
from typing import Final

from podyard.objects import times

LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""The last second that RFC 3339 can say, in seconds since 1970."""


def text_of(at: float) -> str:
    """Seconds since 1970 as Kubernetes writes them; fractions are cut. A later time than `LAST` is that one.

    :param at: 0 or more
    """
    return datetime.fromtimestamp(int(min(at, LAST)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time; without a zone it is UTC.

    :raises ValueError: if it is none
    """
    return times.seconds_of(text)
