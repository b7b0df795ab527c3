"""The scheduler's core: every attempt ends once, room is counted at once and given back, conflicts are tried
again."""

from collections.abc import Hashable
from typing import ClassVar

import pytest

from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import PermitResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, Status
from podyard.plugins.node_resources_fit.args import Args
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.proto.binder_api import NumberRange
from podyard.proto.traces import flagged, is_sampled
from podyard.scheduler.core.assumptions import Assumptions
from podyard.scheduler.core.effects import AwaitPosition, Bind, Conflicted, CycleSpan, Done, Record
from tests.unit.framework.builders import make_node, make_pod
from tests.unit.scheduler.play import SAMPLED, UNSAMPLED, Play

NODE = make_node("a", cpu="1")


def test_pods_wait_until_the_view_has_reached_the_pops_position() -> None:
    play, pod = Play(NODE), make_pod("p", cpu="1")
    play.add(pod)
    play.pop(pod, ahead=1)
    assert play.of(AwaitPosition) == [AwaitPosition(play.view.position + 1)]
    assert not play.core.ready
    assert play.work() == []
    play.set_node(make_node("b", cpu="64"))
    assert play.core.ready
    assert [decision.node for decision in play.work()] == ["b"]


def test_what_is_decided_is_counted_at_once() -> None:
    """docs/rules.md, decided-counts-at-once."""
    play = Play(NODE)
    pods = [make_pod(f"p{number}", cpu="600m") for number in range(2)]
    play.add(*pods)
    (decision,) = play.schedule(*pods)
    assert (decision.name, decision.node) == ("p0", "a")
    first, second = play.results()
    assert (first.outcome, first.node) == ("scheduled", "a")
    assert (second.outcome, second.unschedulable_plugins) == ("unschedulable", ("NodeResourcesFit",))


def test_a_request_has_growing_numbers_and_claims_what_earlier_ones_assumed() -> None:
    play = Play(NODE)
    pods = [make_pod(f"p{number}") for number in range(4)]
    play.add(*pods)
    first = play.schedule(pods[0], pods[1])
    assert [decision.number for decision in first] == [1, 2]
    assert play.claims() == []
    (third,) = play.schedule(pods[2])
    assert play.claims() == [(1, 2)]
    play.bind(first[0])
    play.schedule(pods[3])
    assert play.claims() == [(2, 3)]
    assert third.position < play.requests()[-1].decisions[0].position


def test_a_request_has_at_most_256_decisions_and_the_next_claims_them() -> None:
    play = Play(make_node("a", pods=1000, cpu="1000"))
    pods = [make_pod(f"p{number}") for number in range(300)]
    play.add(*pods)
    play.pop(*pods[:150])
    play.pop(*pods[150:])
    play.work(300)
    assert [len(request.decisions) for request in play.requests()] == [256, 44]
    assert play.claims() == [(1, 256)]


def test_a_slice_takes_only_so_many() -> None:
    play = Play(NODE)
    pods = [make_pod(f"p{number}") for number in range(5)]
    play.add(*pods)
    play.pop(*pods)
    assert len(play.work(2)) == 2
    assert (play.core.backlog, play.core.ready) == (3, True)
    assert set(play.core.open_attempts()) == {"1-3", "1-4", "1-5"}


@pytest.mark.parametrize("seen_first", [True, False], ids=["seen-then-answered", "answered-then-seen"])
def test_a_bound_pod_leaves_the_books_when_it_is_answered_and_seen(seen_first: bool) -> None:
    play, pod, other = Play(NODE), make_pod("p", cpu="1"), make_pod("q")
    play.add(pod, other)
    (decision,) = play.schedule(pod)
    if seen_first:
        play.bind(decision)
    play.answer(decision, "bound")
    assert play.core.unanswered == (0 if seen_first else 1)
    play.schedule(other)
    assert play.claims() == ([] if seen_first else [(1, 1)])
    if not seen_first:
        play.bind(decision)
    assert play.core.unanswered == 1  # the other one
    assert [one.outcome for one in play.results("p")] == ["scheduled"]
    play.release(pod)
    third = make_pod("r", cpu="1")
    play.add(third)
    assert play.schedule(third)


