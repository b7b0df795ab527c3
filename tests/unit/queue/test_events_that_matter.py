"""Which events cause an attempt, with the real plugins where it depends on them."""

from typing import Any

from podyard.cluster import classify
from podyard.cluster.changes import Change, Origin
from podyard.cluster.nodes import NodeView
from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.events import ClusterEvent
from podyard.plugins.defaults import default_profile
from podyard.queue.core.backoff import Backoff
from podyard.queue.core.effects import Judged
from podyard.queue.core.gates import Gates
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.scheduling_queue import SchedulingQueue
from tests.support import objects
from tests.unit.queue.play import new_queue, node_event, park, pod_event, queued
from tests.unit.queue.test_changes import Play, view

# -- docs/rules.md, status-alone-causes-no-attempt


def test_a_pending_pods_status_alone_causes_no_attempt() -> None:
    play = Play()
    before = view("a")
    waiting, other = play.park_view(before, "OnPods"), play.park_view(view("b"), "OnNodes")
    after = view("a", phase="Pending", sequence=2)
    found = tuple(classify.classify_pod(before.pod, after.pod))
    assert [ClusterEvent(*one[:2]).label for one in found] == ["UnschedulablePodUpdate"]
    play.apply(before, after)
    play.now += 60
    assert (waiting.pool, other.pool) == ("unschedulable", "unschedulable")
    assert not play.queue.has_ready()


# -- docs/rules.md, unscheduled-pods-are-news


def test_a_change_of_an_unscheduled_pod_in_flight_is_kept_for_the_others_in_flight() -> None:
    """A plugin that listens to all pods (coscheduling) may have rejected its mate for want of it."""
    queue = new_queue()
    for name in ("changed", "mate", "stranger"):
        queue.add(queued(name), 0.0)
        queue.pop()
    new = objects.typed_pod("changed", labels={"mate": ""})
    old = queue.pods["uid-changed"].pod
    queue.update("uid-changed", old, new, [Incoming(event=events.UNSCHEDULED_POD_UPDATE, old=old, new=new)], 0.5, priority=0)  # fmt: skip
    for name in ("mate", "stranger"):
        queue.fail(f"uid-{name}", 1.0, unschedulable=["OnPods"])
    assert (queue.pods["uid-mate"].pool, queue.pods["uid-stranger"].pool) == ("backoffQ", "unschedulable")


def test_a_registration_for_pods_takes_unscheduled_ones_and_one_for_assigned_pods_does_not() -> None:
    for event in (events.UNSCHEDULED_POD_ADD, events.UNSCHEDULED_POD_UPDATE, events.UNSCHEDULED_POD_DELETE):
        assert events.match(ClusterEvent(events.POD, event.action), event)
        assert not events.match(ClusterEvent(events.ASSIGNED_POD, event.action), event)


# -- docs/rules.md, events-take-the-place-of-move-cycles


def test_a_move_during_an_attempt_that_does_not_help_the_pod_does_not_requeue_it() -> None:
    """The old rule put every pod into backoff that was in flight during any move, or before it."""
    queue = new_queue()
    queue.add(pod := queued("p"), 0.0)
    queue.pop()
    other = queued("other")
    queue.add(other, 0.0)
    queue.pop()
    queue.fail(other.uid, 0.1, unschedulable=["OnNodes"])
    queue.move_all(node_event("other"), 60.0)
    assert other.pool == "activeQ", "it was a move"
    queue.fail(pod.uid, 60.0, unschedulable=["OnNodes"])
    assert pod.pool == "unschedulable"


# -- docs/rules.md, slow-cycles-keep-the-backoff


