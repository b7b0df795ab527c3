"""Rules of the queue, one a test: docs/rules.md, judge-then-record, and its neighbours there."""

from collections.abc import Hashable

from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.events import Registration
from podyard.objects.core import Pod
from podyard.proto.actions import ActionType
from podyard.queue.core.effects import Gated, Judged, Nominated
from podyard.queue.core.gates import Gates
from podyard.queue.core.messages import Incoming
from podyard.queue.core.scheduling_queue import SchedulingQueue
from podyard.queue.core.waking import NAMED_SKIPS
from tests.unit.queue.play import NODE_CHANGES, label_hint, new_queue, node_event, park, pod_event, pod_object, queued

TIMEOUT = Incoming(event=events.UNSCHEDULABLE_TIMEOUT)
RETRY = Incoming(event=events.RETRY_ALL)


def test_order_is_priority_then_time_then_arrival() -> None:
    queue = new_queue()
    for pod in (queued("late", 2.0), queued("early", 1.0), queued("high", 3.0, priority=5), queued("tie", 2.0)):
        queue.add(pod, 3.0)
    order = [pod.key[1] for pod in iter(queue.pop, None)]
    assert order == ["high", "early", "late", "tie"]


def test_events_during_an_attempt_are_judged_when_the_pod_comes_back() -> None:
    queue = new_queue()
    queue.add(pod := queued("p"), 0.0)
    queue.move_all(node_event("p"), 0.0)
    assert queue.pop() is pod
    queue.fail(pod.uid, 1.0, unschedulable=["OnNodes"])
    assert pod.pool == "unschedulable", "the event came before the pop"
    queue.activate(pod.uid, 2.0)
    queue.pop()
    queue.move_all(node_event("p"), 2.5)
    queue.fail(pod.uid, 3.0, unschedulable=["OnNodes"])
    assert pod.pool == "backoffQ"
    assert pod.woken_by is not None
    assert (pod.woken_by.plugin, pod.woken_by.reason) == ("OnNodes", "n helps p")


def test_after_the_first_event_that_helps_no_other_one_is_judged_but_for_what_a_plugin_is_pending_on() -> None:
    for pending, woken_by in ((), "OnNodes"), (("OnPods",), "OnPods"):
        queue = new_queue()
        queue.add(pod := queued("p"), 0.0)
        queue.pop()
        for event in (node_event("q"), node_event("p"), node_event("q"), pod_event("p")):
            queue.move_all(event, 0.5)
        queue.take_effects()
        queue.fail(pod.uid, 1.0, unschedulable=["OnNodes"], pending=pending)
        judged = [effect for effect in queue.take_effects() if isinstance(effect, Judged)]
        assert len([one for one in judged if one.skipped]) == 1 + len(pending)
        assert pod.woken_by is not None
        assert pod.woken_by.plugin == woken_by


def test_events_before_a_pods_own_pop_are_not_its_business() -> None:
    queue = new_queue()
    for name in ("first", "second"):
        queue.add(queued(name), 0.0)
    queue.pop()
    queue.move_all(node_event("first", "second"), 0.0)
    queue.pop()
    queue.move_all(node_event("first"), 0.5)
    for uid in ("uid-second", "uid-first"):
        queue.fail(uid, 1.0, unschedulable=["OnNodes"])
    assert (queue.pods["uid-first"].pool, queue.pods["uid-second"].pool) == ("backoffQ", "unschedulable")


def test_the_list_of_events_is_cut_when_the_oldest_attempt_ends() -> None:
    queue = new_queue()
    for name in ("a", "b"):
        queue.add(queued(name), 0.0)
        queue.pop()
        queue.move_all(node_event(name), 0.0)
    assert queue.in_flight.listing() == ["pod:uid-a", "NodeAdd", "pod:uid-b", "NodeAdd"]
    queue.done("uid-a")
    assert queue.in_flight.listing() == ["pod:uid-b", "NodeAdd"]
    queue.done("uid-b")
    assert queue.in_flight.listing() == []


def test_a_pod_made_again_under_its_name_does_not_end_the_old_attempt() -> None:
    queue = new_queue()
    queue.add(queued("p", uid="old"), 0.0)
    queue.pop()
    queue.delete("old")
    queue.add(new := queued("p", uid="new"), 1.0)
    assert queue.in_flight.uids() == ("old",)
    queue.fail("old", 2.0, unschedulable=["OnNodes"])
    assert queue.in_flight.uids() == ()
    assert new.pool == "activeQ"
    assert "old" not in queue.pods