def test_a_conflict_gives_the_room_back_tells_the_queue_and_tries_again_at_the_binders_position() -> None:
    """docs/rules.md, retry-waits-for-what-the-binder-saw."""
    play, pod, other = Play(NODE), make_pod("p", cpu="1"), make_pod("q", cpu="1")
    play.add(pod, other)
    (decision,) = play.schedule(pod)
    play.answer(decision, "conflict", cause="NodePorts", reasons=("taken",), ahead=2)
    assert play.of(Conflicted) == [Conflicted("NodePorts", True)]
    scheduled, dropped = play.results("p")
    assert (scheduled.outcome, scheduled.attempt) == ("scheduled", "1-1")
    assert (dropped.attempt, dropped.assumed, dropped.message) == ("1-1/1", "a", "NodePorts: taken")
    play.set_node(make_node("b", cpu="1"))
    assert play.work() == []  # one position short
    assert play.schedule(other)[0].node in ("a", "b")
    play.set_node(make_node("c", cpu="2"))
    (again,) = play.work()
    assert (again.attempt, again.node) == ("1-1", "c")
    assert again.number > decision.number
    assert len(play.results("p")) == 2


def test_after_three_retries_a_conflict_is_a_bind_error() -> None:
    play, pod = Play(NODE), make_pod("p")
    play.add(pod)
    play.pop(pod)
    for _ in range(4):
        (decision,) = play.work()
        play.answer(decision, "conflict", cause="fit", reasons=("full",))
    assert play.work() == []
    last = play.results()[-1]
    assert (last.attempt, last.outcome, last.assumed, last.message) == ("1-1", "bindError", "a", "fit: full")
    (record,) = play.of(Record)
    assert (record.record.outcome, record.record.node, record.record.message) == ("bindError", "a", "fit: full")
    assert play.core.unanswered == 0


def test_a_retry_that_finds_no_node_can_only_go_to_backoff() -> None:
    """docs/rules.md, no-parking-without-events: the queue believes the pod scheduled, so it kept no events
    for it."""
    play, pod = Play(NODE), make_pod("p", cpu="1")
    play.add(pod)
    (decision,) = play.schedule(pod)
    play.set_node(make_node("a", cpu="500m"))
    play.answer(decision, "conflict", cause="fit", reasons=("Insufficient cpu",))
    assert play.work() == []
    last = play.results()[-1]
    assert (last.attempt, last.outcome, last.unschedulable_plugins, last.assumed) == ("1-1", "bindError", (), "")
    assert last.message.startswith("fit: Insufficient cpu; then 0/1 nodes are available: 1 Insufficient cpu.")
    assert play.of(CycleSpan)[-1].keep


def test_a_pod_that_another_attempt_bound_elsewhere_gives_its_room_back() -> None:
    play, pod, other = Play(NODE), make_pod("p", cpu="1"), make_pod("q", cpu="1")
    play.add(pod, other)
    (decision,) = play.schedule(pod)
    play.answer(decision, "alreadyBound", node="z")
    assert play.results()[-1].assumed == "a"
    assert play.schedule(other)


@pytest.mark.parametrize(("answer", "outcome"), [("gone", "error"), ("error", "bindError")])
def test_other_answers_end_the_attempt_and_give_the_room_back(answer: str, outcome: str) -> None:
    play, pod, other = Play(NODE), make_pod("p", cpu="1"), make_pod("q", cpu="1")
    play.add(pod, other)
    (decision,) = play.schedule(pod)
    play.answer(decision, answer, reasons=("why",))  # pyright: ignore[reportArgumentType] - one of the results
    last = play.results()[-1]
    assert (last.attempt, last.outcome, last.assumed) == ("1-1", outcome, "a")
    assert play.schedule(other)


