"""The core of the descheduler: when a cycle begins, what it asks, and how it ends."""

from typing import Any

import pytest

from podyard.descheduler.core import cycle, loading, state
from podyard.descheduler.core.descheduler import RETRY_S
from podyard.descheduler.core.effects import CycleEnded, CycleFailed, Effect, Evict, Finished, List, Query
from podyard.descheduler.core.evictions import EvictionDone, EvictionFailed
from podyard.descheduler.core.framework import Answer
from podyard.descheduler.core.messages import EvictionAnswered, NotListed, Queried
from tests.unit.descheduler.make import NOW, known, policy, querying
from tests.unit.descheduler.stage import INTERVAL_S, Stage
from tests.unit.descheduler.test_plugins_that_fail import Sweep


@pytest.fixture
def stage() -> Stage:
    return Stage(policy(Sweep), Sweep)


def ended(effects: list[Effect]) -> CycleEnded:
    (end,) = effects
    assert isinstance(end, CycleEnded)
    return end


def failed(effects: list[Effect]) -> CycleFailed:
    (end,) = effects
    assert isinstance(end, CycleFailed)
    return end


def test_a_term_begins_with_a_cycle_and_a_cycle_with_a_listing(stage: Stage):
    assert stage.core.wake_at is not None
    assert stage.core.wake_at <= NOW
    stage.tick()
    assert isinstance(stage.asked, List)
    assert stage.core.wake_at is None, "it goes on with the answer"


def test_cycles_follow_each_other_from_start_to_start(stage: Stage):
    stage.tick()
    stage.now += 7.0
    assert ended(stage.listed()).began == NOW
    assert stage.core.wake_at == NOW + INTERVAL_S
    assert stage.tick(INTERVAL_S - 7.1) == []
    assert isinstance(stage.tick(0.2)[0], List)


def test_a_cycle_that_took_longer_than_the_interval_is_followed_at_once(stage: Stage):
    stage.tick()
    stage.now += INTERVAL_S + 1.0
    stage.listed()
    assert isinstance(stage.tick()[0], List)


def test_a_cluster_that_cannot_be_listed_is_listed_again_soon(stage: Stage):
    stage.tick()
    stage.now += 2.0
    assert failed(stage.not_listed("NATS is away")).reason == "the cluster cannot be listed: NATS is away"
    assert stage.core.wake_at == NOW + RETRY_S
    assert ended(stage.cycle(RETRY_S - 2.0)).began == NOW + RETRY_S


def test_evictions_are_asked_one_after_the_other(stage: Stage):
    stage.pods("a", "b")
    stage.tick()
    stage.listed()
    assert stage.evicting == "a"
    assert stage.core.wake_at is None
    stage.answer(EvictionFailed("its budget"))
    assert stage.evicting == "b"
    (step,) = ended(stage.answer()).record.steps
    assert [(one.name, one.answer, one.problem) for one in step.attempts] == [
        ("a", Answer.FAILED, "its budget"), ("b", Answer.EVICTED, "")
    ]  # fmt: skip


def test_nothing_is_kept_from_one_cycle_to_the_next(stage: Stage):
    stage.pods("a")
    assert ended(stage.cycle()).record.evicted == 1
    stage.tick(INTERVAL_S)
    stage.listed()
    assert stage.evicting == "a", "the listing has it still"


def test_what_it_does_not_await_changes_nothing(stage: Stage):
    stage.pods("a", "b")
    stage.tick()
    listing = stage.asked.ticket
    stage.listed()
    first = stage.asked.ticket
    assert stage.core.step(NotListed(listing, "late"), stage.now) == []
    assert stage.core.step(EvictionAnswered(first + 1, EvictionDone()), stage.now) == []
    stage.answer()
    assert stage.core.step(EvictionAnswered(first, EvictionDone()), stage.now) == []
    assert stage.evicting == "b"


def test_once_is_one_cycle():
    stage = Stage(policy(Sweep), Sweep, once=True)
    stage.pods("a")
    end, finished = stage.cycle()
    assert isinstance(end, CycleEnded)
    assert finished == Finished()
    assert stage.core.wake_at is None
    assert stage.tick(INTERVAL_S) == []