def test_without_its_events_a_pod_is_never_parked() -> None:
    queue = new_queue()
    queue.add(pod := queued("p"), 0.0)
    queue.pop()
    queue.done(pod.uid)
    queue.fail(pod.uid, 1.0, unschedulable=["OnNodes"])
    assert pod.pool == "backoffQ"


def test_an_update_in_flight_is_kept_and_does_not_queue_the_pod_twice() -> None:
    queue = new_queue()
    queue.add(pod := queued("p"), 0.0)
    queue.pop()
    helped = pod_object("p", "p")
    change = Incoming(event=events.UNSCHEDULED_POD_UPDATE, old=pod.pod, new=helped)
    queue.update(pod.uid, pod.pod, helped, [change], 0.5, priority=0)
    assert pod.pool == "inFlight"
    assert not queue.has_ready()
    queue.fail(pod.uid, 1.0, unschedulable=["OnPods"])
    assert pod.pool == "backoffQ"


def test_activation_in_flight_leaves_an_event_for_that_pod_alone() -> None:
    queue = new_queue()
    for name in ("a", "b"):
        queue.add(queued(name), 0.0)
        queue.pop()
    queue.activate("uid-a", 0.5)
    queue.fail("uid-b", 1.0, unschedulable=["OnNodes"])
    queue.fail("uid-a", 1.0, unschedulable=["OnNodes"])
    assert (queue.pods["uid-a"].pool, queue.pods["uid-b"].pool) == ("backoffQ", "unschedulable")


def test_a_repeated_activation_changes_nothing() -> None:
    queue = new_queue()
    pod = park(queue, "a", "OnNodes")
    queue.activate(pod.uid, 1.0)
    queue.take_effects()
    woken_by = pod.woken_by
    queue.activate(pod.uid, 2.0)
    assert (pod.pool, pod.woken_by, queue.take_effects()) == ("activeQ", woken_by, [])
    queue.pop()
    queue.activate(pod.uid, 3.0)
    queue.activate(pod.uid, 4.0)
    queue.fail(pod.uid, 5.0, unschedulable=["OnNodes"])
    assert pod.pool == "backoffQ", "handed out meanwhile, it is tried once more"
    queue.pop()
    queue.fail(pod.uid, 90.0, unschedulable=["OnNodes"])
    assert pod.pool == "unschedulable"


def test_a_pods_own_forgetting_does_not_wake_itself() -> None:
    queue = new_queue()
    mine, other = park(queue, "mine", "OnPods"), park(queue, "other", "OnPods")
    queue.move_all(pod_event("mine", "other"), 60.0, except_uid=mine.uid)
    assert (mine.pool, other.pool) == ("unschedulable", "activeQ")


def test_rejectors_of_the_attempt_before_are_cleared() -> None:
    queue = new_queue()
    pod = park(queue, "p", "OnNodes")
    queue.activate(pod.uid, 1.0)
    queue.pop()
    queue.fail(pod.uid, 2.0)
    assert pod.unschedulable_plugins == frozenset()
    assert pod.pool == "errorBackoffQ"


def test_no_rejector_means_an_error_which_is_retried_not_parked() -> None:
    queue = new_queue()
    queue.add(pod := queued("p"), 0.0)
    queue.pop()
    queue.fail(pod.uid, 0.0, message="the API said no")
    assert pod.pool == "errorBackoffQ"
    assert (pod.consecutive_errors, pod.unschedulable_count) == (1, 0)


def test_the_flush_rescues_after_more_than_five_minutes() -> None:
    queue = new_queue()
    pod = park(queue, "p", "OnNodes", now=10.0)
    queue.flush_unschedulable(TIMEOUT, 310.0)
    assert pod.pool == "unschedulable"
    queue.flush_unschedulable(TIMEOUT, 310.5)
    assert pod.pool == "activeQ"
    assert pod.was_flushed


def test_how_long_a_pod_stays_parked_can_be_set() -> None:
    queue = new_queue(max_unschedulable_s=40.0)
    pod = park(queue, "p", "OnNodes", now=10.0)
    queue.flush_unschedulable(TIMEOUT, 50.0)
    assert pod.pool == "unschedulable"
    queue.flush_unschedulable(TIMEOUT, 50.5)
    assert pod.pool == "activeQ"


def test_the_flush_leaves_gated_pods_to_their_gate() -> None:
    """docs/rules.md, flush-leaves-gated-pods."""
    queue = new_queue()
    queue.add(pod := queued("p", 0.0, "gate"), 0.0)
    queue.flush_unschedulable(TIMEOUT, 400.0)
    assert pod.pool == "gated"