def test_an_answer_about_what_nobody_waits_for_changes_nothing() -> None:
    play, pod = Play(NODE), make_pod("p")
    play.add(pod)
    (decision,) = play.schedule(pod)
    play.answer(decision, "bound")
    play.bind(decision)
    count = len(play.effects)
    play.answer(decision, "conflict", cause="late")
    assert len(play.effects) == count


def test_an_answer_about_an_earlier_attempt_says_nothing_of_the_present_one() -> None:
    play, pod = Play(NODE), make_pod("p")
    play.add(pod)
    (earlier,) = play.schedule(pod)
    play.answer(earlier, "error", reasons=("why",))
    assert play.schedule(pod)
    count = len(play.effects)
    play.answer(earlier, "gone")
    assert len(play.effects) == count
    assert play.core.is_unsettled(pod.uid)


def test_a_foreign_binding_takes_the_place_of_what_was_assumed() -> None:
    play, pod, other = Play(NODE, make_node("b", cpu="1")), make_pod("p", cpu="1"), make_pod("q", cpu="1")
    play.add(pod, other)
    (decision,) = play.schedule(pod)
    elsewhere = "b" if decision.node == "a" else "a"
    play.bind(decision, node=elsewhere, attempt="9-9")
    play.answer(decision, "alreadyBound", node=elsewhere)
    (found,) = play.schedule(other)
    assert found.node == decision.node


def test_a_pod_popped_again_waits_for_the_answer_of_its_old_attempt() -> None:
    """docs/rules.md, lost-answer-is-settled-first: the old bind may have taken effect."""
    play, pod = Play(NODE), make_pod("p")
    play.add(pod)
    (decision,) = play.schedule(pod)
    (again,) = play.pop(pod)
    assert play.work() == []
    assert play.core.open_attempts() == (again,)
    play.answer(decision, "bound")
    last = play.results()[-1]
    assert (last.attempt, last.outcome, last.node) == (again, "scheduled", "a")


def test_after_a_conflict_of_the_old_attempt_the_new_one_is_made() -> None:
    play, pod = Play(NODE), make_pod("p")
    play.add(pod)
    (decision,) = play.schedule(pod)
    (again,) = play.pop(pod)
    play.work()
    play.answer(decision, "conflict", cause="fit")
    assert play.core.ready
    (found,) = play.work()
    assert (found.attempt, found.node) == (again, "a")
    assert [(one.attempt, one.outcome) for one in play.results()] == [
        ("1-1", "scheduled"),
        ("1-1", "bindError"),
        (again, "scheduled"),
    ]


@pytest.mark.parametrize("kind", ["unknown", "another", "deleting", "bound", "ended"])
def test_pods_that_need_no_cycle(kind: str) -> None:
    play, pod = Play(NODE), make_pod("p")
    if kind == "another":
        play.add(make_pod("p", uid="other"))
    elif kind == "deleting":
        pod = make_pod("p", deleting=True)
        play.add(pod)
    elif kind != "unknown":
        play.add(pod)
        (decision,) = play.schedule(pod)
        play.bind(decision)
        play.answer(decision, "bound")
        if kind == "ended":
            play.release(pod)
    before = len(play.requests())
    (attempt,) = play.pop(pod)
    play.work()
    assert len(play.requests()) == before
    last = play.results()[-1]
    expected = ("scheduled", "a", "") if kind == "bound" else ("error", "", "the pod is gone")
    assert (last.attempt, last.outcome, last.node, last.message) == (attempt, *expected)


def test_a_new_leader_of_the_queue_makes_the_old_ones_pops_void() -> None:
    play = Play(NODE)
    pods = [make_pod("p"), make_pod("q")]
    play.add(*pods)
    play.pop(*pods, ahead=1)
    play.pop(pods[0], epoch=2)
    play.pop(pods[1], epoch=1)
    assert [decision.attempt for decision in play.work()] == ["2-3"]
    play.set_node(make_node("b"))
    assert play.work() == []


