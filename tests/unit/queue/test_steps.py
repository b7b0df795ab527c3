"""The queue's core as its shell meets it: messages in, effects out, one time at which it wants to be told."""

from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

from podyard.cluster.changes import Change, Origin
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.framework import events
from podyard.framework.events import ClusterEvent
from podyard.plugins.defaults import default_profile
from podyard.proto.actions import ActionType
from podyard.proto.decisions import AttemptRecord
from podyard.proto.message import PodRef
from podyard.proto.queue_api import (
    ActivateRequest,
    AttemptResult,
    DoneRequest,
    PoppedPod,
    PopReply,
    PopRequest,
    QueueListReply,
    QueueListRequest,
    QueueReply,
    SessionHeartbeat,
)
from podyard.queue import assembly
from podyard.queue.core import effects, messages
from podyard.queue.core.effects import Effect
from podyard.queue.core.messages import Message
from podyard.queue.core.queue import FLUSH_UNSCHEDULABLE_EVERY_S, Phase
from podyard.queue.core.recorded import PURGE_AGAIN_S
from podyard.queue.core.requests import MOST_TERMS
from podyard.queue.settings import QueueSettings
from tests.support import objects
from tests.unit.queue.test_changes import view

E = TypeVar("E", bound=Effect)
EPOCH = 7
LINGER_S = QueueSettings().pop_linger_s
PROFILE = default_profile()
REGISTERED = assembly.registries([PROFILE])


class Play:
    """One core, a view that changes as the play wants, and a time that the play sets."""

    def __init__(self, *pods: PodView, begun: bool = True, **begin: Any) -> None:
        self.now = 1000.25
        self.view = ClusterView()
        self.view.begin_listing()
        self.view.end_listing(9)
        for pod in pods:
            self.view.pods_by_uid[pod.uid] = pod
        self.core = assembly.build_queue(
            [PROFILE],
            REGISTERED,
            QueueSettings(session_timeout_s=10_000.0),
            epoch=EPOCH,
            view=self.view,
            instance="q1",
            new_trace=lambda keep: "",
            timer=lambda: 0.0,
        )
        self.sequence = 10
        self.tickets = 0
        self.begin = messages.Begin(begin.get("records", {}), begin.get("nominated", ()))
        self.at_first: Sequence[Effect] = self.step(self.begin) if begun else ()

    def step(self, message: Message) -> Sequence[Effect]:
        return self.core.step(message, self.now)

    def ask(self, request: messages.Request, set_aside: str = "") -> Sequence[Effect]:
        self.tickets += 1
        return self.step(messages.Asked(self.tickets, request, set_aside))

    def pop(self, pop_id: str = "", **more: Any) -> Sequence[Effect]:
        request = PopRequest(
            session="s", pop_id=pop_id or f"pop{self.tickets}", digests={PROFILE.name: PROFILE.digest}, **more
        )
        return self.ask(request)

    def appear(self, *names: str) -> Sequence[Effect]:
        """Pods are made."""
        changes = list[Change]()
        for name in names:
            pod = view(name)
            self.sequence += 1
            self.view.pods_by_uid[pod.uid] = pod
            changes.append(Change("pods", pod.uid, None, pod, Origin(self.sequence)))
        return self.step(messages.Changed(changes))

    def vanish(self, name: str) -> Sequence[Effect]:
        """A pod's object is deleted."""
        pod = self.view.pods_by_uid.pop(f"uid-{name}")
        self.sequence += 1
        return self.step(messages.Changed([Change("pods", pod.uid, pod, None, Origin(self.sequence))]))

    def done(self, pod: PoppedPod, outcome: Any, **more: Any) -> Sequence[Effect]:
        result = AttemptResult(
            namespace=pod.namespace, name=pod.name, uid=pod.uid, attempt=pod.attempt, outcome=outcome, **more
        )
        return self.ask(DoneRequest(session="s", results=(result,)))

    def pass_until(self, end: float) -> list[Effect]:
        """Time passes; the core is told when it wants to be."""
        found = list[Effect]()
        while (due := self.core.wake_at) is not None and due <= end:
            assert due >= self.now, "it wants to be told of what is over"
            self.now = due
            found += self.step(messages.Tick())
            assert self.core.wake_at is None or self.core.wake_at > due, "told, it waits for something else"
        self.now = end
        return found


