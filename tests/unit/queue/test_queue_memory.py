"""What the queue keeps of what comes from outside has bounds."""

import prometheus_client
import structlog

from podyard.bus import Outgoing
from podyard.framework import events
from podyard.framework.event_registry import EVENTS_BYTES, EventRegistry
from podyard.framework.events import ClusterEvent
from podyard.proto.actions import ActionType
from podyard.proto.queue_api import PoppedPod, PopReply
from podyard.queue import instruments, outbox
from podyard.queue.core import attempts, gates
from podyard.queue.core.attempts import Session, Sessions
from podyard.queue.core.effects import Incoming, Judged, Skip
from podyard.queue.core.gates import PreemptionGate
from podyard.queue.core.in_flight import InFlight
from podyard.queue.core.judge import Judge
from podyard.queue.outbox import Outbox

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


def test_records_that_wait_are_bounded_in_bytes() -> None:
    lost: list[int] = []
    box = Outbox(None, structlog.get_logger(), lost.append)  # type: ignore[arg-type]
    payload = bytes(4 * 1024 * 1024)
    for number in range(40):
        box.put(Outgoing(f"requeues.{number}", payload))
    assert box._bytes <= outbox.LIMIT_BYTES
    assert (len(box._waiting), len(lost)) == (15, 25)
    assert box._waiting[-1].subject == "requeues.39"


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
    judge = Judge({"default": registry}, lambda: 0.0)
    for number in range(3000):
        judge.listeners(ClusterEvent(f"things.v1.{LONG}{number}.example.com", ActionType.ADD))
    assert judge._listeners.bytes <= EVENTS_BYTES
    assert registry._matching.bytes <= EVENTS_BYTES


def test_events_of_made_up_kinds_share_one_counter() -> None:
    registry = prometheus_client.CollectorRegistry()
    counters = instruments.Instruments(registry)
    for number in range(instruments.MOST_EVENTS + 50):
        event = ClusterEvent(f"things.v1.group-{number}.example.com", ActionType.ADD)
        counters.judged(
            Judged(incoming=Incoming(event=event), at=0.0, moved=(), skipped=(Skip(pods=(), count=1, calls=()),))
        )
    [skips] = [family for family in registry.collect() if family.name == "podyard_queue_skips"]
    found = {sample.labels["event"]: sample.value for sample in skips.samples if sample.name.endswith("_total")}
    assert (len(found), found[instruments.OTHERS]) == (instruments.MOST_EVENTS + 1, 50)
