"""Backoff arithmetic: docs/rules.md, zero-backoff-is-none, and the other rules of its section."""

import pytest

from podyard.queue.core.backoff import Backoff, is_backing_off
from tests.unit.queue.play import new_queue, node_event, park, queued


def failed(count: int, errors: int = 0, at: float = 100.25):
    pod = queued("p", at)
    pod.unschedulable_count, pod.consecutive_errors = count, errors
    return pod


@pytest.mark.parametrize(("count", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10)])
def test_backoff_doubles_up_to_the_maximum(count, seconds) -> None:
    assert Backoff().duration_s(failed(count)) == seconds


def test_errors_count_by_themselves() -> None:
    assert Backoff().duration_s(failed(count=5, errors=1)) == 1


def test_the_wait_ends_after_the_whole_second_of_its_end() -> None:
    pod = failed(1)
    Backoff().start(pod)
    assert pod.backoff_expiry == 101
    assert is_backing_off(pod, 101.999)
    assert not is_backing_off(pod, 102.0)


def test_a_maximum_of_zero_means_no_backoff() -> None:
    pod = failed(3)
    Backoff(max_s=0).start(pod)
    assert pod.backoff_expiry is None
    assert not is_backing_off(pod, pod.timestamp)


def test_no_overflow_at_high_counts() -> None:
    assert Backoff(initial_s=1, max_s=3600).duration_s(failed(100_000)) == 3600


def test_without_backoff_a_woken_pod_goes_straight_to_active() -> None:
    queue = new_queue(backoff=Backoff(max_s=0))
    pod = park(queue, "p", "OnNodes")
    queue.move_all(node_event("p"), 0.1)
    assert pod.pool == "activeQ"


def test_a_backoff_that_ended_during_a_slow_cycle_is_over() -> None:
    queue = new_queue()
    pod = park(queue, "p", "OnNodes", now=0.0)
    queue.move_all(node_event("p"), 60.0)
    assert pod.pool == "activeQ"


def test_pop_takes_from_backoff_early_but_never_from_errors() -> None:
    queue = new_queue()
    error, waiting = queued("error"), queued("waiting")
    for pod in (error, waiting):
        queue.add(pod, 0.0)
        assert queue.pop() is pod
    queue.fail(error.uid, 0.0)
    queue.in_flight.record(node_event("waiting"))
    queue.fail(waiting.uid, 0.0, unschedulable=["OnNodes"])
    assert (error.pool, waiting.pool) == ("errorBackoffQ", "backoffQ")
    assert queue.pop() is waiting
    assert queue.pop() is None
    queue.flush_backoff(1.999)
    assert error.pool == "errorBackoffQ"
    queue.flush_backoff(2.0)
    assert error.pool == "activeQ"
