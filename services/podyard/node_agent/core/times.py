"""Times of facts. Whole seconds, as Kubernetes' objects have them, are `podyard.cluster.timestamps`."""

from datetime import UTC, datetime


def to_text(at: float) -> str:
    """`at` (seconds since 1970) to the microsecond, as Kubernetes' metav1.MicroTime: a restarted agent goes on from it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str, default: float) -> float:
    """Seconds since 1970; `default` for what is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return default
