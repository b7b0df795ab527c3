"""Families of metrics under the names of kube-scheduler, kubelet and descheduler, cheap enough for every pod.

prometheus_client appends `_total` to every counter, and has a lock for each number. A family here shows
exactly the name that it was given. One thread counts; any may collect. A counter whose name does not end in
`_total` shows as untyped, in OpenMetrics as unknown: that format knows no such counter.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, Generic, TypeVar

import prometheus_client
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar, Sample
from prometheus_client.utils import floatToGoString  # pyright: ignore[reportUnknownVariableType] - untyped

from podyard.telemetry import traceparent

MOST_SERIES: Final = 2048
"""Of one family: label values may be somebody's words, and a series stays for ever."""
OTHERS: Final = "others"
"""Every label of the series that counts what came after."""
FEW: Final = 8
"""Values that cost less to count one by one."""
_TOTAL: Final = "_total"

Labels = tuple[str, ...]
S = TypeVar("S")


def exponential(start: float, factor: float, number: int) -> tuple[float, ...]:
    """Bounds of buckets, each `factor` times the one before, multiplied one by one as in Prometheus' Go
    library: so they are the same floats."""
    bounds = [start]
    while len(bounds) < number:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


class CounterSeries:
    """A number that grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, number: float = 1.0) -> None:
        """:param number: 0 or more"""
        self.value += number


class HistogramSeries:
    """How many values fell into which bucket, and their sum."""

    __slots__ = ("_bounds", "_exemplars", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._exemplars: dict[int, tuple[float, str, float]] = {}
        """The last value of a bucket that has a trace, its traceparent, and when: by bucket."""
        self.counts = [0] * (len(bounds) + 1)
        """By bucket, the last one for what is above all bounds; not cumulative."""
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """:param times: how often this value was seen: for many that share a mean"""
        self.counts[bisect_left(self._bounds, value)] += times
        self.sum += value * times

    def observe_all(self, values: Sequence[float]) -> None:
        """Many values: sorted, they are counted by bucket rather than one by one."""
        if len(values) < FEW:
            for value in values:
                self.observe(value)
            return
        ordered, before = sorted(values), 0
        for number, bound in enumerate(self._bounds):
            below = bisect_right(ordered, bound, before)
            self.counts[number] += below - before
            before = below
        self.counts[-1] += len(ordered) - before
        self.sum += sum(ordered)

    def observe_traced(self, value: float, trace: str, at: float) -> None:
        """A value whose span is kept: it becomes the example of its bucket.

        :param trace: its span's traceparent
        :param at: seconds since 1970, UTC
        """
        self.observe(value)
        self.show(value, trace, at)

    def show(self, value: float, trace: str, at: float) -> None:
        """Make a value that was observed the example of its bucket; as in `observe_traced`."""
        self._exemplars[bisect_left(self._bounds, value)] = (value, trace, at)

    def samples(self, name: str, labels: Mapping[str, str], upper: Sequence[str]) -> Iterable[Sample]:
        """As Prometheus has them: cumulative, then count and sum."""
        counts, total = list(self.counts), self.sum  # another thread may count meanwhile
        sums = list(accumulate(counts))
        for number, (bound, count) in enumerate(zip(upper, sums, strict=True)):
            exemplar = _exemplar(self._exemplars.get(number))
            yield Sample(f"{name}_bucket", {**labels, "le": bound}, float(count), exemplar=exemplar)
        yield Sample(f"{name}_count", dict(labels), float(sums[-1]))
        yield Sample(f"{name}_sum", dict(labels), total)


def _exemplar(found: tuple[float, str, float] | None) -> Exemplar | None:
    """With the labels that component-base v1.36.2 gives them (metrics/histogram.go)."""
    if found is None:
        return None
    value, trace, at = found
    ids = traceparent.parse(trace)
    if ids is None:
        return None
    return Exemplar({"trace_id": f"{ids.trace_id:032x}", "span_id": f"{ids.span_id:016x}"}, value, at)


class _Family(Collector, Generic[S]):
    """Series of one name by the values of their labels."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str], older: str, make: Callable[[], S]) -> None:
        """:param older: a further name of the same numbers; empty: none"""
        self._names = (name, older) if older else (name,)
        self._help, self.label_names, self._make = help_text, tuple(labels), make
        self._series: dict[Labels, S] = {}
        if not self.label_names:
            self.labels()

    def labels(self, *values: str) -> S:
        """The series of these labels' values; who counts or observes often keeps it."""
        found = self._series.get(values)
        if found is None:
            values = _bounded(values, self.label_names, len(self._series))
            found = self._series.setdefault(values, self._make())
        return found


