"""Where a pod would go: the core answers, and is afterwards as it was before."""

from typing import Any

import msgspec
import pytest

from podyard.cluster.pods import PodView
from podyard.framework.extenders import Extender, FilterAnswer
from podyard.proto import codec
from podyard.proto.decisions import NodeScore
from podyard.proto.scheduler_api import WouldGoReply
from podyard.scheduler.core import rehearsals
from podyard.scheduler.core.effects import AskExtenders, Bind, Declined, Preempt, Reply
from podyard.scheduler.core.messages import ExtendersAnswered, SessionStarted, Would
from tests.unit.framework.builders import make_node, make_pod, on
from tests.unit.scheduler.play import Play

FILTERS = Extender(name="http://x", filters=True)


def would(play: Play, pod: tuple[str, str] | PodView, limit: int = 0) -> WouldGoReply:
    [effect] = play.tell(Would(1, pod, limit))
    assert isinstance(effect, Reply)
    return effect.reply


def declined(play: Play, pod: tuple[str, str] | PodView) -> str:
    [effect] = play.tell(Would(1, pod, 0))
    assert isinstance(effect, Declined)
    return effect.reason


def state(play: Play) -> tuple[Any, ...]:
    """What people and other parts see of a core."""
    core = play.core
    return (
        core.held_pods(100),
        core.held_nodes(100, 100),
        core.cache_sizes(),
        core.open_attempts(),
        core.measured,
        core.ready,
        core.wake_at,
        core.backlog,
        core.unanswered,
        core.nodes.version,
    )


def test_a_waiting_pod_is_told_where_the_next_attempt_puts_it_and_nothing_is_changed() -> None:
    play = Play(make_node("a", cpu="2"), make_node("b", cpu="8"), make_node("c", cpu="1"))
    pod = make_pod("p", cpu="2")
    play.add(pod)
    play.core.take_measured()
    before = state(play)
    reply = would(play, pod.key)
    assert state(play) == before
    assert (reply.node, reply.nodes_total, reply.nodes_feasible, reply.equals) == ("b", 3, 2, 1)
    assert [score.node for score in reply.scores] == ["b", "a"]
    assert [(one.nodes, one.names, one.verdicts[0].plugin) for one in reply.verdicts] == [(1, (), "NodeResourcesFit")]
    assert (reply.scheduler, reply.position, reply.profile) == ("s1", play.view.position, "default-scheduler")
    [decision] = play.schedule(pod)
    assert decision.node == reply.node
    assert decision.record is not None
    assert decision.record.scores == reply.scores


def test_a_pod_that_is_not_stored_is_judged_among_those_that_are_assumed() -> None:
    play = Play(make_node("a", cpu="2"))
    first = make_pod("first", cpu="2")
    assert would(play, make_pod("new", cpu="2")).node == "a"
    play.add(first)
    play.schedule(first)
    reply = would(play, make_pod("new", cpu="2"))
    assert reply.node == ""
    assert reply.rejections[0].reason == "Insufficient cpu"
    assert reply.rejections[0].detail == "wants 2 cpu, free 0 of 2"
    assert reply.nearest == "a"


def test_victims_are_named_and_nobody_is_preempted_or_nominated() -> None:
    play = Play(make_node("a", cpu="2"))
    play.add(on(make_pod("small", cpu="2"), "a"))
    important = make_pod("important", cpu="2", priority=10)
    play.add(important)
    before = state(play)
    reply = would(play, important.key)
    assert (reply.node, reply.nominated_node) == ("", "a")
    assert [victim.name for victim in reply.victims] == ["small"]
    assert state(play) == before
    assert would(play, make_pod("other", cpu="1")).rejections[0].reason == "Insufficient cpu"
    play.schedule(important)
    [preempt] = play.of(Preempt)
    assert (preempt.node, preempt.victims) == ("a", reply.victims)


def test_of_a_pod_that_has_a_node_it_is_told_where_one_more_like_it_would_go() -> None:
    play = Play(make_node("a", cpu="4"), make_node("b", cpu="1"))
    bound = on(make_pod("p", cpu="1500m"), "a")
    play.add(bound)
    reply = would(play, bound.key)
    assert (reply.placed_on, reply.node) == ("a", "a")
    full = on(make_pod("q", cpu="2"), "a")
    play.add(full)
    reply = would(play, bound.key)
    assert (reply.placed_on, reply.node, reply.nodes_feasible) == ("a", "", 0)
    assumed = make_pod("r", cpu="500m")
    play.add(assumed)
    [decision] = play.schedule(assumed)
    assert would(play, assumed.key).placed_on == decision.node


def test_a_pod_that_names_its_node_is_told_so_and_judged_as_if_it_did_not() -> None:
    play = Play(make_node("a"), make_node("b"))
    reply = would(play, make_pod("p", spec={"nodeName": "elsewhere"}))
    assert reply.placed_on == "elsewhere"
    assert reply.nodes_feasible == 2


def test_a_gate_is_told_and_where_the_pod_would_go_without_it() -> None:
    play = Play(make_node("a"))
    gated = make_pod("p", spec={"schedulingGates": [{"name": "example.com/licence"}]})
    reply = would(play, gated)
    [gate] = reply.gates
    assert gate.plugin == "SchedulingGates"
    assert "example.com/licence" in gate.reasons[0]
    assert reply.node == "a"


def test_who_is_not_there_or_for_nobody_is_declined_with_what_there_is() -> None:
    play = Play(make_node("a"))
    assert declined(play, ("default", "nobody")) == (
        'no pod "nobody" in namespace "default": this scheduler has read up to position 1'
    )
    stranger = make_pod("p", spec={"schedulerName": "other"})
    assert declined(play, stranger) == (
        'the pod is for a scheduler called "other", and there is no profile of that name: there are default-scheduler'
    )


