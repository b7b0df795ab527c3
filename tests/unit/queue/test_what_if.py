"""What an event would do is what it then does; asking changes nothing."""

from typing import Any

import pytest

from podyard.proto.actions import ActionType
from podyard.queue.core import what_if
from podyard.queue.core.effects import Judged
from podyard.queue.core.scheduling_queue import SchedulingQueue
from tests.unit.queue.play import new_queue, node_event, park, pod_event, queued

KEY = ("default", "a")


def asked(queue: SchedulingQueue, incoming: Any, now: float) -> Any:
    pods = {uid: pod.pool for uid, pod in queue.pods.items()}
    reply = what_if.verdicts(queue, KEY, [incoming], now)
    assert {uid: pod.pool for uid, pod in queue.pods.items()} == pods
    assert not queue.take_effects()
    assert len(reply.verdicts) == 1
    return reply.verdicts[0]


@pytest.mark.parametrize("now", [0.5, 60.0], ids=["while it backs off", "afterwards"])
@pytest.mark.parametrize("helps", ["a", "b"])
def test_it_says_what_then_happens(helps: str, now: float):
    queue = new_queue()
    pod = park(queue, "a", "OnNodes", "Also")
    event = node_event(helps, action=ActionType.UPDATE_NODE_LABEL)
    told = asked(queue, event, now)
    queue.move_all(event, now)
    judged = queue.take_effects()[0]
    assert isinstance(judged, Judged)
    done: Any = judged.moved[0] if judged.moved else judged.skipped[0]
    assert told.moves == bool(judged.moved)
    assert told.to == (pod.pool if told.moves else "")
    assert [(call.plugin, call.answer, call.reason) for call in told.hints] == [
        (call.plugin, call.answer, call.reason) for call in (done.hints if told.moves else done.calls)
    ]


def test_who_is_not_asked_is_told_why():
    queue = new_queue()
    park(queue, "a", "OnNodes")
    assert asked(queue, pod_event("a"), 1.0).note == what_if.NOBODY_LISTENS
    queue.activate("uid-a", 60.0)
    queue.take_effects()
    assert asked(queue, node_event("a"), 60.0).note == what_if.TRIED_ANYWAY.format(pool="activeQ")
    queue.pop()
    assert asked(queue, node_event("a"), 60.0).note == what_if.IN_FLIGHT
    assert what_if.verdicts(queue, ("default", "nobody"), [node_event("a")], 60.0).pool == ""


def test_a_gated_pod_hears_its_gate_only():
    queue = new_queue()
    queue.add(queued("a", 0.0, "gate"), 0.0)
    queue.take_effects()
    assert asked(queue, node_event("a"), 1.0).note == what_if.GATED.format(plugin="Gate")
    assert [call.plugin for call in asked(queue, node_event("a", action=ActionType.DELETE), 1.0).hints] == ["Gate"]