def of(kind: type[E], wanted: Sequence[Effect]) -> list[E]:
    return [one for one in wanted if isinstance(one, kind)]


def popped(wanted: Sequence[Effect]) -> list[tuple[int, list[str]]]:
    """Answers to pops: ticket, names."""
    return [
        (one.ticket, [pod.name for pod in one.reply.pods])
        for one in of(effects.Reply, wanted)
        if isinstance(one.reply, PopReply)
    ]


def taken(wanted: Sequence[Effect]) -> PoppedPod:
    """The pod that a pop got."""
    [reply] = of(effects.Reply, wanted)
    assert isinstance(reply.reply, PopReply)
    [pod] = reply.reply.pods
    return pod


@pytest.fixture
def play() -> Play:
    return Play()


# ---- pops that wait


def test_a_pop_that_finds_pods_is_answered_at_once_with_how_far_the_queue_has_read(play: Play) -> None:
    play.appear("a", "b")
    wanted = play.pop()
    assert popped(wanted) == [(1, ["a", "b"])]
    reply = of(effects.Reply, wanted)[0].reply
    assert isinstance(reply, PopReply)
    assert (reply.epoch, reply.position) == (EPOCH, 9)


def test_a_pop_that_finds_nothing_waits_for_pods_and_then_a_little_for_more(play: Play) -> None:
    assert not play.pop(wait_s=5.0)
    play.now += 0.5
    assert popped(play.appear("a")) == []
    assert play.core.wake_at == play.now + LINGER_S
    play.now += LINGER_S / 2
    assert popped(play.appear("b")) == []
    assert popped(play.pass_until(play.now + LINGER_S / 2)) == [(1, ["a", "b"])]
    assert popped(play.pass_until(play.now + 10)) == [], "answered once"


def test_a_pop_for_which_nothing_comes_is_told_so_at_its_deadline_and_not_before(play: Play) -> None:
    play.pop(wait_s=0.3)
    assert play.core.wake_at == play.now + 0.3
    assert popped(play.pass_until(play.now + 0.29)) == []
    assert popped(play.pass_until(play.now + 0.01)) == [(1, [])]


def test_who_waits_the_longest_gets_the_first_pods_and_the_rest_wait_on(play: Play) -> None:
    play.pop("first", wait_s=5.0, max_pods=1)
    play.pop("second", wait_s=5.0, max_pods=1)
    play.pop("third", wait_s=5.0, max_pods=1)
    play.appear("a", "b")
    assert popped(play.pass_until(play.now + LINGER_S)) == [(1, ["a"]), (2, ["b"])]
    play.appear("c")
    assert popped(play.pass_until(play.now + LINGER_S)) == [(3, ["c"])]


def test_a_pop_that_comes_while_others_linger_takes_the_pods_and_they_wait_on(play: Play) -> None:
    play.pop("waits", wait_s=5.0)
    play.appear("a")
    assert popped(play.pop("comes")) == [(2, ["a"])]
    assert popped(play.pass_until(play.now + 1)) == []
    play.appear("b")
    assert popped(play.pass_until(play.now + LINGER_S)) == [(1, ["b"])]


def test_a_pop_that_is_asked_again_while_it_waits_gets_the_same_pods_twice(play: Play) -> None:
    play.pop("same", wait_s=5.0)
    play.pop("same", wait_s=5.0)
    play.appear("a")
    assert popped(play.pass_until(play.now + LINGER_S)) == [(1, ["a"]), (2, ["a"])]