def test_nodes_are_told_by_name_up_to_the_limit() -> None:
    play = Play(*(make_node(f"n{at}", cpu="1" if at < 5 else "4") for at in range(10)))
    pod = make_pod("p", cpu="2")
    few = would(play, pod, limit=4)
    assert [one.names for one in few.verdicts] == [("n0", "n1", "n2", "n3")]
    assert (len(few.scores), few.left_out) == (4, 2)
    every = would(play, pod, limit=10)
    assert [one.names for one in every.verdicts] == [("n0", "n1", "n2", "n3", "n4")]
    assert (len(every.scores), every.left_out) == (5, 0)


def test_an_answer_is_no_larger_than_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(*(make_node(f"n{at}", cpu="1" if at < 30 else "4") for at in range(60)))
    pod = make_pod("p", cpu="2")
    full = would(play, pod, limit=100)
    assert full.left_out == 0
    size = len(codec.encode(full))
    monkeypatch.setattr(rehearsals, "LARGEST_BYTES", size // 2)
    less = would(play, pod, limit=100)
    assert len(codec.encode(less)) <= size // 2
    names = len(less.scores) + sum(len(one.names) for one in less.verdicts)
    assert less.left_out == 60 - names > 0
    monkeypatch.setattr(rehearsals, "LARGEST_BYTES", 10)
    none = would(play, pod, limit=100)
    assert (none.verdicts, len(none.scores), none.left_out) == ((), 3, 30)


def extended(*nodes: str) -> Play:
    return Play(*map(make_node, nodes), extenders=(FILTERS,))


def asked(play: Play) -> list[AskExtenders]:
    return play.of(AskExtenders)


def test_extenders_are_asked_and_nothing_changes_until_they_answer() -> None:
    play = extended("a", "b")
    waiting = make_pod("w")
    play.add(waiting)
    assert [type(effect) for effect in play.tell(Would(7, make_pod("p"), 0))] == [AskExtenders]
    play.pop(waiting)
    assert not play.core.ready
    assert play.core.wake_at is None
    assert play.core.books() is None
    assert not play.work()
    play.set_node(make_node("c"))
    assert "c" not in play.core.nodes.row_of
    [effect] = play.tell(ExtendersAnswered(asked(play)[-1].ticket, (FilterAnswer(nodes=("b",)),)))
    assert isinstance(effect, Reply)
    assert (effect.ticket, effect.reply.node) == (7, "b")
    assert "c" in play.core.nodes.row_of
    assert play.core.ready


def test_a_question_waits_for_the_attempt_that_asks_extenders() -> None:
    play = extended("a", "b")
    pod = make_pod("w")
    play.add(pod)
    play.schedule(pod)
    assert play.tell(Would(7, make_pod("p"), 0)) == []
    effects = play.tell(ExtendersAnswered(asked(play)[-1].ticket, (FilterAnswer(nodes=("a",)),)))
    assert [type(effect) for effect in effects if not isinstance(effect, Bind)][-1] is AskExtenders
    assert play.of(Bind)
    [effect] = play.tell(ExtendersAnswered(asked(play)[-1].ticket, (FilterAnswer(nodes=("b",)),)))
    assert isinstance(effect, Reply)


def test_answers_to_others_questions_are_ignored() -> None:
    play = extended("a", "b")
    play.tell(Would(7, make_pod("p"), 0))
    ticket = asked(play)[-1].ticket
    for other in (1, ticket - 1, -ticket):
        assert play.tell(ExtendersAnswered(other, (FilterAnswer(nodes=("a",)),))) == []
    [effect] = play.tell(ExtendersAnswered(ticket, (FilterAnswer(nodes=("a",)),)))
    assert isinstance(effect, Reply)
    assert play.tell(ExtendersAnswered(ticket, (FilterAnswer(nodes=("a",)),))) == []


def test_a_new_session_gives_the_question_up_before_anything_changes() -> None:
    play = extended("a", "b")
    play.tell(Would(7, make_pod("p"), 0))
    play.set_node(make_node("c"))
    effects = play.tell(SessionStarted("s2"))
    assert Declined(7, rehearsals.NEW_SESSION) in effects
    assert "c" in play.core.nodes.row_of
    assert play.tell(ExtendersAnswered(asked(play)[-1].ticket, (FilterAnswer(nodes=("a",)),))) == []


def test_nobody_is_answered_after_the_end_of_the_term() -> None:
    play = extended("a", "b")
    play.tell(Would(7, make_pod("p"), 0))
    play.core.close()
    assert play.tell(ExtendersAnswered(asked(play)[-1].ticket, (FilterAnswer(nodes=("a",)),))) == []


def test_the_nominated_pod_is_told_its_node() -> None:
    play = Play(make_node("a", cpu="2"))
    victim = on(make_pod("small", cpu="2"), "a")
    play.add(victim)
    important = make_pod("important", cpu="2", priority=10)
    play.add(important)
    play.schedule(important)
    reply = would(play, important.key)
    assert (reply.node, reply.nominated_node) == ("", "a")
    play.release(victim)
    reply = would(play, important.key)
    assert (reply.node, reply.nominated_node) == ("a", "a")


def test_scores_are_those_of_a_record() -> None:
    play = Play(make_node("a"), make_node("b"))
    reply = would(play, make_pod("p"))
    best = reply.scores[0]
    assert isinstance(best, NodeScore)
    assert best.total == sum(best.plugins.values()) > 0
    assert msgspec.json.decode(codec.encode(reply))["node"] == reply.node
