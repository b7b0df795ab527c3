"""Waits after failures double, up to the longest, however many there were."""

import pytest

from podyard.cli.lab import plan
from podyard.workloads.core import waits


@pytest.mark.parametrize(
    ("failures", "wanted"), [(1, 0.5), (2, 1.0), (7, 32.0), (8, 60.0), (1_025, 60.0), (10**9, 60.0)]
)
def test_doubling(failures: int, wanted: float):
    assert waits.doubling_s(0.5, 60.0, failures) == wanted


def test_a_service_that_ends_for_ever_is_started_for_ever():
    assert plan.restart_delay_s(5_000) == plan.LONGEST_DELAY_S
