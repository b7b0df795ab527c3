"""A position that the view does not reach, as after a loss of the stream: the pods go back, nothing is
decided by an older view."""

from podyard.proto.binder_api import POSITION_WAIT_S
from tests.unit.framework.builders import make_node, make_pod
from tests.unit.scheduler.play import Play

NODE = make_node("a", cpu="1")


def test_pods_whose_position_the_view_does_not_reach_go_back() -> None:
    play, pod = Play(NODE), make_pod("p", cpu="1")
    play.add(pod)
    play.pop(pod, ahead=10)
    assert play.core.wake_at == play.now + POSITION_WAIT_S
    play.now += POSITION_WAIT_S
    assert play.work() == []
    (result,) = play.results("p")
    assert (result.outcome, result.node, result.unschedulable_plugins) == ("error", "", ())
    assert (play.core.backlog, play.core.open_attempts(), play.core.wake_at) == (0, (), None)


def test_a_conflict_whose_position_the_view_does_not_reach_is_given_up() -> None:
    play, pod = Play(NODE), make_pod("p", cpu="1")
    play.add(pod)
    (decision,) = play.schedule(pod)
    play.answer(decision, "conflict", cause="NodePorts", reasons=("taken",), ahead=10)
    play.now += POSITION_WAIT_S
    assert play.work() == []
    assert play.results("p")[-1].outcome == "bindError"
    assert play.core.wake_at is None


def test_a_view_that_comes_in_time_is_decided_by() -> None:
    play, pod = Play(NODE), make_pod("p", cpu="1")
    play.add(pod)
    play.pop(pod, ahead=1)
    play.set_node(make_node("b", cpu="64"))
    play.now += POSITION_WAIT_S
    assert [decision.node for decision in play.work()] == ["b"]
