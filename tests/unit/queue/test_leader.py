"""The leader's protocol: pops, results, sessions, preemptions, time."""

from typing import Any

import msgspec
import pytest

from podyard.objects.core import Pod
from podyard.proto import codec
from podyard.proto.decisions import WakeUp
from podyard.proto.message import PodRef
from podyard.proto.queue_api import (
    ActivateRequest,
    AttemptResult,
    DoneRequest,
    PoppedPod,
    PopReply,
    PopRequest,
    PreemptingRequest,
    QueueListRequest,
    QueueReply,
    SessionHeartbeat,
)
from podyard.proto.streams import MAX_PAYLOAD_BYTES
from podyard.queue.core import listing
from podyard.queue.core.effects import AttemptEnded, Judged, Nominated
from podyard.queue.core.gates import DEFAULT_PREEMPTION, Gates, NamedGate, PreemptionGate
from podyard.queue.core.leader import LAST_DECISIONS_S, Leader
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.scheduling_queue import SchedulingQueue
from tests.unit.queue.play import REGISTRY, node_event, pod_event, queued

DIGESTS = {"default-scheduler": "d1"}


class Stage:
    """A leader, one fake scheduler a name, and the time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.traces = 0
        self.going: set[str] = set()
        self.bound: dict[str, str] = {}
        self.preemptions = PreemptionGate(lambda uid: uid in self.going)
        gates = Gates({"default-scheduler": [NamedGate(DEFAULT_PREEMPTION, self.preemptions)]})
        self.queue = SchedulingQueue({"default-scheduler": REGISTRY}, gates)
        self.leader = Leader(
            self.queue,
            epoch=7,
            digests=DIGESTS,
            preemptions=self.preemptions,
            bound_node=lambda uid: self.bound.get(uid, ""),
            new_trace=self._new_trace,
        )
        self.pops = 0

    def _new_trace(self, keep: bool) -> str:
        self.traces += 1
        return f"00-{self.traces:032x}-{self.traces:016x}-{'01' if keep else '00'}"

    def add(self, *names: str, **more: Any) -> list[QueuedPod]:
        pods = [queued(name, self.now, **more) for name in names]
        for pod in pods:
            self.queue.add(pod, self.now)
        return pods

    def pop(self, session: str = "s", pop_id: str = "", max_pods: int = 256, digests: Any = DIGESTS) -> PopReply | None:
        self.pops += 1
        request = PopRequest(session=session, pop_id=pop_id or f"pop{self.pops}", max_pods=max_pods, digests=digests)
        return self.leader.pop(request, self.now, position=42)

    def take(self, session: str = "s") -> PoppedPod:
        reply = self.pop(session, max_pods=1)
        assert reply is not None, "nothing to pop"
        return reply.pods[0]

    def done(self, pod: PoppedPod, outcome: Any, session: str = "s", **more: Any) -> QueueReply:
        result = AttemptResult(
            namespace=pod.namespace, name=pod.name, uid=pod.uid, attempt=pod.attempt, outcome=outcome, **more
        )
        return self.leader.done(DoneRequest(session=session, results=(result,)), self.now)

    def park(self, name: str, *plugins: str) -> QueuedPod:
        (pod,) = self.add(name)
        self.done(self.take(), "unschedulable", unschedulable_plugins=plugins)
        assert pod.pool == "unschedulable"
        return pod

    def over(self, session: str) -> QueueReply:
        return self.leader.heartbeat(SessionHeartbeat(session=session, over=True), self.now)

    def ended(self) -> list[tuple[str, str]]:
        return [
            (effect.pod.name, effect.outcome)
            for effect in self.queue.take_effects()
            if isinstance(effect, AttemptEnded)
        ]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def taken_by(stage: Stage, session: str) -> tuple[PoppedPod, ...]:
    """All that there is."""
    reply = stage.pop(session)
    assert reply is not None, "nothing to pop"
    return reply.pods


# -- pop


def test_a_pop_gives_pods_in_order_with_attempts_of_this_epoch(stage: Stage) -> None:
    stage.add("a", "b", "c")
    reply = stage.pop(max_pods=2)
    assert reply is not None
    assert (reply.epoch, reply.position) == (7, 42)
    assert [(pod.name, pod.attempt, pod.number) for pod in reply.pods] == [("a", "7-1", 1), ("b", "7-2", 1)]


def test_the_same_pop_id_gets_the_same_answer(stage: Stage) -> None:
    stage.add("a", "b")
    first = stage.pop(pop_id="x", max_pods=1)
    assert stage.pop(pop_id="x", max_pods=1) is first
    other = stage.pop(pop_id="y")
    assert other is not None
    assert [pod.name for pod in other.pods] == ["b"]


def test_an_empty_queue_makes_the_pop_wait(stage: Stage) -> None:
    assert stage.pop() is None


def test_other_plugins_are_refused_with_the_difference(stage: Stage) -> None:
    stage.add("a")
    reply = stage.pop(digests={"default-scheduler": "d2", "batch": "x"})
    assert reply is not None
    assert reply.pods == ()
    assert "profile batch: the scheduler has x, the queue has none" in reply.refused
    assert "profile default-scheduler: the scheduler has d2, the queue has d1" in reply.refused


# -- done


def test_scheduled_waits_for_the_binding_and_leaves_with_it(stage: Stage) -> None:
    (pod,) = stage.add("a")
    popped = stage.take()
    assert stage.done(popped, "scheduled", node="n1").unknown == ()
    assert pod.pool == "binding"
    assert stage.queue.in_flight.uids() == ()
    stage.queue.delete(pod.uid)
    stage.leader.bound(pod, "n1", popped.attempt, stage.now)
    assert stage.ended() == [("a", "scheduled")]
    assert stage.leader.attempts == {}
    assert stage.leader.binding == {}


def test_what_is_told_of_an_attempt_is_each_under_its_name(stage: Stage) -> None:
    (pod,) = stage.add("a")
    pod.causes, pod.replaces, pod.replaced, pod.unkept, pod.was_flushed = ("c",), ("r",), "older", 4, True
    pod.unschedulable_plugins, pod.woken_by, pod.previous_trace = frozenset({"Fit"}), WakeUp(event="e"), "before"
    pod.timestamp, pod.was_parked, pod.backing_off_since, pod.ready_since = 1.0, True, 11.0, 31.0
    popped = stage.take()
    stage.now = 102.0
    stage.done(popped, "scheduled", node="n1")
    stage.now = 103.0
    stage.queue.delete(pod.uid)
    stage.leader.bound(pod, "n1", popped.attempt, stage.now)
    (told,) = [one for one in stage.queue.take_effects() if isinstance(one, AttemptEnded)]
    assert told == AttemptEnded(
        pod=pod.ref,
        attempt=popped.attempt,
        number=1,
        profile="default-scheduler",
        session="s",
        queued_at=31.0,
        popped_at=100.0,
        at=103.0,
        outcome="scheduled",
        decided_at=102.0,
        parked_s=10.0,
        backed_off_s=20.0,
        node="n1",
        message="",
        by_queue=False,
        rejectors=frozenset({"Fit"}),
        woken_by=WakeUp(event="e"),
        trace=popped.trace,
        previous_trace="before",
        unkept=4,
        thinned=False,
        causes=("c",),
        replaces=("r",),
        replaced="older",
        metadata=pod.pod.metadata,
        initial_attempt_at=100.0,
        was_flushed=True,
    )


def test_a_binding_that_comes_before_done_ends_the_attempt(stage: Stage) -> None:
    (pod,) = stage.add("a")
    popped = stage.take()
    stage.queue.delete(pod.uid)
    stage.leader.bound(pod, "n1", popped.attempt, stage.now)
    assert stage.ended() == [("a", "scheduled")]
    assert stage.done(popped, "scheduled", node="n1").unknown == (popped.attempt,)
    assert stage.queue.in_flight.uids() == ()


def test_a_binding_by_somebody_else_leaves_the_open_attempt_to_its_scheduler(stage: Stage) -> None:
    """docs/rules.md, every-pop-ends-once: it ends once, when its scheduler says what came of it; until then
    its events are kept.
    """
    (pod,) = stage.add("a")
    popped = stage.take()
    stage.queue.delete(pod.uid)
    stage.leader.bound(pod, "n1", "6-99", stage.now)
    assert stage.ended() == []
    assert stage.queue.in_flight.uids() == (pod.uid,)
    stage.done(popped, "scheduled", node="n1")
    assert stage.ended() == [("a", "error")]
    assert stage.queue.in_flight.uids() == ()


def test_a_binding_by_an_earlier_attempt_ends_one_that_waits_for_its_binding_as_an_error(stage: Stage) -> None:
    (pod,) = stage.add("a")
    stage.done(stage.take(), "scheduled", node="n1")
    stage.queue.delete(pod.uid)
    stage.leader.bound(pod, "n1", "6-99", stage.now)
    assert stage.ended() == [("a", "error")]


def test_30_seconds_without_a_binding_go_to_error_backoff(stage: Stage) -> None:
    (pod,) = stage.add("a")
    stage.done(stage.take(), "scheduled", node="n1")
    stage.now += 29.9
    stage.leader.heartbeat(SessionHeartbeat(session="s"), stage.now)
    stage.leader.tick(stage.now)
    assert pod.pool == "binding"
    stage.now += 0.2
    stage.leader.tick(stage.now)
    assert pod.pool == "errorBackoffQ"
    assert "no binding was seen within 30 s" in pod.message
    assert stage.ended() == [("a", "error")]


def test_a_result_twice_is_named_unknown_and_does_nothing(stage: Stage) -> None:
    (pod,) = stage.add("a")
    popped = stage.take()
    stage.done(popped, "unschedulable", unschedulable_plugins=("OnNodes",))
    assert stage.done(popped, "error").unknown == (popped.attempt,)
    assert (pod.pool, pod.consecutive_errors) == ("unschedulable", 0)


def test_a_result_of_another_session_is_unknown(stage: Stage) -> None:
    (pod,) = stage.add("a")
    popped = stage.take("s")
    assert stage.done(popped, "error", session="t").unknown == (popped.attempt,)
    assert pod.pool == "inFlight"


def test_a_rejection_after_assuming_frees_room_for_the_others_only(stage: Stage) -> None:
    other = stage.park("b", "OnPods")
    (pod,) = stage.add("a")
    popped = stage.take()
    stage.queue.take_effects()
    pod.pod = labelled(pod.pod, "a", "b")
    stage.done(popped, "unschedulable", unschedulable_plugins=("OnPods",), assumed="n1")
    assert (pod.pool, other.pool) == ("unschedulable", "backoffQ")
    (judged,) = [effect for effect in stage.queue.take_effects() if isinstance(effect, Judged)]
    assert judged.incoming.event.label == "AssignedPodDelete"
    assert isinstance(judged.incoming.old, Pod)
    assert judged.incoming.old.spec.node_name == "n1", "hints see the pod where it was assumed"


def test_a_dropped_assumption_of_an_unknown_attempt_wakes_whoever_listens(stage: Stage) -> None:
    waiting = stage.park("b", "OnPods")
    lost = PoppedPod(namespace="default", name="x", uid="uid-x", attempt="6-1")
    assert stage.done(lost, "bindError", assumed="n1").unknown == ("6-1",)
    assert waiting.pool == "backoffQ"


def test_an_assumption_that_became_a_binding_is_not_dropped(stage: Stage) -> None:
    waiting = stage.park("b", "OnPods")
    stage.bound["uid-x"] = "n1"
    lost = PoppedPod(namespace="default", name="x", uid="uid-x", attempt="6-1")
    stage.done(lost, "error", assumed="n1")
    assert waiting.pool == "unschedulable"


def test_a_bind_error_after_scheduled_goes_to_backoff_and_ends_the_nomination(stage: Stage) -> None:
    (pod,) = stage.add("a")
    stage.queue.nominate(pod.uid, "n1")
    popped = stage.take()
    stage.done(popped, "scheduled", node="n1")
    pod.pod = nominated(pod.pod, "n1")
    stage.queue.take_effects()
    stage.done(popped, "bindError", node="n1", assumed="n1", message="conflict: fit")
    assert pod.pool == "errorBackoffQ"
    assert stage.leader.binding == {}
    nominations = [effect.node for effect in stage.queue.take_effects() if isinstance(effect, Nominated)]
    assert nominations == [""]


def test_a_rejection_may_nominate_keep_or_end(stage: Stage) -> None:
    (pod,) = stage.add("a")
    for given, expected in (("n1", "n1"), (None, "n1"), ("", "")):
        stage.done(stage.take(), "unschedulable", unschedulable_plugins=("OnNodes",), nominated_node=given)
        assert stage.queue.nominator.node_of(pod.uid) == expected
        stage.queue.activate(pod.uid, stage.now)


def test_a_pod_deleted_in_flight_ends_with_its_done(stage: Stage) -> None:
    (pod,) = stage.add("a")
    popped = stage.take()
    stage.queue.delete(pod.uid)
    stage.leader.gone(pod, stage.now)
    assert stage.ended() == [], "the scheduler still has it"
    stage.done(popped, "scheduled", node="n1")
    assert stage.ended() == [("a", "error")]
    assert stage.queue.in_flight.uids() == ()


def test_a_pod_deleted_while_binding_ends_at_once(stage: Stage) -> None:
    (pod,) = stage.add("a")
    stage.done(stage.take(), "scheduled", node="n1")
    stage.queue.delete(pod.uid)
    stage.leader.gone(pod, stage.now)
    assert stage.ended() == [("a", "error")]
    assert stage.leader.binding == {}


# -- sessions


def test_a_dead_sessions_attempts_go_back_and_all_parked_pods_are_retried(stage: Stage) -> None:
    parked = stage.park("parked", "OnNodes")
    (pod,) = stage.add("a")
    popped = stage.take()
    stage.now += 10.5
    stage.leader.tick(stage.now)
    assert pod.pool == "errorBackoffQ"
    assert parked.pool == "activeQ", "the dead session may have assumed what it waited for"
    late = stage.done(popped, "scheduled", node="n1")
    assert "session s is dead" in late.refused
    assert late.unknown == (popped.attempt,)
    refused = stage.pop("s")
    assert refused is not None
    assert "start a new one" in refused.refused
    assert pod.pool == "errorBackoffQ"


def test_a_dead_session_sends_no_more_decisions_so_its_binding_pods_go_back(stage: Stage) -> None:
    (pod,) = stage.add("a")
    stage.done(stage.take(), "scheduled", node="n1")
    stage.now += 10.5
    stage.leader.tick(stage.now)
    assert pod.pool == "errorBackoffQ"
    assert (stage.leader.binding, stage.leader.attempts) == ({}, {})


def test_what_a_session_did_not_decide_goes_back_at_once_when_it_ends_in_order(stage: Stage) -> None:
    parked = stage.park("parked", "OnNodes")
    decided, undecided = stage.add("decided", "undecided")
    reply = stage.pop()
    assert reply is not None
    stage.done(reply.pods[0], "scheduled", node="n1")
    stage.ended()
    assert stage.over("s").refused == ""
    assert (undecided.pool, decided.pool) == ("activeQ", "binding")
    assert undecided.consecutive_errors == 0, "it is nobody's fault"
    assert parked.pool == "backoffQ", "the session may have assumed what it waited for"
    assert stage.ended() == [("undecided", "error")]
    assert {pod.name for pod in taken_by(stage, "other")} == {"undecided", "parked"}
    stage.queue.delete(decided.uid)
    stage.leader.bound(decided, "n1", reply.pods[0].attempt, stage.now)
    assert stage.ended() == [("decided", "scheduled")], "the binder had its decision"


def test_decisions_of_a_session_that_ended_are_awaited_for_a_moment_only(stage: Stage) -> None:
    (others,) = stage.add("others")
    stage.done(stage.take("other"), "scheduled", session="other", node="n1")
    (late,) = stage.add("late")
    stage.now += 1
    popped = stage.take("s")
    stage.done(popped, "scheduled", node="n1")
    stage.over("s")
    stage.leader.tick(stage.now + LAST_DECISIONS_S - 0.1)
    assert late.pool == "binding"
    stage.now += LAST_DECISIONS_S
    stage.leader.tick(stage.now)
    assert (late.pool, others.pool) == ("errorBackoffQ", "binding")
    assert late.message == "scheduler session s has ended, and no binding was seen"
    assert stage.done(popped, "bindError").unknown == (popped.attempt,)


def test_a_session_that_has_ended_gets_nothing_more_and_says_so_in_vain_again(stage: Stage) -> None:
    stage.add("a")
    stage.take()
    stage.over("s")
    stage.over("unknown")
    (taken,) = taken_by(stage, "other")
    stage.ended()
    for session in ("s", "unknown"):
        assert stage.over(session).refused == ""
        refused = stage.pop(session)
        assert refused is not None
        assert (refused.pods, "it has ended" in refused.refused) == ((), True)
    assert stage.ended() == []
    assert stage.leader.sessions.open_attempts() == {"other": 1}
    assert stage.leader.attempts[taken.attempt].session == "other"


def test_a_queue_that_stood_still_does_not_take_its_schedulers_for_dead(stage: Stage) -> None:
    (pod,) = stage.add("a")
    stage.leader.tick(stage.now)
    stage.take()
    stage.now += 15
    stage.leader.tick(stage.now)
    assert pod.pool == "inFlight", "heartbeats of that time may lie unread"
    for _ in range(12):
        stage.now += 1
        stage.leader.tick(stage.now)
    assert pod.pool != "inFlight"


def test_heartbeats_keep_a_session_alive(stage: Stage) -> None:
    (pod,) = stage.add("a")
    popped = stage.take()
    for _ in range(10):
        stage.now += 2
        stage.leader.heartbeat(SessionHeartbeat(session="s", attempts=(popped.attempt,)), stage.now)
        stage.leader.tick(stage.now)
    assert pod.pool == "inFlight"


def test_attempts_of_a_lost_answer_go_back_after_two_heartbeats(stage: Stage) -> None:
    lost, kept = stage.add("lost", "kept")
    stage.pop(pop_id="lost", max_pods=1)
    stage.pop(pop_id="got", max_pods=1)
    beat = SessionHeartbeat(session="s", attempts=("7-2",), last_pop="got")
    stage.leader.heartbeat(beat, stage.now)
    assert lost.pool == "inFlight", "a done may be under way"
    stage.leader.heartbeat(beat, stage.now)
    assert (lost.pool, kept.pool) == ("activeQ", "inFlight")


def test_attempts_of_a_pop_that_another_leader_answered_first_go_back_after_two_heartbeats(stage: Stage) -> None:
    (pod,) = stage.add("a")
    stage.pop(pop_id="answered by both")
    beat = SessionHeartbeat(session="s", last_pop="answered by both")
    stage.leader.heartbeat(beat, stage.now)
    assert pod.pool == "inFlight", "a done may be under way"
    stage.leader.heartbeat(beat, stage.now)
    assert pod.pool == "activeQ"


def test_attempts_of_an_answer_that_is_still_under_way_stay(stage: Stage) -> None:
    (pod,) = stage.add("a")
    stage.pop(pop_id="under way")
    for _ in range(5):
        stage.leader.heartbeat(SessionHeartbeat(session="s", last_pop=""), stage.now)
    assert pod.pool == "inFlight"


def test_a_heartbeat_names_attempts_that_are_not_open(stage: Stage) -> None:
    reply = stage.leader.heartbeat(SessionHeartbeat(session="new", attempts=("6-5",)), stage.now)
    assert (reply.refused, reply.unknown) == ("", ("6-5",))


def test_a_result_of_another_pod_under_the_same_id_is_not_taken_for_it(stage: Stage) -> None:
    """Two leaders may have had the same epoch for a moment, and given the same id to two pods."""
    (pod,) = stage.add("a")
    popped = stage.take()
    other = msgspec.structs.replace(popped, name="b", uid="uid-b")
    reply = stage.done(other, "unschedulable", unschedulable_plugins=("NodeName",))
    assert (reply.unknown, pod.pool) == ((popped.attempt,), "inFlight")


# -- preemption and activation


def test_a_preemption_gates_and_activates_when_it_ends(stage: Stage) -> None:
    (pod,) = stage.add("a")
    popped = stage.take()
    who = PodRef(namespace="default", name="a", uid=pod.uid)
    stage.leader.preempting(PreemptingRequest(session="s", pod=who, running=True), stage.now)
    stage.queue.move_all(node_event("a"), stage.now)
    stage.done(popped, "unschedulable", unschedulable_plugins=("OnNodes",), nominated_node="n1")
    assert (pod.pool, pod.gating_plugin) == ("gated", "DefaultPreemption")
    stage.leader.preempting(PreemptingRequest(session="s", pod=who, running=False), stage.now)
    assert pod.pool == "activeQ"


def test_a_last_victim_that_is_going_opens_the_gate(stage: Stage) -> None:
    (pod,) = stage.add("a")
    popped = stage.take()
    who, victim = (PodRef(namespace="default", name=name, uid=f"uid-{name}") for name in ("a", "v"))
    stage.leader.preempting(PreemptingRequest(session="s", pod=who, running=True, victim=victim), stage.now)
    stage.going.add("uid-v")
    stage.queue.move_all(node_event("a"), stage.now)
    stage.done(popped, "unschedulable", unschedulable_plugins=("OnNodes",))
    assert pod.pool == "backoffQ"


def test_a_list_is_what_one_message_holds_and_a_count_of_the_rest() -> None:
    stage = Stage()
    for number in range(6000):
        pod = queued(f"p{number:04}")
        stage.queue.add(pod, 0.0)
        pod.message = "y" * 100_000 if number % 10 == 0 else "no node takes it: " + "x" * 700
    reply = listing.reply(stage.leader, QueueListRequest(limit=10_000), position=1, instance="q")
    assert len(codec.encode(reply)) < MAX_PAYLOAD_BYTES
    assert len(reply.pods) > 1000
    assert reply.left_out == 6000 - len(reply.pods)
    few = listing.reply(stage.leader, QueueListRequest(limit=10, name="p0007"), position=1, instance="q")
    assert ([pod.name for pod in few.pods], few.left_out) == (["p0007"], 0)
    none = listing.reply(stage.leader, QueueListRequest(limit=0), position=1, instance="q")
    assert (none.pods, none.left_out, none.counts["activeQ"]) == ((), 6000, 6000)


@pytest.mark.parametrize("how", ["in order", "in silence"])
def test_a_preemption_ends_with_its_session(stage: Stage, how: str) -> None:
    (pod,) = stage.add("a")
    popped = stage.take()
    who = PodRef(namespace="default", name="a", uid=pod.uid)
    stage.leader.preempting(PreemptingRequest(session="s", pod=who, running=True), stage.now)
    stage.queue.move_all(node_event("a"), stage.now)
    stage.done(popped, "unschedulable", unschedulable_plugins=("OnNodes",))
    assert pod.pool == "gated"
    if how == "in order":
        stage.over("s")
    else:
        stage.now += 11
        stage.leader.tick(stage.now)
    assert pod.pool == "activeQ"


def test_activate_moves_parked_pods_without_asking_hints(stage: Stage) -> None:
    pod = stage.park("a", "OnNodes")
    ref = PodRef(namespace="default", name="a", uid=pod.uid)
    stage.leader.activate(ActivateRequest(session="s", pods=(ref,)), stage.now)
    assert pod.pool == "activeQ"
    assert pod.woken_by is not None
    assert pod.woken_by.event == "ForceActivate"


# -- list


def test_list_says_what_is_where(stage: Stage) -> None:
    stage.park("parked", "OnNodes")
    stage.add("bound")
    stage.done(stage.take(), "scheduled", node="n1")
    stage.add("flying", "waiting")
    stage.take()
    reply = listing.reply(stage.leader, QueueListRequest(), position=9, instance="q")
    assert {pod.name: pod.pool for pod in reply.pods} == {
        "waiting": "activeQ",
        "parked": "unschedulable",
        "flying": "inFlight",
        "bound": "binding",
    }
    assert reply.counts["unschedulable"] == 1
    assert reply.sessions == {"s": 2}
    binding = next(pod for pod in reply.pods if pod.name == "bound")
    assert binding.until == stage.now + 30
    only = listing.reply(stage.leader, QueueListRequest(pool="inFlight", limit=1), position=9, instance="q")
    assert [(pod.name, pod.session) for pod in only.pods] == [("flying", "s")]


def test_events_during_binding_reach_nobody(stage: Stage) -> None:
    stage.add("a")
    stage.done(stage.take(), "scheduled", node="n1")
    stage.queue.move_all(pod_event("a"), stage.now)
    assert [effect for effect in stage.queue.take_effects() if isinstance(effect, Judged)] == []


def labelled(pod: Pod, *labels: str) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, labels=dict.fromkeys(labels, ""))
    return msgspec.structs.replace(pod, metadata=metadata)


def nominated(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node))
