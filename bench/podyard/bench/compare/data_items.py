"""What kube-scheduler's benchmark writes of a run: `BenchmarkPerfScheduling_benchmark_*.json`. Pure.

Its source: test/integration/scheduler_perf/util.go (Kubernetes v1.36.2). Durations are milliseconds there,
memory MiB.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

THROUGHPUT: Final = "SchedulingThroughput"
DURATION: Final = "SchedulingDuration"
HEAP: Final = "heap_memory_usage"
ATTEMPT: Final = "scheduler_scheduling_attempt_duration_seconds"
METRIC: Final = "Metric"


class Item(msgspec.Struct, frozen=True):
    """One metric with one set of labels: by bucket, as `Average` and `Perc99`."""

    data: dict[str, float] | None = None
    unit: str = ""
    labels: dict[str, str] = {}


class Items(msgspec.Struct, frozen=True, rename="camel"):
    """The file."""

    version: str
    data_items: list[Item] | None = None


class DataItemsError(ValueError):
    """The file is not what is expected; the text says in what."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of it that are compared."""

    measured: str
    """Namespace of the pods that were measured; where they are of several, a name of the workload's own."""
    pods_per_second: float | None
    """Mean of the samples, one a second, the first dropped; `None`: the run was too short for one."""
    percentiles: dict[str, float]
    """Of the samples."""
    seconds: float
    """From the begin of the measured part to its end; the benchmark looks once a second whether it has
    ended."""
    attempt_mean_ms: float | None
    """Of attempts that placed a pod."""
    attempt_p99_ms: float | None
    heap_mib: float | None
    """Go's heap in use, the most of samples twice a second: scheduler, API server, controllers and client are
    one process."""


def read(content: bytes) -> Measured:
    """The one workload of a file.

    :raises DataItemsError: it has none, or several
    """
    try:
        items = msgspec.json.decode(content, type=Items)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataItemsError(f"these are no data items of scheduler_perf: {error}") from error
    found = items.data_items or []
    names = sorted({item.labels.get("Name", "") for item in found})
    if len(names) != 1:
        told = ", ".join(names) if names else "none: it failed before it measured"
        raise DataItemsError(f"data items of one workload were expected, there are {told}")
    rates = _data(found, THROUGHPUT)
    attempts = _data(found, ATTEMPT, result="scheduled")
    heap = _data(found, HEAP)
    duration = _data(found, DURATION)
    if "Duration" not in duration:
        raise DataItemsError(f"{names[0]}: no {DURATION} among the data items")
    return Measured(
        measured=names[0].rpartition("/")[2],
        pods_per_second=rates.get("Average"),
        percentiles={name: value for name, value in rates.items() if name.startswith("Perc")},
        seconds=duration["Duration"],
        attempt_mean_ms=attempts.get("Average"),
        attempt_p99_ms=attempts.get("Perc99"),
        heap_mib=heap.get("Max"),
    )


def _data(items: list[Item], metric: str, **labels: str) -> Mapping[str, float]:
    """The data of the item with this metric and these labels; empty if there is none."""
    for item in items:
        if item.labels.get(METRIC) == metric and all(item.labels.get(key) == value for key, value in labels.items()):
            return item.data or {}
    return {}
