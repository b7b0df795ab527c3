"""Decisions that wait in the binder: asked about again until they are answered, in nobody's way, withdrawn
when preempted."""

from podyard.binder.core.claims import claims_of
from podyard.cluster.pods import PodView
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest, Decision
from podyard.scheduler.core.asking_again import PAUSE_S
from podyard.scheduler.core.effects import Bind, Preempt
from podyard.scheduler.core.messages import BindAnswered, Work
from tests.unit.framework.builders import make_node, make_pod, profile_of
from tests.unit.scheduler.play import Play

PLUGINS = ("PrioritySort", "NodeUnschedulable", "NodeResourcesFit", "DefaultPreemption")


def waiting(*names: str) -> tuple[Play, list[Decision]]:
    """Pods whose decisions wait in the binder; together they fill node a."""
    play = Play(make_node("a", pods=1000), use=profile_of(*PLUGINS))
    pods = [make_pod(name, cpu=f"{4000 // len(names)}m", priority=1) for name in names]
    play.add(*pods)
    decisions = play.schedule(*pods) + play.work()
    for decision in decisions:
        play.answer(decision, "waiting")
    return play, decisions


def wait(play: Play, seconds: float = PAUSE_S) -> list[BindRequest]:
    """Time passes; what the binder is asked then."""
    play.now += seconds
    return [effect.request for effect in play.tell(Work(256)) if isinstance(effect, Bind)]


def test_it_is_asked_about_again_and_again_but_not_twice_at_once() -> None:
    play, (decision,) = waiting("p")
    assert play.core.wake_at == play.now + PAUSE_S
    assert wait(play, PAUSE_S / 2) == []
    (request,) = wait(play, PAUSE_S / 2)
    assert request.decisions == (decision,)
    assert wait(play, 10 * PAUSE_S) == []
    assert play.core.wake_at is None
    play.answer(decision, "waiting")
    (request,) = wait(play)
    assert request.decisions == (decision,)


def test_a_request_that_asks_again_is_never_skipped_by_the_binder() -> None:
    play, decisions = waiting("p", "q")
    (request,) = wait(play)
    assert request.decisions == tuple(decisions)
    assert claims_of(request) == [None, None]


def test_it_takes_no_place_among_the_unanswered() -> None:
    play, (decision,) = waiting("p")
    assert (play.core.unanswered, play.core.waiting) == (0, 1)
    assert play.core.waiting_attempts() == (decision.attempt,)
    play.answer(decision, "bound")
    assert (play.core.unanswered, play.core.waiting) == (1, 0)
    play.bind(decision)
    assert (play.core.unanswered, play.core.waiting) == (0, 0)


def test_its_binding_in_the_view_ends_the_wait_without_an_answer() -> None:
    play, (decision,) = waiting("p")
    play.bind(decision)
    assert play.core.waiting == 0
    assert not play.core.is_unsettled(decision.uid)
    assert wait(play) == []


def test_a_refusal_gives_the_room_back_and_goes_to_error_backoff() -> None:
    play, (decision,) = waiting("p")
    other = make_pod("other", cpu="4")
    play.add(other)
    assert play.schedule(other) == []
    wait(play)
    play.answer(decision, "error", cause="VolumeBinding", reasons=("not done within 600 s",))
    (result,) = [one for one in play.results("p") if one.outcome != "scheduled"]
    assert (result.outcome, result.assumed, result.message) == (
        "bindError",
        "a",
        "VolumeBinding: not done within 600 s",
    )
    assert play.core.waiting == 0
    assert [one.node for one in play.schedule(other)] == ["a"]


def test_it_may_still_conflict_and_is_decided_anew() -> None:
    play, (decision,) = waiting("p")
    wait(play)
    play.answer(decision, "conflict", cause="nodeGone")
    (again,) = play.work()
    assert (again.attempt, again.number) == (decision.attempt, decision.number + 1)
    assert play.core.waiting == 0


def test_who_was_asked_about_longest_ago_comes_first() -> None:
    play, decisions = waiting(*(f"p{number}" for number in range(300)))
    (first,) = wait(play)
    assert first.decisions == tuple(decisions[:256])
    (second,) = wait(play)
    assert second.decisions == tuple(decisions[256:])
    for request in (second, first):
        answers = tuple(BindAnswer(attempt=one.attempt, uid=one.uid, result="waiting") for one in request.decisions)
        play.tell(BindAnswered(request, BindReply(epoch=1, answers=answers)))
    (third,) = wait(play)
    assert third.decisions == (*first.decisions[:212], *second.decisions)


def test_who_is_withdrawn_comes_before_all_others() -> None:
    play, decisions = waiting(*(f"p{number}" for number in range(300)))
    core = play.core
    last = core._placing.assumptions.get(decisions[-1].uid)  # pyright: ignore[reportPrivateUsage] - as a preemption does
    assert last is not None
    core._asking_again.withdraw(last, play.now)  # pyright: ignore[reportPrivateUsage]
    (request,) = wait(play, 0)
    assert [one.withdrawn for one in request.decisions] == [False] * 255 + [True]


def test_each_request_speaks_for_the_session_that_decided() -> None:
    play, _ = waiting("p")
    play.session("s2")
    other = make_pod("new")
    play.set_node(make_node("b"))
    play.add(other)
    (new,) = play.schedule(other)
    play.answer(new, "waiting")
    sessions = {
        decision.name: request.session for _ in range(2) for request in wait(play) for decision in request.decisions
    }
    assert sessions == {"p": "s1", "new": "s2"}


def urgent(play: Play) -> PodView:
    pod = make_pod("urgent", cpu="4", priority=10)
    play.add(pod)
    assert [one for one in play.schedule(pod) if not one.withdrawn] == []
    return pod


def test_a_victim_that_waits_in_the_binder_is_withdrawn_at_once() -> None:
    play, (decision,) = waiting("p")
    urgent(play)
    (preempt,) = play.of(Preempt)
    assert [victim.name for victim in preempt.victims] == ["p"]
    (request,) = [one for one in play.requests() if one.decisions[0].withdrawn]
    assert request.decisions[0].attempt == decision.attempt
    assert play.core.is_unsettled(decision.uid)
    play.answer(decision, "error", cause="withdrawn")
    assert not play.core.is_unsettled(decision.uid)
    assert play.results("p")[-1].outcome == "bindError"


def test_one_that_is_being_asked_about_is_withdrawn_with_the_next_question() -> None:
    play, (decision,) = waiting("p")
    wait(play)
    urgent(play)
    assert not any(one.withdrawn for request in play.requests() for one in request.decisions)
    play.answer(decision, "waiting")
    (request,) = wait(play, 0)
    assert [one.withdrawn for one in request.decisions] == [True]
