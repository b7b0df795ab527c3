"""What comes from outside has bounds: the refusal names the field and the bound."""

from typing import Any

import msgspec
import pytest

from podyard.proto import actions, bounds, codec, events
from podyard.proto.binder_api import BindRequest
from podyard.proto.codec import MessageError
from podyard.proto.events import BareEvent
from podyard.proto.facts import NodeStatusFact, PodStatusFact
from podyard.proto.objects_api import ApplyRequest, DeleteRequest, EvictRequest, RevealRequest
from podyard.proto.queue_api import (
    ActivateRequest,
    DoneRequest,
    PopRequest,
    PreemptingRequest,
    QueueListRequest,
    SessionHeartbeat,
    WouldRequest,
)
from podyard.proto.scheduler_api import WouldGoRequest
from podyard.proto.signals import NodeSignals

LONG = "x" * 254
HUGE = 10**30
EVENT = {"id": "e", "resource": "Node", "actions": ["Update"], "who": "me", "old": None, "new": None}
POD = {"namespace": "d", "name": "a", "uid": "u"}
RESULT = {**POD, "attempt": "1-1", "outcome": "unschedulable"}
STATUS = {**POD, "node": "n", "phase": "Running"}
DECISION = {**POD, "attempt": "1-1", "node": "n", "number": 1, "position": 1}
CONDITION = {"type": "Ready", "status": "True"}
POINT = {"afterS": 1, "amount": 1}
SIGNAL = {"available": 1, "capacity": 1}


def many(count: int, item: Any) -> list[Any]:
    return [item] * count


