"""What is decided counts at once, and once; pods that ask for nothing spread all the same."""

from collections import Counter

from tests.unit.framework.builders import make_node, make_pod
from tests.unit.scheduler.play import Play


def test_pods_that_request_nothing_do_not_pile_up_on_one_node() -> None:
    play = Play(*(make_node(f"n{number}") for number in range(4)))
    pods = [make_pod(f"p{number}") for number in range(40)]
    play.add(*pods)
    assert Counter(decision.node for decision in play.schedule(*pods)) == {f"n{number}": 10 for number in range(4)}


def test_a_decision_is_counted_before_anybody_has_seen_it_and_once() -> None:
    """Assumed, answered, seen as a binding, in either order: four pods of a quarter of the node fit, not
    three, not five."""
    play = Play(make_node("a", cpu="4"))
    pods = [make_pod(f"p{number}", cpu="1") for number in range(5)]
    play.add(*pods)
    first, second = play.schedule(*pods[:2])
    play.bind(first)
    play.answer(first, "bound")
    play.answer(second, "bound")
    play.bind(second)
    assert [decision.name for decision in play.schedule(*pods[2:])] == ["p2", "p3"]
    assert [one.outcome for one in play.results("p4")] == ["unschedulable"]


def test_a_decision_without_an_answer_is_settled_before_its_pod_is_tried_again() -> None:
    """The bind took effect and nobody said so: the pod is popped again, and is neither decided nor counted
    twice."""
    play = Play(make_node("a", cpu="2"))
    pod, other = make_pod("p", cpu="1"), make_pod("q", cpu="1")
    play.add(pod, other)
    (decision,) = play.schedule(pod)
    (again,) = play.pop(pod)
    assert play.work() == []
    play.bind(decision)
    play.answer(decision, "bound")
    last = play.results("p")[-1]
    assert (last.attempt, last.outcome, last.node) == (again, "scheduled", "a")
    assert [one.name for one in play.schedule(other)] == ["q"]


def test_a_pod_that_is_told_to_go_holds_its_room_until_it_is_released() -> None:
    play = Play(make_node("a", cpu="1"))
    leaving, waiting = make_pod("leaving", cpu="1"), make_pod("waiting", cpu="1")
    play.add(leaving, waiting)
    (decision,) = play.schedule(leaving)
    play.bind(decision)
    play.answer(decision, "bound")
    play.delete(play.view.pods[leaving.key])
    assert play.schedule(waiting) == []
    assert play.results("waiting")[-1].outcome == "unschedulable"


def test_a_bound_pod_that_is_resized_makes_room_or_takes_it() -> None:
    """What it requests now counts, whatever its binding says; before the binding is seen, too."""
    play = Play(make_node("a", cpu="2"))
    resized, waiting, late = make_pod("resized", cpu="1500m"), make_pod("waiting", cpu="1"), make_pod("late", cpu="1")
    play.add(resized, waiting, late)
    (decision,) = play.schedule(resized)
    assert play.schedule(waiting) == []
    play.bind(decision)
    play.answer(decision, "bound")
    play.resize(resized, "500m")
    assert [one.name for one in play.schedule(waiting)] == ["waiting"]
    play.resize(resized, "3")
    assert play.schedule(late) == []


def test_after_a_conflict_the_next_try_waits_for_what_the_binder_had_seen() -> None:
    """On the same stale view it would choose the same node, and lose again."""
    play = Play(make_node("a", cpu="4"), make_node("b", cpu="2"))
    pod = make_pod("p", cpu="1")
    play.add(pod)
    (decision,) = play.schedule(pod)
    assert decision.node == "a"
    play.answer(decision, "conflict", cause="fit", reasons=("Insufficient cpu",), ahead=1)
    assert play.work() == []
    play.set_node(make_node("a", cpu="500m"))
    assert [again.node for again in play.work()] == ["b"]
