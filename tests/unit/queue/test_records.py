"""Effects as records, and bare events as events."""

import json
from typing import Any

import msgspec
import pytest

from podyard.objects.core import Node
from podyard.proto import codec
from podyard.proto.codec import MessageError
from podyard.proto.events import BareEvent
from podyard.queue import bare_events, records
from podyard.queue.core.effects import Gated, Judged
from podyard.queue.core.messages import Incoming
from podyard.queue.core.once import REMEMBERED_BYTES, Once
from tests.unit.queue.play import new_queue, node_event, park, queued


def judged(pods: int, *helped: str) -> Judged:
    queue = new_queue()
    for n in range(pods):
        park(queue, f"p{n}", "OnNodes")
    queue.move_all(node_event(*helped, id="77", object_name="n", position=77, who="me", why="a test"), 60.0)
    (effect,) = queue.take_effects()
    assert isinstance(effect, Judged)
    return effect


def test_a_record_names_moved_and_skipped_pods_with_reasons() -> None:
    record = records.requeue_record(judged(2, "p1"))
    assert (record.event_id, record.event, record.object, record.position) == ("77", "NodeAdd", "n", 77)
    assert [(move.name, move.from_, move.to, move.plugin) for move in record.moved] == [
        ("p1", "unschedulable", "activeQ", "OnNodes")
    ]
    assert [(skip.name, skip.hints[0].reason) for skip in record.skipped] == [("p0", "n does not help p0")]


def test_up_to_256_skipped_pods_are_named_above_that_they_are_counted() -> None:
    assert len(records.requeue_record(judged(256)).skipped) == 256
    record = records.requeue_record(judged(257))
    assert record.skipped == ()
    assert sum(count.pods for count in record.skipped_counts) == 257
    codec.decode(type(record), codec.encode(record))


def test_a_pod_that_was_in_flight_has_a_record_of_its_own() -> None:
    effect = msgspec.structs.replace(judged(1), attempt="7-3")
    assert records.requeue_record(effect).event_id == "77-7-3"


def test_pods_that_come_back_together_share_a_record_for_each_event() -> None:
    """A hundred pods in flight and four events were 400 messages."""
    queue, names = new_queue(), [f"p{number}" for number in range(100)]
    for number, name in enumerate(names):
        queue.add(queued(name), 1.0)
        popped = queue.pop()
        assert popped is not None
        popped.attempt = f"7-{number}"
    for event in range(4):
        queue.move_all(node_event("p7" if event == 3 else "nobody", id=str(event), object_name="n"), 60.0)
    queue.take_effects()
    for name in names:
        queue.fail(f"uid-{name}", 70.0, unschedulable=["OnNodes"])
    judgements = [effect for effect in queue.take_effects() if isinstance(effect, Judged)]
    assert len(judgements) == 400
    found = [records.requeue_record(judgement) for judgement in records.merged(judgements)]
    assert [record.event_id for record in found] == ["0-7-0", "1-7-0", "2-7-0", "3-7-0"]
    assert [[move.name for move in record.moved] for record in found] == [[], [], [], ["p7"]]
    for record in found:
        told = {skip.name for skip in record.skipped} | {move.name for move in record.moved}
        assert told == set(names), "explain finds every pod"


def test_a_merged_record_names_all_its_skipped_pods_and_parked_pods_have_their_own() -> None:
    one = judged(1)
    skips = [msgspec.structs.replace(one, attempt=f"7-{number}") for number in range(300)]
    found = [records.requeue_record(judgement) for judgement in records.merged([one, *skips])]
    assert [(record.event_id, len(record.skipped)) for record in found] == [
        ("77", 1),
        ("77-7-0", 256),
        ("77-7-256", 44),
    ]


def test_a_gated_pod_has_an_attempt_record_of_its_own_kind() -> None:
    pod = queued("p", 5.0)
    record = records.gated_record(Gated(pod=pod.ref, plugin="Gate", message="closed", at=6.0), 7)
    assert (record.outcome, record.number, record.message) == ("gated", 0, "closed")
    assert record.unschedulable_plugins == ("Gate",)
    codec.decode(type(record), codec.encode(record))