def test_a_new_session_numbers_anew_and_tries_no_old_conflict_again() -> None:
    play = Play(NODE)
    pods = [make_pod("p"), make_pod("q"), make_pod("r")]
    play.add(*pods)
    (decision,) = play.schedule(pods[0])
    play.pop(pods[1])
    play.session("s2")
    assert play.work() == []
    (found,) = play.schedule(pods[2])
    assert (found.number, play.claims(), play.requests()[-1].session) == (1, [(0, 0)], "s2")
    play.answer(decision, "conflict", cause="fit")
    assert play.results("p")[-1].outcome == "bindError"
    assert play.work() == []


def test_what_an_earlier_session_assumed_is_told_by_the_number_0_until_it_is_known() -> None:
    """The new session has no number for it, and the binder must not believe that nothing is assumed."""
    play = Play(make_node("a", cpu="8"))
    pods = [make_pod(name, cpu="1") for name in "pqrs"]
    play.add(*pods)
    (old,) = play.schedule(pods[0])
    play.session("s2")
    (first,) = play.schedule(pods[1])
    assert (first.number, play.claims()) == (old.number, [(0, 0)])
    play.bind(old)
    (second,) = play.schedule(pods[2])
    assert play.claims() == [(first.number, first.number)], "the old binding is seen, the new one of that number is not"
    play.bind(first)
    play.bind(second)
    play.schedule(pods[3])
    assert play.claims() == []


def test_a_pod_that_was_bound_and_deleted_before_the_answer_came_is_forgotten() -> None:
    """An answer that is sent again comes seconds late; what is never forgotten would at last leave no room
    for pops."""
    play, pod = Play(NODE), make_pod("p", cpu="1")
    play.add(pod)
    (decision,) = play.schedule(pod)
    play.bind(decision)
    play.release(pod)
    play.delete(pod)
    del play.view.placements[pod.uid]
    play.answer(decision, "bound")
    assert play.core.unanswered == 0


def test_a_binding_that_came_and_went_unseen_is_forgotten_at_the_next_listing() -> None:
    play, pod, other = Play(NODE), make_pod("p", cpu="1"), make_pod("q", cpu="1")
    play.add(pod, other)
    (decision,) = play.schedule(pod)
    play.answer(decision, "bound")
    play.listed()
    assert play.schedule(other)


def test_a_binding_that_came_and_went_within_one_listing_is_forgotten_when_it_is_answered() -> None:
    """The listing was complete before the answer came: no later change will name the pod."""
    play, pod, other = Play(NODE), make_pod("p", cpu="1"), make_pod("q", cpu="1")
    play.add(pod, other)
    (decision,) = play.schedule(pod)
    play.delete(pod)
    play.listed()
    play.answer(decision, "bound", committed_at=play.view.position)
    assert play.core.unanswered == 0
    assert play.schedule(other)
    assert play.claims() == []


def test_a_binding_that_the_view_has_not_reached_stays_assumed() -> None:
    play, pod, other = Play(NODE), make_pod("p", cpu="1"), make_pod("q", cpu="1")
    play.add(pod, other)
    (decision,) = play.schedule(pod)
    play.answer(decision, "bound", committed_at=play.view.position + 1)
    assert play.core.unanswered == 1
    assert not play.schedule(other)
    play.bind(decision)
    assert play.core.unanswered == 0


def test_an_unknown_profile_is_an_error() -> None:
    play, pod = Play(NODE), make_pod("p")
    play.add(pod)
    play.core = type(play.core)({}, play.view, "s1")
    play.schedule(pod)
    assert play.results()[-1].message == "this scheduler has no profile 'default-scheduler'"


