"""The queue as its service assembles it, on a clock of the case, with a note of every call that reaches
it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.framework import events
from podyard.framework.profile import Profile
from podyard.proto.queue_api import PopRequest
from podyard.queue import assembly
from podyard.queue.core.changes import Changes
from podyard.queue.core.hints import Verdict
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.waking import EVERYBODY, Meant
from podyard.queue.settings import QueueSettings

SESSION: Final = "conformance"
POOLS: Final = frozenset({"activeQ", "backoffQ", "errorBackoffQ", "unschedulable", "gated"})
"""Where the reference's queue has pods; in flight and in binding they are nowhere in it."""

HEARD: Final = frozenset({events.NODE, *events.INCOMING_PODS, events.POD, events.WILDCARD})


class Moved(msgspec.Struct, frozen=True):
    """A pod that a call put elsewhere; "none" is outside of all pools."""

    pod: QueuedPod
    before: str
    after: str


class Heard(msgspec.Struct, frozen=True):
    """An event and what the hints say of it for one pod; no verdict for a pod that no hint is asked about."""

    incoming: Incoming
    pod: QueuedPod
    verdict: Verdict | None


class Call(msgspec.Struct, kw_only=True):
    """A call that reached the queue, and what came of it."""

    name: str
    pod: QueuedPod | None = None
    incoming: Incoming | None = None
    max_priority: int | None = None
    heard: list[Heard] = []
    moved: list[Moved] = []


class QueueStage:
    """Leader, queue and handler of one case; nothing happens but what the case says."""

    def __init__(
        self, profiles: Sequence[Profile], settings: QueueSettings | None = None, *, extenders: bool = False
    ) -> None:
        """:param extenders: whether HTTP extenders take part"""
        self.view = ClusterView()
        self.now = 0.0
        self.leader = assembly.build_leader(
            profiles,
            assembly.registries(profiles, extenders=extenders),
            settings or QueueSettings(),
            epoch=1,
            view=self.view,
            new_trace=lambda keep: "",
            timer=lambda: 0.0,
        )
        self.queue = self.leader.queue
        self.changing: Change | None = None
        """The change that is being applied."""
        self.attempts: dict[str, str] = {}
        """Last attempt by uid."""
        self.assumed: dict[str, str] = {}
        """Nodes, by uid, on which a scheduler has assumed pods whose attempt is not done."""
        self._changes = Changes(self.leader, [profile.name for profile in profiles])
        self._digests = {profile.name: profile.digest for profile in profiles}
        self._calls: list[Call] = []
        self._wants = self.queue.wants
        self._pops = 0
        self._watch()

    def take_calls(self) -> list[Call]:
        """The calls since last asked, in their order."""
        calls, self._calls = self._calls, []
        return calls

    def apply(self, changes: Sequence[Change]) -> None:
        """What a delivery changed in the cluster."""
        for change in changes:
            self.changing = change
            self._changes.apply(change, self.now)
            self.changing = None

    def pop(self) -> QueuedPod | None:
        """A scheduler asks for one pod."""
        self._pops += 1
        request = PopRequest(session=SESSION, pop_id=str(self._pops), digests=self._digests, max_pods=1)
        reply = self.leader.pop(request, self.now, 0)
        if reply is None:
            return None
        if reply.refused or len(reply.pods) != 1:
            raise RuntimeError(f"the queue answered {reply}")
        popped = reply.pods[0]
        self.attempts[popped.uid] = popped.attempt
        return self.leader.attempts[popped.attempt].pod

    def end_preemption(self, uid: str) -> None:
        """A pod's asynchronous preemption has ended; its activation is another call."""
        self.leader._preemptions.end(uid)

    # ---- noting
    # --------------------------------------------------------------------------------------------------------------

    @contextmanager
    def noting(self, call: Call) -> Iterator[Call]:
        """Note a call, and which pods are in another pool after it."""
        before = self._pools()
        self._calls.append(call)
        yield call
        after = self._pools()
        pods = {uid: pod for uid, (pod, _) in (before | after).items()}
        for uid, pod in pods.items():
            was, now = before.get(uid, (pod, "none"))[1], after.get(uid, (pod, "none"))[1]
            if was != now:
                call.moved = [*call.moved, Moved(pod, was, now)]

    def _pools(self) -> dict[str, tuple[QueuedPod, str]]:
        return {uid: (pod, pod.pool if pod.pool in POOLS else "none") for uid, pod in self.queue.pods.items()}

    def _watch(self) -> None:
        """Handlers tell the queue also of nodes and pods that nobody waits for: the reference has handlers of
        these in any case, of other kinds for registered actions only. The queue itself still asks.
        """
        queue = self.queue
        queue.wants = lambda event, missed=False: event.resource in HEARD or queue.hints.is_interested(event, missed)
        for name, noted in (
            ("add", self._noted_add),
            ("update", self._noted_update),
            ("delete", self._noted_delete),
            ("move_wanted", self._noted_move),
            ("fail", self._noted_fail),
        ):
            setattr(queue, name, _around(noted, getattr(queue, name)))

    def _noted_add(self, add: Callable[..., Any], pod: QueuedPod, now: float) -> None:
        with self.noting(Call(name="add", pod=pod)):
            add(pod, now)

    def _noted_update(self, update: Callable[..., Any], uid: str, *args: Any, **more: Any) -> None:
        pod = self.queue.pods[uid]
        old, new, changes, *_ = args
        del old
        with self.noting(Call(name="update", pod=pod)) as call:
            parked = pod in self.queue.parked
            before, pod.pod = pod.pod, new
            call.heard = [Heard(one, pod, self.queue.hints.verdict(pod, one) if parked else None) for one in changes]
            pod.pod = before
            update(uid, *args, **more)

    def _noted_delete(self, delete: Callable[..., Any], uid: str) -> Any:
        pod = self.queue.pods.get(uid)
        if pod is None:
            return delete(uid)
        with self.noting(Call(name="delete", pod=pod)):
            return delete(uid)

    def _noted_move(self, move: Callable[..., Any], incoming: Incoming, now: float, meant: Meant = EVERYBODY) -> None:
        call = Call(name="moveAll", incoming=incoming, max_priority=meant.max_priority)
        with self.noting(call):
            call.heard = [Heard(incoming, pod, self.queue.hints.verdict(pod, incoming)) for pod in self.queue.parked]
            if self._wants(incoming.event, incoming.missed):
                move(incoming, now, meant)

    def _noted_fail(self, fail: Callable[..., Any], uid: str, now: float, **more: Any) -> None:
        """Events since the pod's pop are judged with the rejectors of this failure: as the queue does it, in
        the course of it."""
        queue, hints = self.queue, self.queue.hints
        call = Call(name="addUnschedulable", pod=queue.pods.get(uid))
        since, verdict = list(queue.in_flight.events_for(uid)), hints.verdict

        def noted_verdict(pod: QueuedPod, incoming: Incoming) -> Verdict:
            if not call.heard:
                call.heard = [Heard(one, pod, verdict(pod, one)) for one in since]
            return verdict(pod, incoming)

        hints.verdict = noted_verdict
        with self.noting(call):
            fail(uid, now, **more)
        del hints.verdict
        if not call.moved:
            self._calls.remove(call)


def _around(noted: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **more: noted(inner, *args, **more)


def hints_of(verdict: Verdict) -> Mapping[str, str]:
    """Plugin -> its hint's answer."""
    return {call.plugin: str(call.answer) for call in verdict.calls}
