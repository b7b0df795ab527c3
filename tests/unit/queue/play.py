"""A queue to play with: three plugins whose hints answer what the event's object says."""

from typing import Any

from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects.core import Node, Pod
from podyard.proto.actions import ActionType
from podyard.queue.core.backoff import Backoff
from podyard.queue.core.gates import Gates, NamedGate
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.scheduling_queue import SchedulingQueue
from tests.support import objects

NODE_CHANGES = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
POD_CHANGES = ClusterEvent(events.POD, ActionType.ALL)


def label_hint(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the changed object carries the pod's name as a label."""
    changed = new or old
    if not isinstance(changed, Node | Pod):
        raise TypeError("expected a node or a pod")
    if pod.metadata.name in changed.metadata.labels:
        return events.queue(f"{changed.metadata.name} helps {pod.metadata.name}")
    return events.skip(f"{changed.metadata.name} does not help {pod.metadata.name}")


def also_hint(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the changed node carries `also-` and the pod's name as a label: another answer than
    `label_hint`'s.
    """
    changed = new or old
    if isinstance(changed, Node) and f"also-{pod.metadata.name}" in changed.metadata.labels:
        return events.queue("the other label is there")
    return events.skip("the other label is not there")


REGISTRY = EventRegistry(
    {
        "OnNodes": (Registration(NODE_CHANGES, label_hint),),
        "Also": (Registration(ClusterEvent(events.NODE, ActionType.UPDATE_NODE_LABEL), also_hint),),
        "OnPods": (Registration(POD_CHANGES, label_hint),),
        "OnPodLabels": (Registration(ClusterEvent(events.POD, ActionType.UPDATE_POD_LABEL), label_hint),),
        "Gate": (Registration(ClusterEvent(events.NODE, ActionType.DELETE), label_hint),),
    }
)


def is_gated(pod: Pod) -> str | None:
    return "the label gate is there" if "gate" in pod.metadata.labels else None


def new_queue(**more: Any) -> SchedulingQueue:
    gates = Gates({"default-scheduler": [NamedGate("Gate", is_gated)]})
    return SchedulingQueue({"default-scheduler": REGISTRY}, gates, backoff=more.pop("backoff", Backoff()), **more)


def pod_object(name: str, *labels: str, priority: int = 0, nominated: str = "", uid: str = "") -> Pod:
    labelled = dict.fromkeys(labels, "")
    return objects.typed_pod(name, uid=uid, labels=labelled, nominated=nominated, priority=priority)


def queued(name: str, now: float = 0.0, *labels: str, priority: int = 0, uid: str = "") -> QueuedPod:
    pod = pod_object(name, *labels, priority=priority, uid=uid)
    return QueuedPod(
        pod, key=pod.key, uid=pod.metadata.uid, priority=priority, profile="default-scheduler", timestamp=now
    )


def node_event(*helped: str, action: ActionType = ActionType.ADD, **more: Any) -> Incoming:
    """A node that helps the pods of these names."""
    node = objects.typed_node("n", labels=dict.fromkeys(helped, ""))
    return Incoming(event=ClusterEvent(events.NODE, action), new=node, id=more.pop("id", "e1"), **more)


def pod_event(*helped: str, action: ActionType = ActionType.DELETE, **more: Any) -> Incoming:
    """Another pod that helps the pods of these names."""
    return Incoming(event=ClusterEvent(events.ASSIGNED_POD, action), old=pod_object("other", *helped), **more)


def park(queue: SchedulingQueue, name: str, *plugins: str, now: float = 0.0, priority: int = 0) -> QueuedPod:
    """A pod whose first attempt these plugins rejected."""
    pod = queued(name, now, priority=priority)
    queue.add(pod, now)
    while (popped := queue.pop()) is not None and popped is not pod:
        raise AssertionError(f"{popped.uid} was popped in place of {pod.uid}")
    queue.fail(pod.uid, now, unschedulable=plugins)
    queue.take_effects()
    return pod