def test_only_sampled_or_bad_attempts_have_spans() -> None:
    play, good, quiet, bad = Play(NODE), make_pod("g"), make_pod("q"), make_pod("b", cpu="64")
    play.add(good, quiet, bad)
    (sampled,) = play.schedule(good, trace=SAMPLED)
    (unsampled,) = play.schedule(quiet)
    play.schedule(bad)
    found = {span.record.name: span for span in play.of(CycleSpan)}
    assert set(found) == {"g", "b"}
    assert (found["g"].trace, found["g"].parent, found["g"].keep) == (sampled.trace, SAMPLED, False)
    assert (found["b"].keep, found["b"].error) == (True, ""), "that no node fits is an answer, not a fault"
    play.answer(unsampled, "error", reasons=("disk",))
    late = play.of(CycleSpan)[-1]
    assert (late.trace, late.keep, late.error) == (unsampled.trace, True, "disk")


def test_a_refused_decision_keeps_its_cycle_and_all_that_follows() -> None:
    play, pod = Play(NODE), make_pod("p")
    play.add(pod)
    (decision,) = play.schedule(pod)
    assert not play.of(CycleSpan)
    play.answer(decision, "conflict", cause="fit", reasons=("full",))
    (first,) = play.of(CycleSpan)
    assert (first.trace, first.keep, first.error) == (decision.trace, True, "")
    (again,) = play.work()
    assert is_sampled(again.trace)
    assert flagged(decision.trace)[:36] == again.trace[:36], "it is the same attempt's trace"
    assert play.of(CycleSpan)[-1].trace == again.trace


def test_one_of_many_equal_failures_has_a_record_and_no_span() -> None:
    play, pod, other = Play(NODE), make_pod("p", cpu="64"), make_pod("o", node_selector={"a": "b"})
    play.add(pod, other)
    play.schedule(pod, trace=SAMPLED, thinned="unschedulable/NodeResourcesFit")
    assert [effect.record.name for effect in play.of(Record)] == ["p"]
    assert not play.of(CycleSpan)
    play.schedule(other, trace=SAMPLED, thinned="unschedulable/NodeResourcesFit")
    assert [span.record.name for span in play.of(CycleSpan)] == ["o"], "it failed otherwise"


def test_what_took_long_from_the_pop_to_the_binding_may_have_a_span() -> None:
    play, quick, slow = Play(NODE), make_pod("q"), make_pod("s")
    play.add(quick, slow)
    for pod, waits in ((quick, 0.9), (slow, 1.1)):
        (decision,) = play.schedule(pod)
        play.now += waits
        play.answer(decision, "bound")
    assert [(span.record.name, span.slow, span.keep) for span in play.of(CycleSpan)] == [("s", True, False)]


def test_records_tell_what_was_found() -> None:
    play, pod = Play(NODE, make_node("b", unschedulable=True)), make_pod("p", cpu="64")
    play.add(pod)
    play.schedule(pod)
    (effect,) = play.of(Record)
    record = effect.record
    assert (record.attempt, record.scheduler, record.nodes_total, record.nodes_feasible) == ("1-1", "s1", 2, 0)
    assert record.position == play.view.position
    assert record.unschedulable_plugins == ("NodeResourcesFit", "NodeUnschedulable")
    assert record.message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.")


