"""Room that several decide about, and attempts that are asked twice."""

from collections import Counter

import pytest

from podyard.binder.core import effects
from tests.support import objects, stored
from tests.unit.binder.stage import Stage, Term

SOON = 0.012


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node("n1", cpu="2")
    for name in "abcd":
        stage.pod(name)
    return stage


def test_an_attempt_whose_answer_was_lost_is_bound_once_and_answered_bound(stage: Stage) -> None:
    """Per pod uid and attempt: the scheduler asks again, and is told what took effect."""
    binder = stage.serving()
    binder.faults.append("lost ack")
    decision = stage.decide("a")
    first = binder.ask(decision)
    stage.pass_time(1.0)
    second = binder.ask(decision)
    assert [(one.result, one.node) for one in binder.answers(first)] == [("bound", "n1")]
    assert binder.answers(first) == binder.answers(second)
    assert [pod.uid for record in stage.stream.commits for pod in record.bindings] == ["uid-a"]


def test_another_attempt_of_a_bound_pod_is_told_where_it_is_and_moves_nothing(stage: Stage) -> None:
    stage.node("n2")
    binder = stage.serving()
    binder.bind(stage.decide("a", attempt="1-1"))
    (answer,) = binder.answers(binder.ask(stage.decide("a", node="n2", attempt="1-2")))
    assert (answer.result, answer.node) == ("alreadyBound", "n1")
    assert stage.stream.live() == {"a": "n1"}


def test_a_pod_that_terminates_holds_its_room_until_it_has_ended(stage: Stage) -> None:
    binder = full(stage)
    stage.pod("a", deleting=True)
    stage.pass_time(SOON)
    assert binder.bind(stage.decide("c", attempt="1-1")) == ["conflict"]
    stage.status("a", phase="Failed")
    stage.pass_time(SOON)
    assert binder.bind(stage.decide("c", attempt="1-2")) == ["bound"]


def test_a_pod_that_its_node_refused_gives_its_room_back(stage: Stage) -> None:
    """Its object stays, Failed; it must not count as long as that is there."""
    binder = full(stage)
    stage.status("a", phase="Failed")
    stage.pass_time(SOON)
    assert stage.stream.live() == {"b": "n1"}
    assert binder.bind(stage.decide("c")) == ["bound"]
    assert binder.bind(stage.decide("d")) == ["conflict"], "and gives it back once"


def test_of_two_schedulers_that_took_the_same_room_one_is_told_where_to_look_again(stage: Stage) -> None:
    binder = stage.serving()
    before = stage.stream.last
    first = [stage.decide(name, position=before) for name in "ab"]
    second = [stage.decide(name, position=before) for name in "cd"]
    tickets = [binder.ask(*first, session="s1", wait=False), binder.ask(*second, session="s2", wait=False)]
    stage.pass_time(SOON)
    stage.pass_time(0.003)
    replies = [binder.replies[ticket] for ticket in tickets]
    answers = [answer for reply in replies for answer in reply.answers]
    assert Counter(answer.result for answer in answers) == {"bound": 2, "conflict": 2}
    assert {answer.cause for answer in answers if answer.result == "conflict"} == {"fit"}
    assert replies[1].position >= before, "the loser decides again on a view that has reached this"
    assert len(stage.stream.live()) == 2


def test_what_is_under_way_counts_before_it_is_durable(stage: Stage) -> None:
    """A batch hangs on its way to the stream; what it takes is not given away a second time, applied or
    not."""
    binder = stage.serving()
    binder.faults.append("hold")
    binder.ask(stage.decide("a"), stage.decide("b"))
    later = binder.ask(stage.decide("c"))
    assert later not in binder.replies
    (applied,) = binder.release_held()
    binder.step(applied)
    stage.pass_time(SOON)
    stage.pass_time(SOON)
    assert [answer.result for answer in binder.answers(later)] == ["conflict"]
    assert stage.stream.live() == {"a": "n1", "b": "n1"}


def test_room_that_a_deletion_is_to_free_is_given_away_only_when_it_is_free(stage: Stage) -> None:
    """As after a preemption: that the victim is told to go admits nobody."""
    binder = full(stage)
    stage.pod("b", deleting=True)
    stage.remove("pods", "a")
    stage.pass_time(SOON)
    stage.pass_time(SOON)
    assert stage.stream.live() == {"b": "n1"}
    assert binder.bind(stage.decide("c"), stage.decide("d")) == ["bound", "conflict"]


def test_a_pod_that_takes_more_than_64_bits_can_add_up_makes_no_room(stage: Stage) -> None:
    """Bound by force, it leaves no room for anybody, and nothing drifts; when it has gone, all is as
    before."""
    stage.pod("huge", node="n1", cpu="", requests={"memory": str(2**63 - 1), "example.com/a": str(2**63 - 1)})
    for name in ("e", "f"):
        stage.pod(name, cpu="", memory="1Gi", requests={"example.com/a": "1"})
    binder = stage.serving()
    stage.pass_time(SOON)
    assert stage.stream.live() == {"huge": "n1"}
    binder.ask(stage.decide("e"), stage.decide("f"))
    for _ in range(31):
        stage.pass_time(1.0)
    assert stage.stream.live() == {"huge": "n1"}
    assert not binder.of(effects.UsageDrift)
    assert not binder.of(effects.Relist)
    stage.status("huge", phase="Failed")
    stage.pass_time(SOON)
    assert binder.core.world.table.room.taken(binder.core.world.table.row_of["n1"]).requests == {}


def test_a_bound_pod_that_grew_takes_what_it_requests_now(stage: Stage) -> None:
    binder = stage.serving()
    assert binder.bind(stage.decide("a")) == ["bound"]
    stage.pod("a", cpu="1500m")
    assert binder.bind(stage.decide("b")) == ["conflict"]
    for _ in range(31):
        stage.pass_time(1.0)
    assert not binder.of(effects.UsageDrift)


def test_a_bound_pod_that_shrank_gives_back_what_it_requests_no_more(stage: Stage) -> None:
    binder = full(stage)
    stage.pod("a", cpu="100m")
    stage.pod("c", cpu="900m")
    assert binder.bind(stage.decide("c")) == ["bound"]


def test_a_pod_that_grew_while_its_binding_is_under_way_counts_as_it_is_now(stage: Stage) -> None:
    """The binding is not in the view yet, and says less than the object by now."""
    binder = stage.serving()
    honest, binder.pump = binder.pump, lambda: None
    binder.ask(stage.decide("a"))
    resized = stage.stream.put(stored.version("pods", objects.pod("a", cpu="2")))
    del resized
    for delivery in stage.stream.after(binder.position):
        if delivery.subject.startswith("cluster."):
            binder.follow(delivery)
    table = binder.core.world.table
    assert binder.core.world.unseen.keys() == {"uid-a"}
    assert table.room.taken(table.row_of["n1"]).requests == {"cpu": 2000}
    binder.pump = honest


def test_a_resized_pod_takes_the_same_whoever_lists(stage: Stage) -> None:
    binder = stage.serving()
    assert binder.bind(stage.decide("a")) == ["bound"]
    stage.pod("a", cpu="1500m")
    successor = stage.term("binder-b").elect(9)
    assert successor.bind(stage.decide("b")) == ["conflict"]


def full(stage: Stage) -> Term:
    """A binder that has filled n1 with a and b."""
    binder = stage.serving()
    assert binder.bind(stage.decide("a"), stage.decide("b")) == ["bound", "bound"]
    return binder
