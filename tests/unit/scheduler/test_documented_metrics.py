"""The metrics that the page about several schedulers names are there, under these names and with these
labels."""

import re
from pathlib import Path

import prometheus_client
import pytest

from podyard.binder.instruments import Instruments as BinderInstruments
from podyard.scheduler.instruments import Instruments as SchedulerInstruments
from podyard.telemetry.tracing import Spans

PAGE = Path(__file__).parents[3] / "docs" / "several-schedulers.md"


@pytest.fixture
def labels() -> dict[str, set[str]]:
    """Of every metric of scheduler and binder, by the name that Prometheus sees."""
    registry = prometheus_client.CollectorRegistry()
    made = [SchedulerInstruments(registry), BinderInstruments(registry, Spans())]
    counters = [one for each in made for one in vars(each).values() if isinstance(one, prometheus_client.Counter)]
    gauges = [one for each in made for one in vars(each).values() if isinstance(one, prometheus_client.Gauge)]
    names = {f"{one._name}_total": set(one._labelnames) for one in counters}  # pyright: ignore[reportPrivateUsage]
    return names | {one._name: set(one._labelnames) for one in gauges}  # pyright: ignore[reportPrivateUsage]


def test_the_page_names_metrics_that_there_are_with_all_their_labels(labels: dict[str, set[str]]):
    rows = re.findall(r"^\| `(podyard_\w+)` \| (\w+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 10
    for name, service, text in rows:
        assert name in labels
        assert name.startswith(f"podyard_{service}_")
        assert {label for label in labels[name] if f"`{label}`" not in text} == set(), name
    named = set(re.findall(r"podyard_\w+_\w+", PAGE.read_text()))
    assert named <= set(labels)
