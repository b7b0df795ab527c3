"""A bound pod that asks for something else: taken up if it fits, told, or waiting for room."""

from typing import Any

import pytest

from podyard.node_agent.core import effects
from podyard.objects.pod import Pod
from podyard.proto.facts import Condition, PodStatusFact
from tests.unit.node_agent.make import Playing, agent, deleted, node, pod, view


@pytest.fixture
def playing() -> Playing:
    """One node of 4 CPUs."""
    found = agent()
    found.node_seen(node(), (), 0.0)
    return found


def asking(name: str, cpu: str, **more: Any) -> Pod:
    return pod(name, requests={"cpu": cpu}, limits={"cpu": "8"}, **more)


def run(playing: Playing, *pods: Pod) -> None:
    for one in pods:
        playing.pod_seen(view(one), 0.0, 0.0)
    playing.tick(1.0)


def facts(found: list[effects.Effect]) -> list[PodStatusFact]:
    return [one.fact for one in found if isinstance(one, effects.PutPodStatus)]


def told(found: list[effects.Effect]) -> list[tuple[str, bool]]:
    return [(one.reason, one.warning) for one in found if isinstance(one, effects.Announce)]


def has(fact: PodStatusFact) -> str:
    """The CPUs that its container has."""
    found = fact.containers[0].resources
    assert found is not None
    assert found.limits == {"cpu": "8"}
    return found.requests["cpu"]


def waits(fact: PodStatusFact) -> Condition | None:
    return next((one for one in fact.conditions if one.type == "PodResizePending"), None)


def test_a_resize_that_fits_is_taken_up_and_told(playing: Playing):
    run(playing, asking("web", "1"))
    found = playing.pod_seen(view(asking("web", "3", generation=2)), 0.0, 10.0)
    (fact,) = facts(found)
    assert (fact.phase, has(fact), waits(fact)) == ("Running", "3", None)
    assert told(found) == [("ResizeStarted", False), ("ResizeCompleted", False)]
    (started, _) = [one.message for one in found if isinstance(one, effects.Announce)]
    assert started == (
        'Pod resize started: {"containers":[{"name":"main","resources":{"limits":{"cpu":"8"},"requests":{"cpu":"3"}}}],'
        '"generation":2}'
    )
    assert facts(playing.pod_seen(view(asking("web", "3", generation=2)), 0.0, 11.0)) == [], "once"
    (late,) = facts(playing.pod_seen(view(asking("late", "2")), 0.0, 12.0))
    assert late.reason == "OutOfcpu"


def test_a_change_of_anything_else_is_no_resize(playing: Playing):
    run(playing, asking("web", "1"))
    assert playing.pod_seen(view(asking("web", "1", labels={"a": "b"})), 0.0, 10.0) == []


def test_a_resize_that_does_not_fit_waits_and_is_given_when_room_comes_free(playing: Playing):
    other = asking("other", "2")
    run(playing, asking("web", "1"), other)
    found = playing.pod_seen(view(asking("web", "3")), 0.0, 10.0)
    (fact,) = facts(found)
    pending = waits(fact)
    assert has(fact) == "1"
    assert pending is not None
    assert (pending.status, pending.reason, pending.message, pending.last_transition_time) == (
        "True", "Deferred",
        "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
        "1970-01-01T00:00:10Z",
    )  # fmt: skip
    assert told(found) == [("ResizeDeferred", True)]
    assert playing.pod_seen(view(asking("web", "3")), 0.0, 11.0) == [], "nothing new, nothing said"
    playing.pod_seen(view(deleted(other, "1970-01-01T00:00:50Z", 30)), 0.0, 20.0)
    given = facts(playing.tick(22.0))[-1]
    assert (given.name, has(given), waits(given)) == ("web", "3", None)


