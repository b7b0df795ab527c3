"""The rules of the fence that a model checker found to be needed
(docs/rules.md, fence-settles-unclear-writes, and those behind it). Each test fails without its rule."""

import pytest

from podyard.binder.core import effects
from podyard.binder.core.binder import Phase
from podyard.bus import Outgoing
from podyard.proto import codec, subjects
from podyard.proto.placement import Binding, Fence
from tests.unit.binder.stage import Stage, binding_subject, foreign_binding, uid_of


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node(cpu="2")
    for name in "abc":
        stage.pod(name)
    return stage


# ---- taking over


def test_take_over_moves_the_fence_with_a_new_epoch_and_the_same_n(stage: Stage):
    first = stage.serving("binder-a")
    first.bind(stage.decide("a"))
    before = stage.stream.fence()
    stage.serving("binder-b")
    after = stage.stream.fence()
    assert after.epoch > before.epoch
    assert (after.n, after.holder) == (before.n, "binder-b")


def test_the_epoch_is_above_the_fences_even_if_the_lease_stream_began_anew(stage: Stage):
    stage.term("binder-a").elect(lease_epoch=500)
    second = stage.term("binder-b").elect(lease_epoch=1)
    assert second.core.keeper.epoch == 501


def test_listing_begins_only_after_the_fence_moved(stage: Stage):
    binder = stage.term()
    binder.faults.append("hold")
    binder.elect()
    assert not binder.of(effects.StartListing)
    (answer,) = binder.release_held()
    binder.step(answer)
    assert binder.of(effects.StartListing)
    assert binder.core.phase is Phase.SERVING


def test_a_listing_without_the_fence_is_not_the_truth(stage: Stage):
    """A stale replica may list an older state: list until the listing holds the fence that was moved before
    it."""
    binder = stage.term()
    stale = True
    honest = binder.list_all

    def list_all() -> None:
        nonlocal stale
        if stale:
            stale = False
            binder.view.begin_listing()
            binder.view.end_listing(1)
        else:
            honest()

    binder.list_all = list_all
    binder.elect()
    assert binder.of(effects.Relist)
    assert len(binder.of(effects.Serve)) == 1
    assert binder.view.fence is not None
    assert binder.view.fence.batch == binder.core.keeper.batch


def test_requests_are_refused_until_the_listing_holds_the_fence(stage: Stage):
    binder = stage.term()
    binder.faults.append("hold")
    binder.elect()
    ticket = binder.ask(stage.decide("a"))
    assert binder.replies[ticket].refused == "this binder does not lead"
    assert stage.stream.commits == []


def test_take_over_after_a_lost_ack_of_the_fence_move(stage: Stage):
    binder = stage.term()
    binder.faults.append("lost ack")
    binder.elect()
    assert binder.core.phase is Phase.SERVING
    assert binder.bind(stage.decide("a")) == ["bound"]


def test_two_binders_taking_over_at_once_end_with_one_epoch_each(stage: Stage):
    first, second = stage.term("binder-a"), stage.term("binder-b")
    first.faults.append("hold")
    first.elect()
    second.elect()
    (answer,) = first.release_held()
    first.step(answer)  # lost the race: reads, and takes over from the second
    assert first.core.phase is Phase.SERVING
    assert first.core.keeper.epoch > second.core.keeper.epoch
    assert second.ask(stage.decide("a")) not in second.replies
    assert second.core.phase is Phase.DEPOSED


# ---- unclear answers


def test_a_lost_batch_is_settled_by_moving_the_fence_and_judged_again(stage: Stage):
    binder = stage.serving()
    binder.faults.append("lost")
    assert binder.bind(stage.decide("a")) == ["bound"]
    commit, move, again = binder.sends[-3:]
    assert [w.subject for w in move.writes] == [subjects.FENCE]
    assert codec.decode(Fence, move.writes[0].payload).n == 0
    assert len(commit.writes) == len(again.writes) == 3
    assert [len(record.bindings) for record in stage.stream.commits] == [1]


def test_a_batch_whose_ack_was_lost_is_known_by_its_id_in_the_fence(stage: Stage):
    """docs/rules.md, lost-answer-is-settled-first: timed out, and took effect."""
    binder = stage.serving()
    binder.faults.append("lost ack")
    assert binder.bind(stage.decide("a")) == ["bound"]
    assert len(stage.stream.commits) == 1
    assert binder.core.keeper.n == 1
    assert binder.bind(stage.decide("b")) == ["bound"]
    assert [record.n for record in stage.stream.commits] == [1, 2]


