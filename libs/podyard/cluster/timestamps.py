"""Times of Kubernetes objects: RFC 3339 in UTC, whole seconds."""

from datetime import UTC, datetime


def text_of(at: float) -> str:
    """Seconds since 1970 as Kubernetes writes them; fractions are cut."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time.

    :raises ValueError: if it is none
    """
    return datetime.fromisoformat(text).timestamp()