@pytest.mark.parametrize("how", ["gone", "shrinks", "node grows"])
def test_room_comes_free_in_several_ways(playing: Playing, how: str):
    run(playing, asking("web", "1"), asking("other", "2"))
    playing.pod_seen(view(asking("web", "3")), 0.0, 10.0)
    match how:
        case "gone":
            found = playing.pod_gone("uid-other", 20.0)
        case "shrinks":
            found = playing.pod_seen(view(asking("other", "1")), 0.0, 20.0)
        case _:
            found = playing.node_seen(node(amounts={"cpu": "8"}), (), 20.0)
    assert ("web", "3") in [(fact.name, has(fact)) for fact in facts(found)]


def test_others_are_judged_beside_what_a_pod_has_not_what_it_asks_for(playing: Playing):
    run(playing, asking("web", "1"))
    playing.pod_seen(view(asking("web", "5")), 0.0, 10.0)
    assert facts(playing.pod_seen(view(asking("late", "3")), 0.0, 11.0)) == []


def test_a_resize_that_is_taken_back_waits_no_more(playing: Playing):
    run(playing, asking("web", "1"))
    playing.pod_seen(view(asking("web", "5")), 0.0, 10.0)
    (fact,) = facts(playing.pod_seen(view(asking("web", "1")), 0.0, 11.0))
    assert (has(fact), waits(fact)) == ("1", None)
    assert facts(playing.node_seen(node(amounts={"cpu": "8"}), (), 20.0)) == []


def test_the_most_important_resize_is_tried_first(playing: Playing):
    other = asking("other", "2")
    run(playing, asking("low", "1"), asking("high", "1", priority=10), other)
    for name, priority in (("low", 0), ("high", 10)):
        playing.pod_seen(view(asking(name, "2", priority=priority)), 0.0, 10.0)
    found = facts(playing.pod_gone("uid-other", 20.0))
    assert [(fact.name, has(fact)) for fact in found] == [("high", "2"), ("low", "2")]


def test_a_pod_that_is_being_deleted_is_not_resized(playing: Playing):
    stored = asking("web", "1", annotations={"podyard.io/stop-delay": "20s"})
    run(playing, stored)
    bigger = asking("web", "3", annotations={"podyard.io/stop-delay": "20s"})
    assert facts(playing.pod_seen(view(deleted(bigger, "1970-01-01T00:00:50Z", 30)), 0.0, 10.0)) == []


@pytest.mark.parametrize(("cpus", "has_then"), [("4", "1"), ("8", "5")])
def test_after_a_restart_of_the_agent_a_pod_has_what_it_had(cpus: str, has_then: str):
    before = agent()
    before.node_seen(node(), (), 0.0)
    run(before, asking("web", "1"))
    (said,) = facts(before.pod_seen(view(asking("web", "5")), 0.0, 10.0))
    after = agent()
    found = after.node_seen(node(amounts={"cpu": cpus}), [view(asking("web", "5"), status=said)], 20.0)
    if has_then == "1":
        assert facts(found) == [], "said already"
        assert facts(after.pod_seen(view(asking("late", "3")), 0.0, 21.0)) == []
    else:
        assert [has(fact) for fact in facts(found)] == ["5"]


@pytest.mark.parametrize(
    ("before_it", "told_then"), [("3", []), ("2", [("2", True)])], ids=["waits", "asked meanwhile"]
)
def test_after_a_restart_of_the_agent_a_resize_is_judged_beside_all_pods(
    before_it: str, told_then: list[tuple[str, bool]]
):
    """The pod that asks is taken over before the one that takes the room."""
    before = agent()
    before.node_seen(node(), (), 0.0)
    for name, cpu in (("web", "1"), ("other", "2")):
        before.pod_seen(view(asking(name, cpu)), 0.0, 0.0)
    (_, other) = facts(before.tick(1.0))
    (web,) = facts(before.pod_seen(view(asking("web", before_it)), 0.0, 10.0))
    after = agent()
    bound = [view(asking("web", "3"), status=web), view(asking("other", "2"), status=other)]
    found = facts(after.node_seen(node(), bound, 20.0))
    assert [(has(fact), waits(fact) is not None) for fact in found] == told_then
    given = facts(after.pod_gone("uid-other", 30.0))
    assert [(fact.name, has(fact), waits(fact)) for fact in given] == [("web", "3", None)]
