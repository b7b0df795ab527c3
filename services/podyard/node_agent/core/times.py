"""Times of facts that are finer than a second; whole seconds are `podyard.objects.times`."""

from datetime import UTC, datetime
from functools import lru_cache

from podyard.objects import times


@lru_cache(maxsize=16)
def exact(at: float) -> str:
    """`at` (seconds since 1970) to the microsecond, as Kubernetes' metav1.MicroTime: a restarted agent goes on from it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str, default: float) -> float:
    """Seconds since 1970; `default` for what is no time."""
    try:
        return times.seconds_of(text)
    except ValueError:
        return default