def test_a_session_that_ends_in_order_gets_no_pods_by_its_pop_that_waits(play: Play) -> None:
    play.pop("waits", wait_s=5.0)
    play.appear("a")
    over = play.ask(SessionHeartbeat(session="s", over=True))
    assert [one.reply for one in of(effects.Reply, over)] == [QueueReply(epoch=EPOCH)]
    assert play.core.wake_at == play.now, "it is answered at once"
    assert popped(play.pass_until(play.now)) == [(1, [])]
    assert play.core.counts()["activeQ"] == 1


def test_a_backoff_that_ends_answers_a_pop_that_waits(play: Play) -> None:
    play.appear("a")
    play.done(taken(play.pop()), "error")
    began = play.now
    ticket = play.tickets + 1
    play.pop(wait_s=10.0)
    assert popped(play.pass_until(began + 4)) == [(ticket, ["a"])]


# ---- epochs and what is set aside


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(PopRequest(session="s", pop_id="p", epoch=EPOCH + 1), id="pop"),
        pytest.param(SessionHeartbeat(session="s", epoch=EPOCH + 1), id="heartbeat"),
        pytest.param(DoneRequest(session="s", results=(), epoch=EPOCH + 1), id="done"),
    ],
)
def test_who_knows_of_a_higher_epoch_ends_the_term_without_an_answer(play: Play, request_: messages.Request) -> None:
    play.pop("waits", wait_s=1.0)
    assert play.ask(request_, "setAside") == [effects.StepDown(EPOCH + 1)]
    assert play.core.phase is Phase.OVER
    assert play.core.wake_at is None
    assert play.appear("a") == ()
    assert play.pop() == ()


def test_an_epoch_that_nobody_can_have_had_is_an_error_of_who_asks(play: Play) -> None:
    [declined] = play.ask(SessionHeartbeat(session="s", epoch=EPOCH + MOST_TERMS + 1))
    assert isinstance(declined, effects.Declined)
    assert "was never a leader's" in declined.reason
    assert play.core.phase is Phase.LEADING


def test_what_is_set_aside_is_refused_and_changes_nothing(play: Play) -> None:
    play.appear("a")
    pod = taken(play.pop("p"))
    [pop] = play.ask(PopRequest(session="s", pop_id="p"), "it raised")
    assert isinstance(pop, effects.Reply)
    assert pop.reply == PopReply(epoch=EPOCH, refused="it raised")
    result = AttemptResult(namespace="default", name="a", uid=pod.uid, attempt=pod.attempt, outcome="error")
    [done] = play.ask(DoneRequest(session="s", results=(result,)), "it raised")
    assert isinstance(done, effects.Reply)
    assert done.reply == QueueReply(epoch=EPOCH, refused="it raised")
    [listed] = play.ask(QueueListRequest(), "it raised")
    assert listed == effects.Declined(play.tickets, "it raised")
    assert play.core.counts()["inFlight"] == 1


# ---- begin, and records


def test_nothing_is_done_and_nothing_is_wanted_before_the_term_begins() -> None:
    play = Play(view("there"), begun=False)
    assert play.core.wake_at is None
    assert (play.appear("a"), play.pop(), play.step(messages.Tick()), play.step(messages.Listed("x"))) == ((),) * 4
    assert of(effects.Began, play.step(play.begin)) == [effects.Began(2)]
    assert play.step(play.begin) == (), "a term begins once"


def test_what_earlier_leaders_left_of_pods_that_are_gone_is_taken_away() -> None:
    gone = PodRef(namespace="default", name="gone", uid="uid-gone")
    there = PodRef(namespace="default", name="there", uid="uid-there")
    records = {
        one.uid: AttemptRecord(
            namespace=one.namespace, name=one.name, uid=one.uid, attempt="6-1", outcome="error", number=1, at=1.0
        )
        for one in (gone, there)
    }
    play = Play(view("there"), records=records, nominated=(gone, there))
    assert of(effects.Purge, play.at_first) == [effects.Purge(gone)]
    assert of(effects.NominationOver, play.at_first) == [effects.NominationOver(gone)]
    assert of(effects.Purge, play.pass_until(play.now + PURGE_AGAIN_S + 1)) == [effects.Purge(gone)]
    assert of(effects.Purge, play.vanish("there")) == [effects.Purge(there)]