def bare(**more: Any) -> bytes:
    fields: dict[str, Any] = {"id": "x1", "resource": "Node", "actions": ("UpdateNodeTaint",), "who": "me"}
    fields |= {"old": None, "new": {"metadata": {"name": "n1"}}} | more
    raw = {key: msgspec.Raw(json.dumps(fields.pop(key)).encode()) for key in ("old", "new")}
    return codec.encode(BareEvent(**fields, **raw))


class BareEvents:
    """Messages as they come in, each id once: as `bare_events` reads them, and the core counts them."""

    def __init__(self) -> None:
        self.once = Once()

    def read(self, payload: bytes, trace: str) -> list[Incoming]:
        happened = bare_events.read(payload, trace)
        return list(happened.events) if self.once.is_new(happened.id) else []


def test_an_action_that_a_bare_event_names_again_is_one_event() -> None:
    """Pods in flight keep every event, and judge by each."""
    found = BareEvents().read(bare(actions=("UpdateNodeTaint", "UpdateNodeLabel") * 7), "t")
    assert [(one.event.label, one.id) for one in found] == [
        ("NodeUpdateNodeTaint", "bare-x1"),
        ("NodeUpdateNodeLabel", "bare1-x1"),
    ]


def test_a_bare_event_becomes_one_event_an_action_once() -> None:
    events = BareEvents()
    found = events.read(bare(actions=("UpdateNodeTaint", "UpdateNodeLabel")), "t")
    assert [(one.event.label, one.id) for one in found] == [
        ("NodeUpdateNodeTaint", "bare-x1"),
        ("NodeUpdateNodeLabel", "bare1-x1"),
    ]
    assert isinstance(found[0].new, Node)
    assert (found[0].object_name, found[0].trace, found[0].position) == ("n1", "t", 0)
    assert events.read(bare(), "t") == []


def test_no_bare_event_has_the_id_of_a_real_one_or_of_another() -> None:
    """Ids of real events are positions in the stream, `12` or `12-1`, or begin with what happened:
    `dropped-`, `session-`, `listed-`.
    """
    two = ("UpdateNodeTaint", "UpdateNodeLabel")
    names = ("12", "12-1", "1-12", "dropped-1")
    ids = [one.id for name in names for one in BareEvents().read(bare(id=name, actions=two), "")]
    assert all(one.startswith("bare") for one in ids)
    assert len(set(ids)) == len(ids)


def test_1024_ids_are_remembered() -> None:
    events = BareEvents()
    for n in range(1025):
        events.read(bare(id=f"id{n}"), "")
    assert events.read(bare(id="id1"), "") == []


def test_ids_that_are_remembered_stay_within_their_bound() -> None:
    events = BareEvents()
    for n in range(6000):
        events.read(bare(id=f"id{n}-{'x' * 60}"), "")
    assert events.once._seen.bytes <= REMEMBERED_BYTES
    assert len(events.read(bare(id=f"id0-{'x' * 60}"), "")) == 1
    assert events.read(bare(id=f"id5999-{'x' * 60}"), "") == []


def test_a_custom_resource_needs_no_more_code() -> None:
    (event,) = BareEvents().read(
        bare(resource="foos.v1.example.com", actions=("Add",), new={"metadata": {"name": "f", "namespace": "a"}}), ""
    )
    assert event.object_name == "a/f"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"actions": ("Explode",)}, r"no action is called 'Explode'.*actions\[0\]"),
        ({"resource": "Nonsense"}, "no event resource is called"),
        ({"new": {"metadata": {"name": 5}}}, r"\$.new"),
    ],
)
def test_a_bare_event_that_makes_no_sense_says_why(more, reason) -> None:
    with pytest.raises(MessageError, match=reason):
        BareEvents().read(bare(**more), "")