def test_a_batch_that_arrives_after_the_fence_moved_is_never_applied(stage: Stage):
    """The delayed message would bind a second time what was judged again meanwhile."""
    binder = stage.serving()
    binder.faults.append("late")
    assert binder.bind(stage.decide("a")) == ["bound"]
    (answer,) = binder.release_held()
    assert isinstance(answer, effects.Conflicted)
    binder.step(answer)  # the late refusal of a settled send is no news
    assert binder.core.phase is Phase.SERVING
    assert [len(record.bindings) for record in stage.stream.commits] == [1]


def test_fence_moves_may_be_unclear_too(stage: Stage):
    binder = stage.serving()
    binder.faults.extend(["lost", "lost ack"])
    assert binder.bind(stage.decide("a")) == ["bound"]
    binder.faults.extend(["lost ack", "lost", "lost ack", "lost"])
    assert binder.bind(stage.decide("b")) == ["bound"]
    assert stage.stream.live() == {"a": "n1", "b": "n1"}
    assert [record.n for record in stage.stream.commits] == [1, 2]


def test_unclear_moves_are_repeated_with_growing_delays(stage: Stage):
    binder = stage.serving()
    binder.faults.extend(["lost"] * 8)
    binder.bind(stage.decide("a"))
    delays = [send.delay_s for send in binder.sends if len(send.writes) == 1][1:]
    assert delays == sorted(delays)
    assert delays[0] == 0.0
    assert delays[-1] == 1.0


def test_a_stale_read_of_the_fence_only_leads_to_one_more_move(stage: Stage):
    binder = stage.serving()
    there = stage.stream.messages[subjects.FENCE]
    stale = effects.FenceFound(stage.stream.fence(), there.sequence)
    binder.faults.append("lost ack")
    binder.stale_fence = stale
    assert binder.bind(stage.decide("a")) == ["bound"]
    assert len(stage.stream.commits) == 1
    assert binder.core.phase is Phase.SERVING


def test_a_stale_read_must_not_depose(stage: Stage):
    binder = stage.serving("binder-a")
    older = effects.FenceFound(Fence(epoch=0, n=0, batch="someone.1", holder="someone"), 1)
    binder.faults.append("lost ack")
    binder.stale_fence = older
    assert binder.bind(stage.decide("a")) == ["bound"]


def test_a_fence_that_went_back_ends_the_reign_and_the_next_one_serves(stage: Stage):
    """CLUSTER was deleted and made again: moving a fence that is not there would be refused for ever."""
    binder = stage.serving("binder-a")
    binder.bind(stage.decide("a"))
    stage.stream.remake()
    binder.ask(stage.decide("b"))
    assert binder.core.phase is Phase.DEPOSED
    successor = stage.serving("binder-a")
    assert successor.core.phase is Phase.SERVING
    assert stage.stream.fence().n == 0


def test_a_stream_made_again_before_the_first_listing_ends_the_reign(stage: Stage):
    """CLUSTER was made again between the move of the fence and the listing, which never will hold that
    fence."""
    binder = stage.term("binder-a")
    honest = binder.list_all

    def list_all() -> None:
        stage.stream.remake()
        binder.list_all = honest
        honest()

    binder.list_all = list_all
    binder.elect()
    assert binder.core.phase is Phase.DEPOSED
    assert not binder.of(effects.Serve)
    assert stage.serving("binder-b").core.phase is Phase.SERVING


def test_a_fence_moved_by_another_before_the_first_listing_ends_the_reign(stage: Stage):
    binder = stage.term("binder-a")
    honest = binder.list_all

    def list_all() -> None:
        stage.move_fence("binder-b")
        binder.list_all = honest
        honest()

    binder.list_all = list_all
    binder.elect()
    assert binder.core.phase is Phase.DEPOSED
    assert stage.stream.fence().holder == "binder-b"


def test_an_unclear_move_while_listing_is_repeated_until_the_listing_holds_it(stage: Stage):
    binder = stage.term("binder-a")
    honest = binder.list_all

    def list_all() -> None:
        binder.faults.extend(["lost", "lost ack"])
        binder.list_all = honest
        binder.view.begin_listing()
        binder.view.end_listing(1)

    binder.list_all = list_all
    binder.elect()
    assert len(binder.of(effects.Relist)) == 1
    assert binder.core.phase is Phase.SERVING


