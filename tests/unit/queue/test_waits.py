"""When an attempt begins, and what its pod did before: parked, backing off, ready."""

from podyard.queue.core.effects import AttemptEnded
from tests.unit.queue.play import node_event
from tests.unit.queue.test_leader import Stage


def last_ended(stage: Stage) -> AttemptEnded:
    return [one for one in stage.queue.take_effects() if isinstance(one, AttemptEnded)][-1]


def test_a_new_pods_attempt_begins_when_it_entered_activeq() -> None:
    stage = Stage()
    stage.add("a")
    stage.now += 3
    popped = stage.take()
    assert (popped.queued_at, popped.popped_at) == (100.0, 103.0)
    assert (popped.parked_s, popped.backed_off_s) == (0.0, 0.0)


def test_time_parked_and_backing_off_lies_before_the_attempt() -> None:
    """A pod that was parked for minutes did not wait for a scheduler."""
    stage = Stage()
    stage.add("a")
    stage.now = 200.25
    stage.done(stage.take(), "unschedulable", unschedulable_plugins=("OnNodes",))
    stage.now = 200.75  # the backoff is not over
    stage.queue.move_all(node_event("a"), stage.now)
    stage.now = 202.5
    stage.leader.tick(stage.now)
    stage.now = 203.0
    popped = stage.take()
    assert (popped.parked_s, popped.backed_off_s) == (0.5, 1.75)
    assert (popped.queued_at, popped.popped_at) == (202.5, 203.0)
    stage.done(popped, "error")
    ended = last_ended(stage)
    assert (ended.queued_at, ended.parked_s, ended.backed_off_s) == (202.5, 0.5, 1.75)


def test_a_pod_that_is_popped_from_backoffq_was_never_ready_before() -> None:
    stage = Stage()
    stage.add("a")
    stage.done(stage.take(), "unschedulable", unschedulable_plugins=("OnNodes",))
    stage.queue.move_all(node_event("a"), stage.now)
    stage.now += 0.5
    popped = stage.take()
    assert (popped.queued_at, popped.popped_at, popped.backed_off_s) == (100.5, 100.5, 0.5)


def test_an_attempt_that_was_never_begun_leaves_no_wait_to_the_next() -> None:
    stage = Stage()
    stage.add("a")
    stage.done(stage.take(), "unschedulable", unschedulable_plugins=("OnNodes",))
    stage.now += 100
    stage.queue.move_all(node_event("a"), stage.now)
    assert stage.take().parked_s == 100
    stage.now += 5
    stage.queue.give_back("uid-a", stage.now)
    popped = stage.take()
    assert (popped.queued_at, popped.parked_s, popped.backed_off_s) == (205.0, 0.0, 0.0)