def test_once_counts_a_cycle_that_could_list_the_cluster():
    stage = Stage(policy(Sweep), Sweep, once=True)
    stage.tick()
    assert isinstance(failed(stage.not_listed()), CycleFailed)
    assert stage.cycle(RETRY_S)[-1] == Finished()


@pytest.mark.parametrize("once", [False, True])
def test_a_policy_that_the_cluster_does_not_bear_fails_the_cycle(once: bool):
    text = """
apiVersion: descheduler/v1alpha2
profiles:
- {name: p, pluginConfig: [{name: DefaultEvictor, args: {priorityThreshold: {name: nope}}}]}
"""
    stage = Stage(loading.decode(text, known()).policy, once=once)
    failure, *finished = stage.cycle()
    assert isinstance(failure, CycleFailed)
    assert 'priorityclasses.scheduling.k8s.io "nope" not found' in failure.reason
    assert failure.error is None
    assert finished == ([Finished()] if once else [])
    assert stage.core.wake_at == (None if once else NOW + INTERVAL_S)


def test_a_cycle_that_breaks_off_ends_alone_and_the_next_one_waits_for_its_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    """It has its limits anew: begun at once, it would evict more than the policy allows."""
    fault = RecursionError("nested too deep")

    def broken(*_: Any) -> None:
        raise fault

    stage.pods("a", "b")
    stage.tick()
    stage.listed()
    with monkeypatch.context() as patch:
        patch.setattr(cycle.Limits, "count", broken)
        failure = failed(stage.answer())
    assert failure == CycleFailed("it broke off: RecursionError: nested too deep", fault, began=NOW)
    assert stage.core.wake_at == NOW + INTERVAL_S
    assert ended(stage.cycle(INTERVAL_S)).record.evicted == 2


def test_a_listing_that_no_cycle_can_be_made_of_fails_the_cycle(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(state, "state_of", lambda _: {}["nothing"])
        assert failed(stage.cycle()).reason == "it broke off: KeyError: 'nothing'"
    assert ended(stage.cycle(INTERVAL_S)).record.nodes == 2


def test_the_end_of_the_term_ends_the_plugin_that_is_running():
    closed = False

    class Held(Sweep):
        NAME = "Held"

        def deschedule(self, nodes: Any) -> Any:
            nonlocal closed
            try:
                yield from super().deschedule(nodes)
            finally:
                closed = True

    stage = Stage(policy(Held), Held)
    stage.core.close()
    stage.pods("a", "b")
    stage.tick()
    stage.listed()
    assert isinstance(stage.asked, Evict)
    assert not closed
    stage.core.close()
    assert closed


MISSING = "error getting node usage: unable to find metric entry for n1"


def test_prometheus_is_asked_once_for_each_query_before_the_cycle_goes_on() -> None:
    stage = Stage(querying("cpu", "memory", "cpu", eviction_limit=1))
    stage.pods("a", "b", "c")
    stage.tick()
    stage.listed()
    assert isinstance(stage.asked, Query)
    assert stage.asked.queries == ("cpu", "memory")
    ticket = stage.asked.ticket
    assert stage.tell(Queried(ticket - 1, {})) == []
    stage.tell(Queried(ticket, {"cpu": (), "memory": ()}))
    (ended,) = stage.wanted
    assert isinstance(ended, CycleEnded)
    assert [step.error for step in ended.record.steps] == [MISSING] * 3


def test_pods_leave_the_node_that_a_query_tells_to_be_used_too_much() -> None:
    stage = Stage(querying("cpu", eviction_limit=1))
    stage.pods("a", "b")
    stage.tick()
    stage.listed()
    stage.queried(n1=0.9, n2=0.1)
    assert stage.evicting == "a"


@pytest.mark.parametrize("made", [{"enabled": False}, {"provided": False}])
def test_nobody_is_asked_if_no_plugin_wants_it_or_nobody_is_named(made: dict[str, bool]) -> None:
    stage = Stage(querying("cpu", **made))
    stage.tick()
    (ended,) = stage.listed()
    assert isinstance(ended, CycleEnded)
    initializing = "error initializing usage client: prometheus client not initialized"
    assert [step.error for step in ended.record.steps] == ([initializing] if made.get("enabled", True) else [])
