"""What the safety flush rescued is counted and told; what others brought out is not
(docs/rules.md, flush-is-the-safety-net).
"""

import json

import pytest

from podyard.cluster.changes import Change, Origin
from podyard.framework import events
from podyard.proto.placement import BoundPod
from podyard.queue.core.effects import AttemptEnded, Rescued
from podyard.queue.core.messages import Incoming
from podyard.queue.core.recent import Recent
from tests.unit.queue.test_changes import Play, view


def timeout(play: Play) -> None:
    """The flush, late enough for everything that is parked."""
    play.now += 301
    play.queue.flush_unschedulable(Incoming(event=events.UNSCHEDULABLE_TIMEOUT, id="timeout-1"), play.now)


def bind_fact(play: Play, name: str, attempt: str) -> None:
    """The binding shows in the view."""
    bound = BoundPod(namespace="default", name=name, uid=f"uid-{name}", node="n1", attempt=attempt)
    play.apply(view(name), view(name).with_placement(bound, None), bound=True)


def rescues(play: Play) -> list[Rescued]:
    """What is told of rescues, after an attempt that bound its pod."""
    effects = play.queue.take_effects()
    assert [one for one in effects if isinstance(one, AttemptEnded)][-1].outcome == "scheduled"
    return [one for one in effects if isinstance(one, Rescued)]


def bind(play: Play, name: str) -> list[Rescued]:
    """The pod is tried, and bound; returns what is told of rescues."""
    popped = play.take()
    assert popped.name == name
    play.done(popped, "scheduled", node="n1")
    bind_fact(play, name, popped.attempt)
    return rescues(play)


@pytest.fixture
def play() -> Play:
    return Play()


def test_a_pod_that_is_bound_right_after_the_flush_is_a_rescue(play: Play) -> None:
    play.park_view(view("a"), "OnNodes")
    timeout(play)
    assert bind(play, "a")


def test_a_pod_that_an_event_woke_is_none(play: Play) -> None:
    play.park_view(view("a"), "OnNodes")
    play.now += 301
    play.node("a")
    assert not bind(play, "a")


def test_a_pod_that_failed_once_more_and_was_then_woken_is_none(play: Play) -> None:
    play.park_view(view("a"), "OnNodes")
    timeout(play)
    play.done(play.take(), "unschedulable", unschedulable_plugins=("OnNodes",))
    play.now += 20
    play.node("a")
    assert not bind(play, "a")


def test_a_pod_whose_session_died_after_the_flush_is_none(play: Play) -> None:
    play.park_view(view("a"), "OnNodes")
    timeout(play)
    play.take()
    play.now += 30
    play.leader.tick(play.now)
    play.now += 30
    play.leader.tick(play.now)
    popped = play.take("another session")
    play.done(popped, "scheduled", "another session", node="n1")
    bind_fact(play, "a", popped.attempt)
    assert not rescues(play)


def test_a_gated_pod_that_the_flush_left_alone_is_none(play: Play) -> None:
    play.preemptions.start("uid-a", "s")
    play.apply(None, view("a"))
    assert play.queue.pods["uid-a"].pool == "gated"
    timeout(play)
    play.preemptions.end("uid-a")
    play.queue.activate("uid-a", play.now)
    assert play.queue.pods["uid-a"].was_flushed
    assert not bind(play, "a")


def test_the_story_has_what_reproduces_it(play: Play) -> None:
    play.node("long ago")
    play.now += 60
    play.park_view(view("a", labels=("app",)), "OnNodes", "Also")
    parked_at = play.now
    play.now += 5
    play.node("nothing for it")
    play.apply(view("other"), None)
    timeout(play)
    [rescued] = bind(play, "a")
    story = rescued.story
    assert story["pod"] == "default/a"
    assert story["object"]["metadata"]["labels"] == {"app": ""}
    assert (story["rejectors"], story["digest"]) == (["Also", "OnNodes"], "d1")
    assert (story["previous_attempt"], story["attempt"]) == ("7-1", "7-2")
    assert (story["parked_at"], story["node"]) == (parked_at, "n1")
    told = [(one["event"], one["object"], one["id"], one["position"]) for one in story["events"]]
    assert told[1:3] == [
        ("NodeAdd", "n", "103", 103),
        ("UnschedulablePodDelete", "default/other", "104", 104),
    ], "also an event that no plugin has registered"
    assert "101" not in [one[2] for one in told], "what came long before the attempt"
    assert story["all_events_known"]
    json.dumps(story)


def test_the_memory_is_bounded_and_says_so() -> None:
    recent = Recent(kept=3)
    for number in range(5):
        recent.note(Change("pods", "u", view("a"), None, Origin(number)), now=float(number))
    assert [one.id for one in recent.events(0.0)] == ["2", "3", "4"]
    assert not recent.reaches(1.0)
    assert recent.reaches(2.0)


def test_room_that_was_given_up_is_remembered_too(play: Play) -> None:
    play.park_view(view("a"), "OnPods")
    play.apply(None, view("b"))
    play.done(play.take(), "bindError", assumed="n1")
    [dropped] = [one for one in play.leader.recent.events(0.0) if one.event == events.ASSIGNED_POD_DELETE.label]
    assert (dropped.id, dropped.object) == ("dropped-7-2", "default/b")
