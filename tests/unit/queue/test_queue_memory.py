"""What the queue keeps of what comes from outside has bounds."""

import prometheus_client

from podyard.cluster.view import ClusterView
from podyard.framework import events
from podyard.framework.event_registry import EVENTS_BYTES, EventRegistry
from podyard.framework.events import ClusterEvent
from podyard.proto.actions import ActionType
from podyard.proto.queue_api import PoppedPod, PopReply
from podyard.queue import instruments
from podyard.queue.core import attempts, gates
from podyard.queue.core.attempts import Session, Sessions
from podyard.queue.core.effects import Judged, Skip
from podyard.queue.core.gates import PreemptionGate
from podyard.queue.core.hints import Hints
from podyard.queue.core.in_flight import DECODED, EVENT_BYTES, MOST_BYTES, InFlight
from podyard.queue.core.messages import Incoming
from podyard.telemetry.tracing import Spans
from tests.support import objects, stored
from tests.support.stream import ClusterStream

LONG = "x" * 200


def test_events_for_pods_in_flight_are_bounded_and_those_who_miss_some_are_tried_again() -> None:
    in_flight = InFlight(most=10)
    in_flight.start("early")
    for number in range(11):
        in_flight.record(Incoming(event=events.NODE_ADD, id=str(number)))
    in_flight.start("late")
    in_flight.record(Incoming(event=events.NODE_ADD, id="after"))
    assert next(one.event.label for one in in_flight.events_for("early")) == events.RETRY_ALL.label
    assert [one.id for one in in_flight.events_for("early")] == ["", *map(str, range(5, 11)), "after"]
    assert [one.id for one in in_flight.events_for("late")] == ["after"]


def test_events_for_pods_in_flight_are_bounded_in_bytes() -> None:
    in_flight, large = InFlight(), 1_500_000
    in_flight.start("early")
    for number in range(200):
        in_flight.record(Incoming(event=events.NODE_ADD, id=str(number), bytes=large))
        assert in_flight._bytes <= MOST_BYTES
    kept = [one.id for one in in_flight.events_for("early")]
    assert kept[0] == "", "it is tried again, whatever came"
    assert kept[1:] == [str(number) for number in range(201 - len(kept), 200)]
    assert MOST_BYTES // 2 // large // DECODED <= len(kept) <= MOST_BYTES // large // DECODED + 1
    assert in_flight._bytes == sum(EVENT_BYTES + DECODED * large for _ in kept[1:])
    in_flight.done("early")
    assert in_flight._bytes == 0


def test_an_event_that_is_larger_than_all_that_may_be_kept_is_not_kept() -> None:
    in_flight = InFlight(most_bytes=10_000)
    in_flight.start("early")
    in_flight.record(Incoming(event=events.NODE_ADD, bytes=10_000))
    assert [one.event.label for one in in_flight.events_for("early")] == [events.RETRY_ALL.label]
    assert in_flight._bytes == 0


def test_events_weigh_what_their_objects_take_in_the_stream() -> None:
    """Facts and placements are about objects that the view has."""
    view, stream = ClusterView(), ClusterStream(lambda: 1000.0)
    view.begin_listing()
    view.end_listing(0)
    node = objects.node("n", labels={"long": "x" * 5_000})
    for written in (stored.version("nodes", node), stored.marker("nodes", node)):
        before = stream.last
        stream.put(written)
        [delivery] = stream.after(before)
        [change] = view.apply(delivery)
        assert change.origin.bytes == len(written.payload) > 5_000


def test_answers_and_dead_sessions_are_bounded_in_bytes() -> None:
    sessions, session = Sessions(1.0), Session("s", 0.0)
    pods = tuple(PoppedPod(namespace="n", name=LONG, uid=f"u{one}", attempt="1-1", number=1) for one in range(256))
    for number in range(40):
        session.answered(f"{LONG}{number}", PopReply(epoch=1, pods=pods))
    assert session.replies.bytes <= attempts.KEPT_POPS_BYTES
    assert session.replies.get(f"{LONG}39") is not None
    assert len(session.replies) >= 4
    for number in range(3000):
        sessions.heard(f"{LONG}{number}", 0.0)
    sessions.expire(10.0)
    assert sessions._dead.bytes <= attempts.KEPT_DEAD_BYTES
    assert sessions.heard(f"{LONG}2999", 20.0) is None


def test_ended_preemptions_are_bounded_in_bytes() -> None:
    gate = PreemptionGate(lambda uid: False)
    for number in range(3000):
        gate.end("u", f"{LONG}{number}")
    assert gate._ended.bytes <= gates.KEPT_ENDED_BYTES
    gate.start("u", attempt=f"{LONG}2999")
    assert not gate.of_session("")


def test_who_listens_to_events_of_made_up_kinds_is_remembered_within_a_bound() -> None:
    registry = EventRegistry({"P": ()})
    hints = Hints({"default": registry}, lambda: 0.0)
    for number in range(3000):
        hints.watchers(ClusterEvent(f"things.v1.{LONG}{number}.example.com", ActionType.ADD))
    assert hints._listeners.bytes <= EVENTS_BYTES
    assert hints._watchers.bytes <= EVENTS_BYTES
    assert registry._matching.bytes <= EVENTS_BYTES


def test_events_of_made_up_kinds_share_one_counter() -> None:
    registry = prometheus_client.CollectorRegistry()
    counters = instruments.Instruments(registry, Spans())
    for number in range(instruments.MOST_EVENTS + 50):
        event = ClusterEvent(f"things.v1.group-{number}.example.com", ActionType.ADD)
        counters.judged(
            Judged(incoming=Incoming(event=event), at=0.0, moved=(), skipped=(Skip(pods=(), count=1, calls=()),))
        )
    [skips] = [family for family in registry.collect() if family.name == "podyard_queue_skips"]
    found = {sample.labels["event"]: sample.value for sample in skips.samples if sample.name.endswith("_total")}
    assert (len(found), found[instruments.OTHERS]) == (instruments.MOST_EVENTS + 1, 50)