class CounterFamily(_Family[CounterSeries]):
    """Counters of one name."""

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        *,
        older: str = "",
    ) -> None:
        """
        :param name: as it is shown, with `_total` only if the reference's has it
        :param labels: names; a family without any is shown as 0 from the start
        :param older: a further name of the same numbers: the reference's deprecated one
        """
        super().__init__(name, help_text, labels, older, CounterSeries)
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The family as it is now, under each of its names."""
        for name in self._names:
            # two names that differ in `_total` only would be one family: none of them is a counter then
            bare = name.removesuffix(_TOTAL)
            counter = name != bare and bare not in self._names
            family = Metric(bare if counter else name, self._help, "counter" if counter else "unknown")
            for values, series in self._series.copy().items():  # another thread may add one
                family.samples.append(Sample(name, _named(self.label_names, values), series.value))
            yield family


class GaugeFamily(Collector):
    """Gauges of one name, read when somebody scrapes."""

    def __init__(
        self, registry: prometheus_client.CollectorRegistry, name: str, help_text: str, labels: Sequence[str] = ()
    ) -> None:
        self._name, self._help, self.label_names = name, help_text, tuple(labels)
        self._read: Callable[[], Mapping[Labels, float]] | None = None
        registry.register(self)

    def show(self, read: Callable[[], Mapping[Labels, float]] | None) -> None:
        """Where values come from, by values of the labels; None: there are none, as while another leads.

        :param read: called by the thread of whoever scrapes
        """
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The family as it is now."""
        family = Metric(self._name, self._help, "gauge")
        read = self._read
        shown: Mapping[Labels, float] = {} if read is None else read()
        for values, value in shown.items():
            family.samples.append(Sample(self._name, _named(self.label_names, values), float(value)))
        yield family


class HistogramFamily(_Family[HistogramSeries]):
    """Histograms of one name and the same buckets."""

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        older: str = "",
    ) -> None:
        """
        :param labels: names; a family without any is shown empty from the start
        :param buckets: upper bounds, ascending, without +Inf
        :param older: a further name of the same numbers: the reference's deprecated one
        """
        self.buckets = tuple(map(float, buckets))
        self._upper = tuple(floatToGoString(bound) for bound in (*self.buckets, float("inf")))
        super().__init__(name, help_text, labels, older, lambda: HistogramSeries(self.buckets))
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The family as it is now, under each of its names."""
        for name in self._names:
            family = Metric(name, self._help, "histogram")
            for values, series in self._series.copy().items():  # another thread may add one
                family.samples.extend(series.samples(name, _named(self.label_names, values), self._upper))
            yield family


def extension_points(registry: prometheus_client.CollectorRegistry, help_text: str) -> HistogramFamily:
    """kube-scheduler's durations of extension points, of which scheduler and binder have some each. Source:
    v1.36.2, pkg/scheduler/metrics/metrics.go."""
    return HistogramFamily(
        registry,
        "scheduler_framework_extension_point_duration_seconds",
        help_text,
        ["extension_point", "status", "profile"],
        buckets=exponential(0.0001, 2, 12),
    )


def _bounded(values: Labels, labels: Labels, series: int) -> Labels:
    if len(values) != len(labels):
        raise ValueError(f"{len(values)} values {values} for the labels {labels}: give one for each")
    return values if series < MOST_SERIES else (OTHERS,) * len(labels)


def _named(labels: Labels, values: Labels) -> dict[str, str]:
    return dict(zip(labels, values, strict=True))