def test_10164_is_unclear_move_the_fence_and_judge_again(stage: Stage):
    binder = stage.serving()
    binder.faults.append("no number")
    assert binder.bind(stage.decide("a")) == ["bound"]
    assert len(binder.of(effects.FenceMoving)) == 2  # the take-over, and this


def test_after_a_lost_batch_the_world_is_looked_at_again(stage: Stage):
    """Between the two sends the node vanished: what was accepted before is a conflict now."""
    binder = stage.serving()
    binder.faults.append("hold")
    ticket = binder.ask(stage.decide("a"))
    binder.held.clear()
    stage.remove("nodes", "n1")
    binder.step(effects.Unclear(binder.sends[-1].batch_id, "time-out"))
    stage.pass_time(0.02)
    (answer,) = binder.answers(ticket)
    assert (answer.result, answer.cause) == ("conflict", "nodeGone")


# ---- deposed


@pytest.mark.parametrize("fault", ["ok", "lost", "late", "no number"])
def test_a_deposed_binder_writes_nothing_and_says_nothing(stage: Stage, fault: str):
    binder = stage.serving("binder-a")
    binder.faults.append("hold")
    ticket = binder.ask(stage.decide("a"))
    stage.move_fence("binder-b")
    held = binder.held[0]
    if fault == "ok":
        (answer,) = binder.release_held()
        binder.step(answer)
        assert binder.sends[-1] is held  # the refusal and a look at the fence are enough to know
    else:
        binder.step(effects.Unclear(held.batch_id, fault))
        binder.release_held()
    stage.pass_time(1.0)
    assert binder.core.phase is Phase.DEPOSED
    assert [type(effect) for effect in binder.done[-1:]] == [effects.StepDown]
    assert ticket not in binder.replies
    assert stage.stream.commits == []
    assert stage.stream.placement("a") is None
    before = len(binder.sends)
    binder.ask(stage.decide("b"))
    assert len(binder.sends) == before


def test_applied_and_deposed_right_after_says_nothing(stage: Stage):
    """Its batch was applied, the ack was lost, then somebody took over: the fence is theirs, so nothing is
    said."""
    binder = stage.serving("binder-a")
    binder.faults.append("hold")
    ticket = binder.ask(stage.decide("a"))
    binder.release_held()
    stage.move_fence("binder-b")
    binder.step(effects.Unclear(binder.sends[-1].batch_id, "lost ack"))
    assert binder.core.phase is Phase.DEPOSED
    assert ticket not in binder.replies
    assert stage.stream.live() == {"a": "n1"}


def test_the_successor_answers_the_same_attempt_as_bound(stage: Stage):
    """Rules taken together: applied, never acknowledged, taken over; the scheduler asks again with the same
    attempt id."""
    first = stage.serving("binder-a")
    decision = stage.decide("a")
    first.faults.append("hold")
    first.ask(decision)
    first.release_held()
    second = stage.serving("binder-b")
    (answer,) = second.answers(second.ask(decision))
    assert (answer.result, answer.node) == ("bound", "n1")
    assert len(stage.stream.commits) == 1


# ---- refusals


def test_a_refusal_is_answered_only_after_an_own_later_fence_move(stage: Stage):
    binder = stage.serving()
    binder.faults.append("hold")
    ticket = binder.ask(stage.decide("a", node="nowhere"))
    assert ticket not in binder.replies
    assert [write.subject for write in binder.held[0].writes] == [subjects.FENCE]
    (answer,) = binder.release_held()
    binder.step(answer)
    assert [found.result for found in binder.answers(ticket)] == ["conflict"]


def test_a_deposed_binder_does_not_refuse(stage: Stage):
    """What it judged by may be old: another binder has released what was in the way."""
    binder = stage.serving("binder-a")
    binder.bind(stage.decide("a", node="n1"), stage.decide("b", node="n1"))
    stage.move_fence("binder-b")
    ticket = binder.ask(stage.decide("c", node="n1"))
    assert binder.core.phase is Phase.DEPOSED
    assert ticket not in binder.replies


def test_a_refusal_rides_with_a_commit(stage: Stage):
    binder = stage.serving()
    moves = len(binder.of(effects.FenceMoving))
    assert binder.bind(stage.decide("a"), stage.decide("b", node="nowhere")) == ["bound", "conflict"]
    assert len(binder.of(effects.FenceMoving)) == moves


# ---- 10071