class Gate:
    """Permit: everybody waits 10 s for it."""

    name: ClassVar[str] = "Gate"

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def permit(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PermitResult:
        if pod.name == "opener":
            for uid in list(cluster.waiting):
                cluster.waiting.allow(uid, self.name)
            return PermitResult()
        return PermitResult(status=Status(code=Code.WAIT), timeout_s=10.0)


def gated() -> Profile:
    plugins = (PrioritySort(), NodeResourcesFit(Args()), Gate())
    return resolve("default-scheduler", [Enabled(plugin=plugin) for plugin in plugins])


def test_a_pod_that_waits_at_permit_keeps_its_room_and_is_claimed() -> None:
    play = Play(make_node("a", cpu="2"), use=gated())
    waiter, opener = make_pod("waiter", cpu="1500m"), make_pod("opener", cpu="500m")
    play.add(waiter, opener)
    assert play.schedule(waiter) == []
    assert play.results() == []
    assert play.core.open_attempts() == ("1-1",)
    assert play.core.wake_at == play.now + 10.0
    (second,) = play.schedule(opener)
    assert play.claims() == [(1, 1)]
    assert play.core.ready
    (first,) = play.work()
    assert (first.name, first.number) == ("waiter", 1)
    assert play.claims() == [], "it was decided before the other"
    assert second.number == 2
    assert {one.name: one.outcome for one in play.results()} == {"waiter": "scheduled", "opener": "scheduled"}


def test_a_pod_that_waited_at_permit_claims_what_it_was_decided_with_whatever_became_of_that() -> None:
    play = Play(make_node("a", cpu="8"), use=gated())
    opener, waiter = make_pod("opener", cpu="1"), make_pod("waiter", cpu="1")
    play.add(opener, waiter)
    (before,) = play.schedule(opener)
    assert play.schedule(waiter) == []
    play.answer(before, "error")  # it counted on this one, which is gone when its decision is sent
    play.core_allow(waiter.uid, "Gate")
    (found,) = play.work()
    assert found.name == "waiter"
    assert play.claims() == [(before.number, before.number)]


def test_a_wait_that_takes_too_long_parks_the_pod() -> None:
    play, pod, other = Play(NODE, use=gated()), make_pod("p", cpu="1"), make_pod("opener", cpu="1")
    play.add(pod, other)
    play.schedule(pod)
    play.now += 10.0
    play.work()
    (result,) = play.results()
    assert (result.outcome, result.unschedulable_plugins, result.assumed) == ("unschedulable", ("Gate",), "a")
    assert result.message == "rejected due to timeout after waiting at plugin Gate"
    assert play.of(Record)[0].record.unschedulable_plugins == ("Gate",)
    assert play.schedule(other)


def test_a_pod_deleted_while_it_waits_gives_its_room_back() -> None:
    play, pod, other = Play(NODE, use=gated()), make_pod("p", cpu="1"), make_pod("opener", cpu="1")
    play.add(pod, other)
    play.schedule(pod)
    play.delete(pod)
    assert [(one.outcome, one.assumed) for one in play.results()] == [("error", "a")]
    assert play.schedule(other)
    assert play.core.wake_at is None


def test_outstanding_numbers_are_told_as_ranges() -> None:
    numbers = Assumptions()
    numbers._unseen = dict.fromkeys([1, 2, 3, 7, 9, 10], "u")  # pyright: ignore[reportPrivateUsage] - the shortest way
    assert numbers.outstanding() == tuple(NumberRange(first=a, last=b) for a, b in [(1, 3), (7, 7), (9, 10)])
    assert numbers.outstanding(but=2) == tuple(
        NumberRange(first=a, last=b) for a, b in [(1, 1), (3, 3), (7, 7), (9, 10)]
    )


@pytest.mark.parametrize(
    ("trace", "expected"), [(SAMPLED, True), (UNSAMPLED, False), (SAMPLED[:-2] + "03", True), ("", False)]
)
def test_sampled_is_the_lowest_bit(trace: str, expected: bool) -> None:
    assert is_sampled(trace) is expected


def test_effects_of_an_attempt_come_before_its_request() -> None:
    play, pod = Play(NODE), make_pod("p")
    play.add(pod)
    play.schedule(pod)
    assert [type(effect) for effect in play.effects] == [Done, Bind]


def test_retries_of_conflicts_count_as_pods_of_a_slice() -> None:
    """The engine's window bounds what is decided ahead of the binder: refused decisions must not go round
    it."""
    play = Play(make_node("a", cpu="2"))
    pods = [make_pod(name, cpu="1") for name in ("p", "q")]
    play.add(*pods)
    for decision in play.schedule(*pods):
        play.answer(decision, "conflict", cause="fit")
    assert [len(play.work(limit=1)) for _ in range(3)] == [1, 1, 0]
