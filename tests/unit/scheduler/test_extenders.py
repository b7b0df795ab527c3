"""The core with HTTP extenders: it asks, waits, goes on with the answer, and nothing changes meanwhile."""

from typing import Any

import pytest

from podyard.cluster.pods import PodView
from podyard.framework.extenders import Extender, FilterAnswer, FilterCall, PrioritizeAnswer, PrioritizeCall
from podyard.framework.interfaces import PermitResult
from podyard.framework.profile import Enabled, resolve
from podyard.framework.status import Code, Status
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.scheduler.core.effects import AskExtenders, Bind, Done
from podyard.scheduler.core.messages import ExtendersAnswered, SessionStarted
from tests.unit.framework.builders import make_node, make_pod
from tests.unit.scheduler.play import Play

FILTERS = Extender(name="http://x", filters=True)
PRIORITIZES = Extender(name="http://x", prioritizes=True)


def schedule(play: Play, *pods: PodView) -> None:
    play.add(*pods)
    play.schedule(*pods)


def asked(play: Play) -> AskExtenders:
    found = [effect for effect in play.effects if isinstance(effect, AskExtenders)]
    return found[-1]


def answer(play: Play, *answers: Any) -> None:
    play.tell(ExtendersAnswered(asked(play).ticket, answers))


def decided(play: Play) -> dict[str, str]:
    requests = [effect.request for effect in play.effects if isinstance(effect, Bind)]
    return {decision.name: decision.node for request in requests for decision in request.decisions}


@pytest.fixture
def play() -> Play:
    return Play(make_node("a"), make_node("b"), extenders=(FILTERS,))


def test_a_cycle_waits_for_the_answer_and_goes_on_with_it(play: Play) -> None:
    schedule(play, make_pod("p"))
    assert not decided(play)
    assert not play.core.ready
    (call,) = asked(play).calls
    assert isinstance(call, FilterCall)
    assert (call.pod.name, call.nodes) == ("p", ("a", "b"))
    answer(play, FilterAnswer(nodes=("b",), failed={"a": "too loud"}))
    assert decided(play) == {"p": "b"}


def test_the_next_pod_is_not_looked_at_meanwhile(play: Play) -> None:
    schedule(play, make_pod("p"), make_pod("q"))
    assert len([one for one in play.effects if isinstance(one, AskExtenders)]) == 1
    assert set(play.core.open_attempts()) == {"1-1", "1-2"}
    answer(play, FilterAnswer(nodes=("b",)))
    assert play.core.ready
    play.work()
    assert asked(play).ticket == 2
    answer(play, FilterAnswer(nodes=("a",)))
    assert decided(play) == {"p": "b", "q": "a"}


class Patient:
    """Permit: everybody waits 10 s for it."""

    name = "Patient"
    scope = "row"

    def signature(self, pod: Any) -> None:
        return None

    def permit(self, state: Any, pod: Any, cluster: Any, node_name: str) -> PermitResult:
        return PermitResult(status=Status(code=Code.WAIT), timeout_s=10.0)


def test_no_time_is_up_before_the_answer_is_there() -> None:
    """Who is woken by the time finds nothing to do while an extender is asked: it would be woken again at
    once, and again."""
    patient = resolve("default-scheduler", [Enabled(plugin=PrioritySort()), Enabled(plugin=Patient())])
    play = Play(make_node("a"), use=patient, extenders=(FILTERS,))
    schedule(play, make_pod("waits"))
    answer(play, FilterAnswer(nodes=("a",)))
    due_at = play.core.wake_at
    assert due_at == play.now + 10.0
    schedule(play, make_pod("asks"))
    assert asked(play).ticket == 2
    assert play.core.wake_at is None
    answer(play, FilterAnswer(nodes=("a",)))
    assert play.core.wake_at == due_at


def test_what_changes_meanwhile_counts_afterwards(play: Play) -> None:
    schedule(play, make_pod("p"))
    play.set_node(make_node("c"))
    assert "c" not in play.core.nodes.row_of
    answer(play, FilterAnswer(nodes=("a",)))
    assert "c" in play.core.nodes.row_of
    schedule(play, make_pod("q"))
    (call,) = asked(play).calls
    assert isinstance(call, FilterCall)
    assert call.nodes == ("a", "b", "c")


def test_an_extender_that_fails_ends_the_attempt_and_one_that_may_fail_does_not(play: Play) -> None:
    schedule(play, make_pod("p"))
    answer(play, FilterAnswer(error="out of order"))
    results = [effect.result for effect in play.effects if isinstance(effect, Done)]
    assert [(one.name, one.outcome, one.message) for one in results] == [("p", "error", "out of order")]
    easy = Play(make_node("a"), extenders=(Extender(name="http://x", filters=True, ignorable=True),))
    schedule(easy, make_pod("p"))
    answer(easy, FilterAnswer(error="out of order"))
    assert decided(easy) == {"p": "a"}


def test_points_of_an_extender_decide(play: Play) -> None:
    play = Play(make_node("a"), make_node("b"), extenders=(PRIORITIZES,))
    for name, best in (("p", "a"), ("q", "b")):
        schedule(play, make_pod(name))
        (call,) = asked(play).calls
        assert isinstance(call, PrioritizeCall)
        answer(play, PrioritizeAnswer(scores={best: 10}))
    assert decided(play) == {"p": "a", "q": "b"}


def test_a_new_session_forgets_the_question(play: Play) -> None:
    """docs/rules.md, every-pop-ends-once: the queue has taken the pod back; the late answer is nobody's."""
    schedule(play, make_pod("p"))
    play.set_node(make_node("c"))
    play.tell(SessionStarted("s2"))
    assert "c" in play.core.nodes.row_of
    assert play.core.open_attempts() == ()
    answer(play, FilterAnswer(nodes=("a",)))
    assert not decided(play)
    assert not any(isinstance(effect, Done) for effect in play.effects)


def test_an_answer_after_the_end_of_the_term_is_ignored(play: Play) -> None:
    schedule(play, make_pod("p"))
    play.core.close()
    before = len(play.effects)
    answer(play, FilterAnswer(nodes=("a",)))
    assert len(play.effects) == before
    assert not play.core.is_unsettled("uid-p")


def test_an_answer_to_an_older_question_is_ignored(play: Play) -> None:
    schedule(play, make_pod("p"))
    old = asked(play).ticket
    play.tell(SessionStarted("s2"))
    schedule(play, make_pod("q"))
    assert asked(play).ticket != old
    play.tell(ExtendersAnswered(old, (FilterAnswer(nodes=("a",)),)))
    assert not decided(play)
    answer(play, FilterAnswer(nodes=("b",)))
    assert decided(play) == {"q": "b"}
