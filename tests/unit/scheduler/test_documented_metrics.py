"""The metrics that the page about several schedulers names are there, under these names and with these
labels."""

import re
from pathlib import Path

import pytest

from tests.support import shown_metrics

PAGE = Path(__file__).parents[3] / "docs" / "several-schedulers.md"


@pytest.fixture
def labels() -> dict[str, set[str]]:
    """Of every metric of scheduler and binder, by the name that Prometheus sees."""
    shown = shown_metrics.shown()
    return {one.name: set(one.labels) for service in ("scheduler", "binder") for one in shown[service]}


def test_the_page_names_metrics_that_there_are_with_all_their_labels(labels: dict[str, set[str]]):
    rows = re.findall(r"^\| `(podyard_\w+)` \| (\w+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 10
    for name, service, text in rows:
        assert name in labels
        assert name.startswith(f"podyard_{service}_")
        assert {label for label in labels[name] if f"`{label}`" not in text} == set(), name
    named = set(re.findall(r"podyard_\w+_\w+", PAGE.read_text()))
    assert named <= set(labels)
