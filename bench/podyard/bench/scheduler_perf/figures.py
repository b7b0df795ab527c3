"""What is told of a run, as the reference defines it. Pure.

Source: kubernetes v1.36.2, test/integration/scheduler_perf/util.go, throughputCollector.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

SAMPLE_S: Final = 1.0
LONG_ENOUGH_S: Final = 5.0
"""A measured part that is shorter has too few samples for its average to be compared."""


class Bound(msgspec.Struct, frozen=True):
    """Pods that one commit bound."""

    at: float
    """When it was durable, seconds since 1970."""
    count: int


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """Pods a second over samples of a second."""

    average: float
    perc50: float
    perc90: float
    perc95: float
    perc99: float
    samples: tuple[float, ...]


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds."""

    count: int
    mean_ms: float
    p50_ms: float
    p99_ms: float


def samples(bound: Sequence[Bound], started: float, stopped: float) -> list[float]:
    """Pods a second in each second from `started` on, at which the collector looks, until `stopped`.

    The first look that sees a pod counts for nothing. Seconds without a pod get the mean of the time up to
    the next one.
    """
    times = [one.at for one in bound]
    sums = [0]
    for one in bound:
        sums.append(sums[-1] + one.count)
    found: list[float] = []
    last_count, last_at, began, skipped = 0, started, False, 0
    look = 1
    while (now := started + look * SAMPLE_S) < stopped:
        look += 1
        seen = sums[bisect_right(times, now)]
        if seen == 0:
            continue
        if not began:
            began, last_count, last_at = True, seen, now
            continue
        if seen == last_count:
            skipped += 1
            continue
        rate = (seen - last_count) / (now - last_at)
        found += [rate] * (skipped + 1)
        last_count, last_at, skipped = seen, now, 0
    return found


def at_rank(in_order: Sequence[float], rank: int) -> float:
    """The value below or at which so many per cent lie.

    :param in_order: not empty
    """
    return in_order[math.ceil(len(in_order) * rank / 100) - 1]


def throughput(found: Sequence[float]) -> Throughput | None:
    """Average and percentiles; None: there is no sample."""
    if not found:
        return None
    in_order = sorted(found)
    return Throughput(
        average=round(sum(found) / len(found), 1),
        **{f"perc{rank}": round(at_rank(in_order, rank), 1) for rank in (50, 90, 95, 99)},
        samples=tuple(round(one, 1) for one in found),
    )


def per_second(bound: Sequence[Bound], started: float) -> tuple[int, ...]:
    """Pods bound in each second from `started` on."""
    if not bound:
        return ()
    counts = [0] * (int(max(0.0, bound[-1].at - started)) + 1)
    for one in bound:
        counts[int(max(0.0, one.at - started))] += one.count
    return tuple(counts)


def quantile(buckets: Mapping[float, float], share: float) -> float:
    """Of a histogram with cumulative counts by upper bound, interpolated within the bucket.

    Source: prometheus, promql/quantile.go, bucketQuantile.
    """
    bounds = sorted(buckets)
    if not bounds or buckets[bounds[-1]] <= 0:
        return 0.0
    rank = share * buckets[bounds[-1]]
    below, count_below = 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= rank:
            if math.isinf(bound):
                return below
            inside = buckets[bound] - count_below
            return below + (bound - below) * ((rank - count_below) / inside if inside else 1.0)
        below, count_below = bound, buckets[bound]
    return below


def times_of(buckets: Mapping[float, float], total_s: float) -> Times | None:
    """A histogram of seconds in figures; None: it has counted nothing."""
    count = int(max(buckets.values(), default=0))
    if not count:
        return None
    return Times(
        count=count,
        mean_ms=round(total_s / count * 1e3, 3),
        p50_ms=round(quantile(buckets, 0.5) * 1e3, 3),
        p99_ms=round(quantile(buckets, 0.99) * 1e3, 3),
    )


def times_from(found: Sequence[float]) -> Times | None:
    """Times in seconds, all of them known, in figures; None: there is none."""
    if not found:
        return None
    in_order = sorted(found)
    return Times(
        count=len(found),
        mean_ms=round(sum(found) / len(found) * 1e3, 3),
        p50_ms=round(at_rank(in_order, 50) * 1e3, 3),
        p99_ms=round(at_rank(in_order, 99) * 1e3, 3),
    )


def reactions(events: Sequence[float], bound: Sequence[Bound]) -> list[float]:
    """For each event that bindings follow: seconds from it to the last of them before the next event.

    Bindings that come later than the next event count as that one's, so under load this is a lower bound."""
    found: list[float] = []
    times = [one.at for one in bound]
    in_order = sorted(events)
    for number, at in enumerate(in_order):
        until = in_order[number + 1] if number + 1 < len(in_order) else math.inf
        last = bisect_right(times, until) - 1
        if last >= 0 and times[last] > at:
            found.append(times[last] - at)
    return found