def test_records_of_a_deleted_pod_go_at_once_and_again_when_late_ones_are_stored(play: Play) -> None:
    play.appear("a", "never tried")
    play.done(taken(play.pop(max_pods=1)), "error")
    ref = PodRef(namespace="default", name="a", uid="uid-a")
    wanted = play.vanish("a")
    assert of(effects.PodGone, wanted) == [effects.PodGone(ref)]
    assert of(effects.Purge, wanted) == [effects.Purge(ref)]
    assert of(effects.Purge, play.pass_until(play.now + PURGE_AGAIN_S - 1)) == []
    assert of(effects.Purge, play.pass_until(play.now + 2)) == [effects.Purge(ref)]
    assert of(effects.Purge, play.vanish("never tried")) == []


def test_an_attempt_that_ends_after_its_pod_was_deleted_leaves_no_record(play: Play) -> None:
    play.appear("a")
    pod = taken(play.pop())
    assert of(effects.Purge, play.vanish("a")) == []
    assert [one.pod.name for one in of(effects.Purge, play.done(pod, "error"))] == ["a"]


# ---- events and time


def test_a_bare_event_counts_once() -> None:
    play = Play()
    play.appear("a")
    play.done(taken(play.pop()), "unschedulable", unschedulable_plugins=("TaintToleration",))
    tainted = objects.typed_node("n", taints=[{"key": "x", "effect": "NoSchedule"}])
    event = messages.Incoming(
        event=ClusterEvent(events.NODE, ActionType.UPDATE_NODE_TAINT), old=tainted, new=tainted, id="bare-1"
    )
    assert len(of(effects.Judged, play.step(messages.Happened("1", [event])))) == 1
    assert of(effects.Judged, play.step(messages.Happened("1", [event]))) == []


def test_a_listing_puts_right_what_was_missed_says_so_and_retries_everybody(play: Play) -> None:
    play.appear("a")
    play.done(taken(play.pop()), "unschedulable", unschedulable_plugins=("NodeAffinity",))
    play.view.pods_by_uid["uid-b"] = view("b")
    wanted = play.step(messages.Listed("a gap"))
    assert of(effects.Differed, wanted) == [effects.Differed(1)]
    [judged] = of(effects.Judged, wanted)
    assert [(move.name, move.from_) for move in judged.moved] == [("a", "unschedulable")]
    assert judged.incoming.why == "the queue has listed the cluster again: a gap"
    assert taken(play.pop(max_pods=1)).name == "b"


def test_the_safety_flush_comes_by_itself(play: Play) -> None:
    play.appear("a")
    play.done(taken(play.pop()), "unschedulable", unschedulable_plugins=("NodeAffinity",))
    began = play.now
    assert of(effects.Judged, play.pass_until(began + 300)) == []
    moved = [move for one in of(effects.Judged, play.pass_until(began + 331)) for move in one.moved]
    assert [move.name for move in moved] == ["a"]
    assert FLUSH_UNSCHEDULABLE_EVERY_S == 30.0


def test_everything_that_is_asked_is_answered_once_at_once(play: Play) -> None:
    play.appear("a")
    pod = PodRef(namespace="default", name="a", uid="uid-a")
    for request in (
        SessionHeartbeat(session="s"),
        ActivateRequest(session="s", pods=(pod,)),
        QueueListRequest(),
        messages.Would("default", "a", ()),
    ):
        [reply] = of(effects.Reply, play.ask(request))
        assert reply.ticket == play.tickets
    [listed] = of(effects.Reply, play.ask(QueueListRequest()))
    assert isinstance(listed.reply, QueueListReply)
    assert (listed.reply.leader, listed.reply.position, listed.reply.counts["activeQ"]) == ("q1", 9, 1)
