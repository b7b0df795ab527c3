"""Histograms and counters of services, read from their /metrics: what was added between two looks."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import httpx

from podyard.bench.scheduler_perf import figures
from podyard.bench.scheduler_perf.figures import Times

ATTEMPT: Final = "scheduler_scheduling_attempt_duration_seconds"
END_TO_END: Final = "scheduler_pod_scheduling_sli_duration_seconds"
CONFLICTS: Final = "podyard_scheduler_bind_conflicts_total"
NAMES: Final = (ATTEMPT, END_TO_END, CONFLICTS)
WITHIN_S: Final = 5.0
SAMPLE: Final = re.compile(r"^(\w+?)(_bucket|_sum)?(?:{(.*)})? (\S+)", re.MULTILINE)
LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


class Look(NamedTuple):
    """What was told so far, summed over all labels but `result`."""

    buckets: dict[str, dict[float, float]]
    sums: dict[str, float]
    counters: dict[str, float]


def parse(texts: Iterable[str]) -> Look:
    """Of Prometheus' text format, of several processes. Attempts are those that placed a pod."""
    look = Look({}, {}, {})
    for text in texts:
        for name, part, labels, value in SAMPLE.findall(text):
            if name not in NAMES:
                continue
            said = dict(LABEL.findall(labels))
            if name == ATTEMPT and said.get("result", "scheduled") != "scheduled":
                continue
            if part == "_bucket":
                of_name = look.buckets.setdefault(name, {})
                bound = float(said["le"])
                of_name[bound] = of_name.get(bound, 0.0) + float(value)
            elif part == "_sum":
                look.sums[name] = look.sums.get(name, 0.0) + float(value)
            else:
                look.counters[name] = look.counters.get(name, 0.0) + float(value)
    return look


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
