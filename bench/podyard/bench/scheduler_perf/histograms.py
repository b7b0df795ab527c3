"""Histograms and counters of services, read from their /metrics: what was added between two looks."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import httpx

from podyard.bench.scheduler_perf import figures
from podyard.bench.scheduler_perf.figures import Times
from podyard.cli.top import figures as top
from podyard.cli.top.figures import CONFLICTS

ATTEMPT: Final = "scheduler_scheduling_attempt_duration_seconds"
END_TO_END: Final = "scheduler_pod_scheduling_sli_duration_seconds"
SPANS_SENT: Final = "podyard_spans_exported_total"
SPANS_LOST: Final = "podyard_spans_dropped_total"
COUNTERS: Final = (CONFLICTS, SPANS_SENT, SPANS_LOST)
WITHIN_S: Final = 5.0


class Look(NamedTuple):
    """What was told so far, summed over all labels but `result`."""

    buckets: dict[str, dict[float, float]]
    sums: dict[str, float]
    counters: dict[str, float]


def parse(texts: Iterable[str]) -> Look:
    """Of Prometheus' text format, of several processes. Attempts are those that placed a pod."""
    look = Look({}, {}, {})
    for text in texts:
        samples = top.parse(text, buckets=True)
        for name in (ATTEMPT, END_TO_END):
            _add(look, name, samples)
        for name in COUNTERS:
            look.counters[name] = look.counters.get(name, 0.0) + sum(samples.get(name, {}).values())
    return look


def _add(look: Look, name: str, samples: Mapping[str, Mapping[top.Labels, float]]) -> None:
    """One histogram of one process."""
    buckets = look.buckets.setdefault(name, {})
    for labels, value in samples.get(f"{name}_bucket", {}).items():
        said = dict(labels)
        if _counts(name, said):
            bound = float(said["le"])
            buckets[bound] = buckets.get(bound, 0.0) + value
    total = sum(value for labels, value in samples.get(f"{name}_sum", {}).items() if _counts(name, dict(labels)))
    look.sums[name] = look.sums.get(name, 0.0) + total


def _counts(name: str, labels: Mapping[str, str]) -> bool:
    return name != ATTEMPT or labels.get("result", "scheduled") == "scheduled"


def between(before: Look, after: Look, name: str) -> Times | None:
    """Times that were told meanwhile."""
    was = before.buckets.get(name, {})
    buckets = {bound: count - was.get(bound, 0.0) for bound, count in after.buckets.get(name, {}).items()}
    return figures.times_of(buckets, after.sums.get(name, 0.0) - before.sums.get(name, 0.0))


async def look(places: Iterable[str]) -> Look:
    """Of the processes that serve HTTP there; who does not answer tells nothing."""
    texts: list[str] = []
    async with httpx.AsyncClient(timeout=WITHIN_S, trust_env=False) as client:
        for place in places:
            try:
                answer = await client.get(f"http://{place}/metrics", headers={"Accept": "text/plain"})
            except httpx.HTTPError:
                continue
            if answer.is_success:
                texts.append(answer.text)
    return parse(texts)
