"""Waiting times in figures. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from podyard.bench.scheduler_perf import figures


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """From create to durable binding, of pods that were bound; in milliseconds of the replay."""

    pods: int
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    longest_ms: float


def of(seconds: Sequence[float]) -> Waits | None:
    """None: nobody was bound."""
    if not seconds:
        return None
    in_order = sorted(one * 1e3 for one in seconds)
    return Waits(
        pods=len(in_order),
        mean_ms=round(sum(in_order) / len(in_order), 3),
        p50_ms=round(figures.at_rank(in_order, 50), 3),
        p90_ms=round(figures.at_rank(in_order, 90), 3),
        p99_ms=round(figures.at_rank(in_order, 99), 3),
        longest_ms=round(in_order[-1], 3),
    )


def by_class(waited: Iterable[tuple[str, float]]) -> dict[str, Waits]:
    """Of seconds, each with the class of its pod; classes by name."""
    found: dict[str, list[float]] = {}
    for name, seconds in waited:
        found.setdefault(name, []).append(seconds)
    return {name: made for name in sorted(found) if (made := of(found[name])) is not None}
