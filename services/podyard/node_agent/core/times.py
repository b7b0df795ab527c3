"""Times of facts, as text. Facts of one moment share it, so each text is made once."""

from datetime import UTC, datetime
from functools import lru_cache

from podyard.cluster import timestamps


@lru_cache(maxsize=256)
def _second(at: int) -> str:
    return timestamps.text_of(at)


def whole(at: float) -> str:
    """`at` (seconds since 1970) to the second, as Kubernetes' metav1.Time."""
    return _second(int(at))


@lru_cache(maxsize=16)
def exact(at: float) -> str:
    """`at` to the microsecond, as Kubernetes' metav1.MicroTime: a restarted agent goes on from it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str, default: float) -> float:
    """Seconds since 1970; `default` for what is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return default