def test_10071_of_a_binding_drops_that_decision_and_sends_the_rest_again(stage: Stage):
    binder = stage.serving()
    stage.stream.put(foreign_binding("a", node="n7"))
    ticket = binder.ask(stage.decide("a"), stage.decide("b"))
    stage.pass_time(0.02)
    first, second = binder.answers(ticket)
    assert (first.result, first.node) == ("alreadyBound", "n7")
    assert second.result == "bound"
    assert [pod.name for record in stage.stream.commits for pod in record.bindings] == ["b"]
    assert binder.of(effects.Relist)  # a binding that the view did not know


def test_10071_of_a_binding_of_the_same_attempt_is_bound(stage: Stage):
    binder = stage.serving()
    stage.stream.put(foreign_binding("a", attempt="1-a"))
    ticket = binder.ask(stage.decide("a"), stage.decide("b"))
    stage.pass_time(0.02)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound", "bound"]


def test_after_10071_the_rest_is_judged_again(stage: Stage):
    """What was refused because of the dropped mate fits now; what was accepted may not."""
    binder = stage.serving()
    stage.pod("big", cpu="2")
    stage.stream.put(foreign_binding("big", node="n7"))
    ticket = binder.ask(stage.decide("big"), stage.decide("a"), stage.decide("b"))
    stage.pass_time(0.02)
    results = {answer.uid: answer.result for answer in binder.answers(ticket)}
    assert results == {uid_of("big"): "alreadyBound", uid_of("a"): "bound", uid_of("b"): "bound"}


def test_10071_with_a_stale_look_moves_the_fence_and_tries_again(stage: Stage):
    binder = stage.serving()
    honest = binder.carry_out
    looks = 0

    def blind_once(effect: effects.Effect) -> effects.Message | None:
        nonlocal looks
        if isinstance(effect, effects.Inspect) and not looks:
            looks += 1
            return effects.Inspected(effect.batch_id, binder.read_fence(), {})
        return honest(effect)

    binder.carry_out = blind_once
    stage.stream.put(foreign_binding("a", node="n7"))
    ticket = binder.ask(stage.decide("a"), stage.decide("b"))
    stage.pass_time(0.05)
    assert looks == 1
    failed = next(number for number, send in enumerate(binder.sends) if len(send.writes) == 4)
    assert [write.subject for write in binder.sends[failed + 1].writes] == [
        subjects.FENCE
    ]  # not the same batch at once again
    assert [answer.result for answer in binder.answers(ticket)] == ["alreadyBound", "bound"]


def test_10071_of_a_release_reads_the_binding_again(stage: Stage):
    binder = stage.serving()
    binder.bind(stage.decide("a"))
    binder.faults.append("hold")
    stage.status("a")
    stage.pass_time(0.02)
    (held,) = binder.held
    there = stage.stream.messages[binding_subject("a")]
    stage.stream.put(Outgoing(there.subject, there.payload))  # another version of the same binding
    (answer,) = binder.release_held()
    assert isinstance(answer, effects.Conflicted)
    binder.step(answer)
    stage.pass_time(0.1)
    assert held.batch_id != binder.sends[-1].batch_id
    assert stage.stream.live() == {}
    assert not isinstance(stage.stream.placement("a"), Binding)


# ---- repetitions


def test_a_repeated_request_gets_the_same_answer_and_no_second_effect(stage: Stage):
    """docs/rules.md, lost-answer-is-settled-first: idempotent by pod uid and attempt."""
    binder = stage.serving()
    decisions = stage.decide("a"), stage.decide("b", node="nowhere")
    first = binder.answers(binder.ask(*decisions))
    stage.node("nowhere")  # now it would fit
    second = binder.answers(binder.ask(*decisions))
    assert first == second
    assert [answer.result for answer in second] == ["bound", "conflict"]
    assert len(stage.stream.commits) == 1


def test_a_retry_of_a_conflict_is_a_new_decision(stage: Stage):
    binder = stage.serving()
    assert binder.bind(stage.decide("a", node="nowhere", attempt="1-1")) == ["conflict"]
    assert binder.bind(stage.decide("a", node="n1", attempt="1-1")) == ["bound"]


def test_a_request_sent_twice_while_it_is_open_is_judged_once(stage: Stage):
    binder = stage.serving()
    decision = stage.decide("a")
    first = binder.ask(decision, wait=False)
    second = binder.ask(decision, wait=False)
    stage.pass_time(0.02)
    assert binder.answers(first) == binder.answers(second)
    assert [len(record.bindings) for record in stage.stream.commits] == [1]