@pytest.mark.parametrize(
    ("message", "fields", "path", "bound"),
    [
        (BareEvent, EVENT | {"actions": many(20_000, "Add")}, "$.actions", "length <= 15"),
        (BareEvent, EVENT | {"actions": [LONG]}, "$.actions[0]", "length <= 253"),
        (BareEvent, EVENT | {"resource": "x" * 513}, "$.resource", "length <= 512"),
        (BareEvent, EVENT | {"why": "x" * 1025}, "$.why", "length <= 1024"),
        (
            WouldRequest,
            {"namespace": "d", "name": "a", "event": EVENT | {"actions": many(20_000, "Add")}},
            "$.event.actions",
            "length <= 15",
        ),
        (WouldRequest, {"namespace": LONG, "name": "a", "event": EVENT}, "$.namespace", "length <= 253"),
        (WouldGoRequest, {"pod": None, "namespace": "d", "name": LONG}, "$.name", "length <= 253"),
        (WouldGoRequest, {"pod": None, "namespace": "d", "name": "a", "limit": 10_001}, "$.limit", "<= 10000"),
        (WouldGoRequest, {"pod": None, "namespace": "d", "name": "a", "position": -1}, "$.position", ">= 0"),
        (PopRequest, {"session": LONG, "popId": "1"}, "$.session", "length <= 253"),
        (PopRequest, {"session": "s", "popId": LONG}, "$.popId", "length <= 253"),
        (
            PopRequest,
            {"session": "s", "popId": "1", "digests": {str(at): "" for at in range(65)}},
            "$.digests",
            "length <= 64",
        ),
        (PopRequest, {"session": "s", "popId": "1", "epoch": HUGE}, "$.epoch", "<= 9223372036854775807"),
        (PopRequest, {"session": "s", "popId": "1", "maxPods": HUGE}, "$.maxPods", "<= 256"),
        (PopRequest, {"session": "s", "popId": "1", "waitS": 1e300}, "$.waitS", "<= 10"),
        (SessionHeartbeat, {"session": "s", "attempts": many(65_537, "1")}, "$.attempts", "length <= 65536"),
        (DoneRequest, {"session": "s", "results": [RESULT | {"node": LONG}]}, "$.results[0].node", "length <= 253"),
        (
            DoneRequest,
            {"session": "s", "results": [RESULT | {"unschedulablePlugins": many(257, "p")}]},
            "$.results[0].unschedulablePlugins",
            "length <= 256",
        ),
        (ActivateRequest, {"pods": [POD | {"uid": LONG}]}, "$.pods[0].uid", "length <= 253"),
        (
            PreemptingRequest,
            {"session": "s", "pod": POD | {"name": LONG}, "running": True},
            "$.pod.name",
            "length <= 253",
        ),
        (QueueListRequest, {"name": LONG}, "$.name", "length <= 253"),
        (QueueListRequest, {"limit": -1}, "$.limit", ">= 0"),
        (BindRequest, {"session": LONG, "decisions": []}, "$.session", "length <= 253"),
        (
            BindRequest,
            {"session": "s", "decisions": [DECISION | {"name": LONG}]},
            "$.decisions[0].name",
            "length <= 253",
        ),
        (
            BindRequest,
            {"session": "s", "decisions": [DECISION | {"position": -1}]},
            "$.decisions[0].position",
            ">= 0",
        ),
        (ApplyRequest, {"objects": many(257, {})}, "$.objects", "length <= 256"),
        (ApplyRequest, {"objects": [], "who": "x" * 1025}, "$.who", "length <= 1024"),
        (DeleteRequest, {"objects": [], "gracePeriodS": -1}, "$.gracePeriodS", ">= 0"),
        (RevealRequest, {"secrets": many(257, {"resource": "secrets", "name": "a"})}, "$.secrets", "length <= 256"),
        (ApplyRequest, {"objects": [], "validation": "lax"}, "$.validation", "Invalid enum value 'lax'"),
        (EvictRequest, {"pods": [], "gracePeriodS": HUGE}, "$.gracePeriodS", "<= 9223372036854775807"),
        (NodeSignals, {"node": "n", "singleImages": many(1_001, {"name": "a"})}, "$.singleImages", "length <= 1000"),
        (NodeSignals, {"node": LONG}, "$.node", "length <= 253"),
        (NodeSignals, {"node": "n", "signals": {"m": SIGNAL | {"capacity": HUGE}}}, "", "<= 9223372036854775807"),
        (NodeSignals, {"node": "n", "signals": {"m": SIGNAL | {"available": -HUGE}}}, "", ">= -9223372036854775808"),
        (NodeSignals, {"node": "n", "courses": [{"points": []}]}, "$.courses[0].points", "length >= 1"),
        (NodeSignals, {"node": "n", "courses": [{"points": many(1001, POINT)}]}, "$.courses[0].points", "<= 1000"),
        (
            NodeSignals,
            {"node": "n", "courses": [{"points": [{"afterS": -1}]}]},
            "$.courses[0].points[0].afterS",
            ">= 0",
        ),
        (
            NodeSignals,
            {"node": "n", "signals": {str(at): SIGNAL for at in range(65)}},
            "$.signals",
            "length <= 64",
        ),
        (
            NodeSignals,
            {"node": "n", "pods": many(10_001, {"namespace": "d", "name": "a"})},
            "$.pods",
            "length <= 10000",
        ),
        (NodeSignals, {"node": "n", "failing": many(6, {"what": "kill", "why": "w"})}, "$.failing", "length <= 5"),
        (NodeSignals, {"node": "n", "failing": [{"what": "wish", "why": "w"}]}, "$.failing[0].what", "'wish'"),
        (NodeSignals, {"node": "n", "failing": [{"what": "kill", "why": ""}]}, "$.failing[0].why", "length >= 1"),
        (NodeSignals, {"node": "n", "at": -1}, "$.at", ">= 0"),
        (NodeSignals, {"node": "n", "at": 1e300}, "$.at", f"<= {bounds.LAST_S}"),
        (PodStatusFact, STATUS | {"name": LONG}, "$.name", "length <= 253"),
        (PodStatusFact, STATUS | {"conditions": many(257, CONDITION)}, "$.conditions", "length <= 256"),
        (PodStatusFact, STATUS | {"startTime": "x" * 65}, "$.startTime", "length <= 64"),
        (NodeStatusFact, {"node": LONG}, "$.node", "length <= 253"),
        (
            NodeStatusFact,
            {"node": "n", "taints": many(257, {"key": "a", "effect": "NoSchedule"})},
            "$.taints",
            "length <= 256",
        ),
        (
            NodeStatusFact,
            {"node": "n", "taints": [{"key": "a", "effect": "NoSchedule", "value": "x" * 64}]},
            "$.taints[0].value",
            "length <= 63",
        ),
        (
            NodeStatusFact,
            {"node": "n", "conditions": [CONDITION | {"reason": "x" * 1025}]},
            "$.conditions[0].reason",
            "length <= 1024",
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else value if isinstance(value, str) else "",
)
def test_beyond_a_bound(message: type[msgspec.Struct], fields: dict[str, Any], path: str, bound: str):
    with pytest.raises(MessageError) as caught:
        codec.decode(message, msgspec.json.encode(fields))
    assert bound in caught.value.reason
    assert f"`{path}`" in caught.value.reason or not path


def test_a_bare_event_may_have_every_action():
    names = [*actions.NAMES, *actions.COMPOSITES]
    assert len(names) == events.MOST_ACTIONS
    assert codec.decode(BareEvent, msgspec.json.encode(EVENT | {"actions": names})).actions == tuple(names)