def test_a_gated_pod_hears_only_what_its_gating_plugin_registered() -> None:
    queue = new_queue()
    queue.add(pod := queued("p", 0.0, "gate"), 0.0)
    queue.take_effects()
    queue.move_all(node_event("p"), 1.0)
    assert queue.take_effects() == [], "OnNodes listens to added nodes, the gate does not"
    pod.pod = pod_object("p")
    queue.move_all(node_event("p", action=ActionType.DELETE), 2.0)
    assert pod.pool == "activeQ"


def test_an_update_of_the_gated_pod_itself_is_always_looked_at() -> None:
    queue = new_queue()
    queue.add(pod := queued("p", 0.0, "gate"), 0.0)
    pod.unschedulable_plugins |= {"OnPods"}
    queue.parked.add(pod)
    free = pod_object("p", "p")
    queue.update(pod.uid, pod.pod, free, [Incoming(event=events.UNSCHEDULED_POD_UPDATE, new=free)], 1.0, priority=0)
    assert pod.pool == "activeQ"


def test_gating_is_said_once_with_its_reason() -> None:
    queue = new_queue()
    queue.add(pod := queued("p", 0.0, "gate"), 0.0)
    queue.activate(pod.uid, 1.0)
    (gated,) = queue.take_effects()
    assert isinstance(gated, Gated)
    assert (gated.plugin, gated.message) == ("Gate", "the label gate is there")
    assert pod.pool == "gated"


def test_an_event_is_judged_and_kept_in_one_step() -> None:
    queue = new_queue()
    parked = park(queue, "parked", "OnNodes")
    queue.add(flying := queued("flying"), 1.0)
    queue.pop()
    queue.move_all(node_event("parked", "flying"), 60.0)
    queue.fail(flying.uid, 60.0, unschedulable=["OnNodes"])
    assert (parked.pool, flying.pool) == ("activeQ", "backoffQ")


def test_queue_of_a_pending_plugin_skips_the_backoff() -> None:
    """docs/rules.md, pending-skips-the-backoff."""
    queue = new_queue()
    for name, rejected in (("pending", {"pending": ["OnNodes"]}), ("rejected", {"unschedulable": ["OnNodes"]})):
        queue.add(queued(name), 0.0)
        queue.pop()
        queue.fail(f"uid-{name}", 0.0, **rejected)
    queue.move_all(node_event("pending", "rejected"), 0.5)
    assert (queue.pods["uid-pending"].pool, queue.pods["uid-rejected"].pool) == ("activeQ", "backoffQ")


def test_room_of_a_nomination_is_for_pods_of_at_most_its_priority() -> None:
    queue = new_queue()
    low, high = park(queue, "low", "OnPods", priority=1), park(queue, "high", "OnPods", priority=9)
    queue.move_all(pod_event("low", "high"), 60.0, max_priority=5)
    assert (low.pool, high.pool) == ("activeQ", "unschedulable")


def test_a_hint_that_fails_counts_as_queue_and_is_recorded() -> None:
    queue = new_queue()
    pod = park(queue, "p", "OnNodes")
    queue.move_all(Incoming(event=node_event().event, new="not an object"), 60.0)
    assert pod.pool == "activeQ"
    (judged,) = queue.take_effects()
    assert isinstance(judged, Judged)
    assert judged.moved[0].hints[0].answer == "Error"
    assert "expected a node or a pod" in judged.moved[0].hints[0].reason


def test_an_event_without_an_object_counts_and_is_no_fault_of_the_plugin() -> None:
    queue = new_queue()
    pod = park(queue, "p", "OnNodes")
    queue.move_all(Incoming(event=node_event().event), 60.0)
    assert pod.pool == "activeQ"
    (judged,) = queue.take_effects()
    assert isinstance(judged, Judged)
    (call,) = judged.moved[0].hints
    assert (call.answer, call.reason) == (
        "Queue",
        "the event names no object that the hint could look at: counts as one that helps",
    )
    assert not queue.faults


class Strict:
    """An index that raises where there is nothing to look up."""

    def add(self, signature: Hashable) -> None: ...

    def remove(self, signature: Hashable) -> None: ...

    def candidates(self, old: object | None, new: object | None) -> tuple[Hashable, ...]:
        if new is None:
            raise TypeError("expected a node")
        return ()


def test_an_event_without_an_object_is_not_looked_up_in_an_index() -> None:
    """One that raises is thrown away, and every later event of that kind asks all pods."""
    registry = EventRegistry({"OnNodes": (Registration(NODE_CHANGES, label_hint, Strict),)})
    queue = SchedulingQueue(
        {"default-scheduler": registry}, Gates({}), signers={"default-scheduler": {"OnNodes": _alike}}
    )
    for number in range(NAMED_SKIPS + 1):
        park(queue, f"p{number}", "OnNodes")
    queue.move_all(Incoming(event=node_event().event), 60.0)
    assert not queue.faults


