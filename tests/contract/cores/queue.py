"""The queue: pods come, are waited for, tried, rejected, gated, woken, preempted for, bound and deleted; a
session dies."""

import itertools
from typing import Any

from podyard.bus import Delivery
from podyard.cluster.view import ClusterView
from podyard.framework import events
from podyard.framework.events import ClusterEvent
from podyard.plugins.defaults import default_profile
from podyard.proto.actions import ActionType
from podyard.proto.decisions import AttemptRecord
from podyard.proto.message import PodRef
from podyard.proto.placement import BoundPod
from podyard.proto.queue_api import (
    ActivateRequest,
    AttemptResult,
    DoneRequest,
    PoppedPod,
    PopReply,
    PopRequest,
    PreemptingRequest,
    QueueListRequest,
    SessionHeartbeat,
)
from podyard.queue import assembly
from podyard.queue.core import messages
from podyard.queue.core.effects import Reply
from podyard.queue.core.queue import Queue
from podyard.queue.settings import QueueSettings
from tests.contract.cores.recording import Case
from tests.support import objects, stored
from tests.support.stream import ClusterStream

EPOCH = 7
PROFILE = default_profile()
REGISTERED = assembly.registries([PROFILE])


def begin() -> tuple[Queue, ClusterView]:
    view = ClusterView()
    core = assembly.build_queue(
        [PROFILE],
        REGISTERED,
        QueueSettings(),
        epoch=EPOCH,
        view=view,
        instance="q1",
        new_trace=lambda keep: "",
        timer=lambda: 0.0,
    )
    return core, view


class Stage:
    """A queue, the stream that it reads, and a scheduler."""

    def __init__(self) -> None:
        self.now = 1000.25
        self._unread: list[Delivery] = []
        self._stream = ClusterStream(lambda: self.now, self._unread.append)
        self._core, self._view = begin()
        self._tickets = itertools.count(1)
        self._view.begin_listing()
        self._view.end_listing(0)
        late = AttemptRecord(
            namespace="default", name="gone", uid="uid-gone", attempt="6-1", outcome="error", number=1, at=1.0
        )
        nominated = PodRef(namespace="default", name="gone", uid="uid-gone")
        self._core.step(messages.Begin({"uid-gone": late}, (nominated,)), self.now)

    def read(self) -> None:
        for delivery in self._unread:
            changes = self._view.apply(delivery)
            if changes:
                self._core.step(messages.Changed(changes), self.now)
        self._unread.clear()

    def put(self, resource: str, document: dict[str, Any]) -> None:
        self._stream.put(stored.version(resource, document))
        self.read()

    def remove(self, document: dict[str, Any]) -> None:
        self._stream.put(stored.marker("pods", document))
        self.read()

    def bind(self, pod: PoppedPod, node: str) -> None:
        bound = BoundPod(namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node, attempt=pod.attempt)
        for message in stored.commit(1, bindings=[bound]):
            self._stream.put(message)
        self.read()

    def tell(self, message: messages.Message) -> None:
        self._core.step(message, self.now)

    def ask(self, request: messages.Request) -> tuple[PoppedPod, ...]:
        """Ask; the pods that the answer hands out, if it does."""
        wanted = self._core.step(messages.Asked(next(self._tickets), request), self.now)
        replies = [one.reply for one in wanted if isinstance(one, Reply)]
        return tuple(pod for reply in replies if isinstance(reply, PopReply) for pod in reply.pods)

    def pop(self, pop_id: str, session: str = "s", **more: Any) -> tuple[PoppedPod, ...]:
        digests = {PROFILE.name: PROFILE.digest}
        return self.ask(PopRequest(session=session, pop_id=pop_id, digests=digests, **more))

    def done(self, pod: PoppedPod, outcome: Any, *plugins: str, session: str = "s", **more: Any) -> None:
        result = AttemptResult(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            attempt=pod.attempt,
            outcome=outcome,
            unschedulable_plugins=plugins,
            **more,
        )
        self.ask(DoneRequest(session=session, results=(result,)))

    def preempting(self, pod: PoppedPod, running: bool) -> None:
        ref = PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)
        self.ask(PreemptingRequest(session="s", pod=ref, running=running, attempt=pod.attempt))

    def pass_time(self, seconds: float, beats: bool = True) -> None:
        """The core is told when it wants to be; the session lives, if it `beats`."""
        end = self.now + seconds
        beat_at = self.now + 2.0
        while True:
            due = self._core.wake_at
            at = min(beat_at if beats else end, end if due is None else due)
            if at >= end:
                break
            self.now = at
            if at == due:
                self.tell(messages.Tick())
            else:
                beat_at += 2.0
                self.ask(SessionHeartbeat(session="s"))
        self.now = end


