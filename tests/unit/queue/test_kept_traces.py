"""Which attempts' traces are kept whole, and which of many equal failures have one
(docs/rules.md, bad-outcomes-are-traced, equal-failures-are-thinned)."""

from podyard.proto.queue_api import AttemptResult, failure_of
from podyard.proto.traces import flagged, is_sampled
from podyard.queue.core.effects import AttemptEnded
from tests.unit.queue.play import node_event
from tests.unit.queue.test_leader import Stage

EVICTED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def fail(stage: Stage, *plugins: str, times: int = 1) -> list[AttemptEnded]:
    """The pod fails that is next; it is woken at once, its backoff over."""
    found: list[AttemptEnded] = []
    for _ in range(times):
        stage.done(stage.take(), "unschedulable", unschedulable_plugins=plugins)
        found += [one for one in stage.queue.take_effects() if isinstance(one, AttemptEnded)]
        stage.now += 60
        stage.queue.move_all(node_event("a"), stage.now)
    return found


def test_attempts_after_the_first_are_kept_whole() -> None:
    stage = Stage()
    stage.add("a")
    assert [is_sampled(one.trace) for one in fail(stage, "OnNodes", times=3)] == [False, True, True]


def test_the_pod_that_replaces_one_whose_end_is_kept_is_kept() -> None:
    stage = Stage()
    (replacement, other, plain) = stage.add("r", "o", "p")
    replacement.causes = replacement.replaces = (EVICTED,)
    other.causes = other.replaces = (EVICTED[:-1] + "0",)
    plain.causes = (EVICTED,)
    assert [is_sampled(stage.take().trace) for _ in range(3)] == [True, False, False]


def test_a_refused_decision_keeps_the_attempt_that_binds_in_the_end() -> None:
    stage = Stage()
    (pod,) = stage.add("a")
    popped = stage.take()
    stage.done(popped, "scheduled", node="n")
    stage.leader.bound(pod, "n", popped.attempt, stage.now, trace=flagged(popped.trace))
    (ended,) = (one for one in stage.queue.take_effects() if isinstance(one, AttemptEnded))
    assert ended.trace == flagged(popped.trace) != popped.trace


def test_of_equal_failures_the_first_three_have_traces_then_the_fourth_the_eighth_the_sixteenth() -> None:
    stage = Stage()
    stage.add("a")
    ended = fail(stage, "OnNodes", times=17)
    kept = [one.number for one in ended if not one.thinned]
    assert kept == [1, 2, 3, 4, 8, 16]


def test_what_follows_links_to_the_last_that_has_a_trace_and_says_how_many_have_none() -> None:
    stage = Stage()
    stage.add("a")
    ended = fail(stage, "OnNodes", times=8)
    assert [one.unkept for one in ended] == [0, 0, 0, 0, 0, 1, 2, 3]
    assert {one.previous_trace for one in ended[4:]} == {ended[3].trace}


def test_another_failure_is_told_at_once_and_counted_anew() -> None:
    stage = Stage()
    stage.add("a")
    fail(stage, "OnNodes", times=6)
    others = fail(stage, "OnNodes", "OnPods", times=5)
    assert [one.thinned for one in others] == [False, False, False, False, True]


def test_the_scheduler_is_told_which_failure_has_no_trace() -> None:
    stage = Stage()
    stage.add("a")
    fail(stage, "OnNodes", times=4)
    assert stage.take().thinned == "unschedulable/OnNodes"


def test_refused_decisions_and_preemptions_are_like_no_other_failure() -> None:
    def result(**more: object) -> AttemptResult:
        known = {"namespace": "d", "name": "a", "uid": "u", "attempt": "1-1", "unschedulable_plugins": ("B", "A")}
        return AttemptResult(**{"outcome": "unschedulable", **known, **more})  # pyright: ignore[reportArgumentType]

    assert failure_of(result()) == "unschedulable/A/B"
    assert failure_of(result(pending_plugins=("C",))) == "unschedulable/A/B/C"
    assert failure_of(result(outcome="bindError")) == failure_of(result(nominated_node="n1")) == ""