def test_backoff_goes_on_growing_although_each_cycle_is_slower_than_the_longest_backoff() -> None:
    queue, backoff, now = new_queue(), Backoff(), 0.0
    pod = park(queue, "p", "OnNodes", now=now)
    found = [backoff.duration_s(pod)]
    for _ in range(4):
        queue.activate(pod.uid, now + 1)
        queue.pop()
        now += 1_000.0
        queue.fail(pod.uid, now, unschedulable=["OnNodes"])
        found.append(backoff.duration_s(pod))
    assert found == [1, 2, 4, 8, 10]


# -- docs/rules.md, one-change-is-several-events


def test_one_change_of_a_node_is_each_of_its_events_for_whoever_registered_that() -> None:
    play = Play()
    labels = play.park_view(view("a"), "OnNodes", "Also")
    gate = play.park_view(view("b"), "Gate")
    old = objects.typed_node("n")
    new = objects.typed_node("n", labels={"a": ""}, taints=[{"key": "k", "effect": "NoSchedule"}])
    views = [NodeView(one, "n", "u", number) for number, one in enumerate((old, new), 1)]
    change = Change("nodes", "u", views[0], views[1], Origin(7))
    assert [ClusterEvent(*one[:2]).label for one in change.events] == ["NodeUpdateNodeLabel", "NodeUpdateNodeTaint"]
    play.changes.apply(change, play.now)
    assert (labels.pool, gate.pool) == ("backoffQ", "unschedulable")
    assert play.labels() == ["NodeUpdateNodeLabel"], "nobody registered taints here"


def test_the_general_update_reaches_full_registrations_only() -> None:
    queue = new_queue()
    full, some = park(queue, "full", "OnPods"), park(queue, "some", "OnPodLabels")
    general = ClusterEvent(events.ASSIGNED_POD, events.UNSCHEDULED_POD_UPDATE.action)
    changed = objects.typed_pod("x", labels={"full": "", "some": ""})
    queue.move_all(Incoming(event=general, old=changed, new=changed), 60.0)
    assert (full.pool, some.pool) == ("activeQ", "unschedulable")
    (judged,) = [one for one in queue.take_effects() if isinstance(one, Judged)]
    assert [move.plugin for move in judged.moved] == ["OnPods"]


# -- docs/rules.md, daemon-pod-hears-of-its-node


def daemon(name: str, node: str) -> QueuedPod:
    """A pod as a DaemonSet makes it: it may run on one node only, which it names by its name."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    rules: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = objects.typed_pod(name, cpu="1", affinity={"nodeAffinity": rules})
    return QueuedPod(pod, key=pod.key, uid=pod.metadata.uid, priority=0, profile="default-scheduler", timestamp=0.0)


def parked_daemons(plugin: str) -> tuple[SchedulingQueue, QueuedPod, QueuedPod]:
    """Those of node-1 and node-2 in a queue with the real plugins, parked because of `plugin`."""
    registry = EventRegistry.of_plugins((one.name, one) for one in default_profile().plugins)
    queue = SchedulingQueue({"default-scheduler": registry}, Gates({}))
    pods = daemon("d1", "node-1"), daemon("d2", "node-2")
    for pod in pods:
        queue.add(pod, 0.0)
        assert queue.pop() is pod
        queue.fail(pod.uid, 0.0, unschedulable=[plugin])
    return queue, *pods


def test_a_node_that_joins_wakes_the_pod_that_names_it_and_no_other() -> None:
    queue, first, second = parked_daemons("NodeAffinity")
    queue.move_all(Incoming(event=events.NODE_ADD, new=objects.typed_node("node-1")), 60.0)
    assert (first.pool, second.pool) == ("activeQ", "unschedulable")


def test_room_on_its_full_node_wakes_the_pod_that_names_it() -> None:
    """Pods of its own priority had filled the node first: their end is the only thing that helps, and
    must.
    """
    queue, first, _ = parked_daemons("NodeResourcesFit")
    gone = objects.typed_pod("x", cpu="1", node="node-1")
    queue.move_all(Incoming(event=pod_event().event, old=gone), 60.0)
    assert first.pool == "activeQ"