def play() -> None:
    stage = Stage()
    stage.put("nodes", objects.node("n1", cpu="2"))
    stage.pop("waits in vain", wait_s=0.3)
    stage.pass_time(0.5)
    stage.pop("waits", wait_s=5.0)
    stage.put("pods", objects.pod("first"))
    stage.put("pods", objects.pod("needy", cpu="4", priority=5))
    stage.pass_time(0.1)
    stage.put("pods", objects.pod("gated", schedulingGates=[{"name": "wait"}]))
    stage.put("pods", objects.pod("bound"))
    (bound,) = stage.pop("one", max_pods=1)
    stage.done(bound, "scheduled", node="n1")
    stage.bind(bound, "n1")
    stage.put("pods", objects.pod("parked", cpu="4", priority=3))
    (parked,) = stage.pop("two", max_pods=1)
    stage.preempting(parked, running=True)
    stage.done(parked, "unschedulable", "NodeResourcesFit", nominated_node="n1", message="no room")
    stage.pass_time(2.0)
    stage.preempting(parked, running=False)
    for again in stage.pop("three"):
        stage.done(again, "unschedulable", "NodeResourcesFit", message="no room")
    stage.put("nodes", objects.node("n1", cpu="3"))
    stage.put("nodes", objects.node("n1", cpu="8"))
    tainted = objects.typed_node("n1", taints=[{"key": "x", "effect": "NoSchedule"}])
    event = ClusterEvent(events.NODE, ActionType.UPDATE_NODE_TAINT)
    stage.tell(messages.Happened("b", [messages.Incoming(event=event, old=tainted, new=tainted, id="bare-b")]))
    stage.put("pods", objects.pod("gated"))
    stage.ask(QueueListRequest())
    stage.tell(messages.Listed("a gap"))
    stage.pass_time(15.0)
    stage.put("pods", objects.pod("unlucky"))
    for taken in stage.pop("four", session="dies"):
        stage.done(taken, "error", session="dies") if taken.name != "unlucky" else None
    stage.remove(objects.pod("needy", cpu="4", priority=5))
    stage.ask(ActivateRequest(pods=(PodRef(namespace="default", name="parked", uid="uid-parked"),)))
    stage.pass_time(15.0)
    stage.put("pods", objects.pod("left"))
    stage.put("pods", objects.pod("decided"))
    for taken in stage.pop("last", session="leaves"):
        stage.done(taken, "scheduled", session="leaves", node="n1") if taken.name == "decided" else None
    stage.pop("waits for ever", session="leaves", wait_s=5.0)
    stage.ask(SessionHeartbeat(session="leaves", over=True))
    for taken in stage.pop("five"):
        stage.done(taken, "unschedulable", "NodeAffinity", message="nowhere")
    stage.pass_time(340.0)
    stage.pass_time(15.0, beats=False)


def deposed() -> None:
    stage = Stage()
    stage.put("pods", objects.pod("a"))
    stage.pop("one")
    stage.pop("waits", wait_s=5.0)
    stage.ask(SessionHeartbeat(session="s", epoch=EPOCH + 1))


CASE = Case("queue", Queue, ClusterView, play, begin, messages.Tick(), (), deposed)