def _alike(pod: Pod) -> Hashable:
    return pod.metadata.name


def test_all_hints_answer_in_profile_order() -> None:
    queue = new_queue()
    pod = park(queue, "p", "Also", "OnPods", "OnNodes")
    queue.move_all(node_event("q", action=ActionType.UPDATE_NODE_LABEL), 1.0)
    (judged,) = queue.take_effects()
    assert isinstance(judged, Judged)
    assert [call.plugin for call in judged.skipped[0].calls] == ["OnNodes", "Also"]
    assert pod.pool == "unschedulable"


def test_one_queue_among_the_answers_is_enough() -> None:
    queue = new_queue()
    pod = park(queue, "p", "OnNodes", "Also")
    queue.move_all(node_event("also-p", action=ActionType.UPDATE_NODE_LABEL), 1.0)
    assert pod.pool == "backoffQ"
    assert pod.woken_by is not None
    assert pod.woken_by.plugin == "Also"


def test_a_pod_deleted_while_it_is_retried_leaves_no_nomination() -> None:
    queue = new_queue()
    pod = park(queue, "p", "OnPods")
    queue.nominate(pod.uid, "n1")
    assert [type(effect) for effect in queue.take_effects()] == [Nominated]
    queue.activate(pod.uid, 1.0)
    queue.pop()
    queue.delete(pod.uid)
    queue.fail(pod.uid, 2.0, unschedulable=["OnPods"])
    queue.nominate(pod.uid, "n1")
    assert queue.nominator.by_node() == {}
    assert queue.take_effects() == []


def test_an_event_that_nobody_listens_to_is_not_even_kept() -> None:
    queue = new_queue()
    park(queue, "p", "OnNodes")
    queue.add(queued("q"), 1.0)
    queue.pop()
    queue.move_all(node_event("p", action=ActionType.UPDATE_NODE_CONDITION), 1.0)
    assert queue.in_flight.listing() == ["pod:uid-q"]
    assert queue.take_effects() == []


def test_a_missed_version_counts_as_every_action_and_every_hint_as_queue() -> None:
    queue = new_queue()
    pod = park(queue, "p", "OnNodes")
    gap = Incoming(event=node_event("q", action=ActionType.UPDATE_NODE_CONDITION).event, missed=True)
    queue.move_all(gap, 60.0)
    assert pod.pool == "activeQ"


def test_retry_all_reaches_every_parked_pod_and_those_in_flight() -> None:
    queue = new_queue()
    parked = park(queue, "parked", "OnNodes")
    gated = queued("gated", 0.0, "gate")
    queue.add(gated, 0.0)
    gated.pod = pod_object("gated")
    queue.add(flying := queued("flying"), 0.0)
    queue.pop()
    queue.retry_all(RETRY, 60.0)
    queue.fail(flying.uid, 60.0, unschedulable=["OnNodes"])
    assert (parked.pool, gated.pool, flying.pool) == ("activeQ", "activeQ", "backoffQ")


def test_a_pod_that_was_never_tried_is_given_back_at_once() -> None:
    queue = new_queue()
    queue.add(pod := queued("p"), 0.0)
    queue.pop()
    queue.give_back(pod.uid, 1.0)
    assert pod.pool == "activeQ"
    assert queue.in_flight.uids() == ()


def test_a_higher_priority_moves_a_waiting_pod_to_the_front() -> None:
    queue = new_queue()
    first, second = queued("first", 1.0), queued("second", 2.0)
    queue.add(first, 1.0)
    queue.add(second, 2.0)
    queue.update(second.uid, second.pod, pod_object("second", priority=7), [], 3.0, priority=7)
    assert queue.pop() is second


def test_an_event_for_everybody_leaves_out_whom_it_is_not_for() -> None:
    """The limits of an event (docs/rules.md, own-drop-wakes-only-others;
    docs/rules.md, ended-nomination-frees-room) hold for one that asks no hints too.
    """
    queue = new_queue()
    own, high, low = (
        park(queue, name, "OnNodes", priority=priority) for name, priority in (("a", 0), ("b", 5), ("c", 0))
    )
    event = Incoming(event=events.UNSCHEDULABLE_TIMEOUT, id="e")
    queue.move_all(event, 60.0, max_priority=0, except_uid=own.uid)
    assert (own.pool, high.pool, low.pool) == ("unschedulable", "unschedulable", "activeQ")
