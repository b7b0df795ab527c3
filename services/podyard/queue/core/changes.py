"""From changes of the cluster to calls of the queue.

Source: pkg/scheduler/eventhandlers.go of kube-scheduler v1.36.2; data in tests/conformance/data/classify
(queueCalls). Bound room comes free by a release alone, never by the pod's object
(docs/rules.md, room-comes-free-by-the-release).
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from podyard.cluster import classify
from podyard.cluster.changes import Change, Origin
from podyard.cluster.pods import PodView
from podyard.framework import events
from podyard.framework.events import ClusterEvent
from podyard.objects.core import Pod
from podyard.proto import subjects
from podyard.proto.actions import ActionType
from podyard.proto.message import DEFAULT_SCHEDULER, PodRef
from podyard.proto.placement import BoundPod
from podyard.queue.core.effects import LeftUnbound, NominationOver
from podyard.queue.core.given_up import on_node
from podyard.queue.core.leader import Leader
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.waking import Meant

NO_ORIGIN: Final = Origin()


def profile_of(view: PodView) -> str:
    """The profile that schedules a pod."""
    return view.stored.spec.scheduler_name or DEFAULT_SCHEDULER


def is_pending(view: PodView | None, profiles: Collection[str]) -> bool:
    """Whether the queue is to have this pod: no binding, no tombstone, none that cannot be read, created
    without a node, ours.

    Also one that is being deleted: its scheduler lets it go when its turn comes.
    """
    return (
        view is not None
        and view.bound is None
        and view.release is None
        and not view.unknown_place
        and not view.gone
        and not view.stored.spec.node_name
        and profile_of(view) in profiles
        and not view.ended
    )


def queued_pod(view: PodView, now: float, origin: Origin = NO_ORIGIN) -> QueuedPod:
    """A pod as it enters the queue.

    :param origin: who wrote it, and what it replaces
    """
    return QueuedPod(
        view.pod,
        view.key,
        view.uid,
        view.priority,
        profile_of(view),
        now,
        view.sequence,
        tuple(filter(None, (origin.trace, *origin.causes))),
        origin.causes,
        origin.replaces,
    )


ASSUMED_UPDATE = ClusterEvent(events.ASSIGNED_POD, ActionType.UPDATE)
"""What happens to an assumed pod with its binding, if it is not known as what it was assumed."""


ADDED: Final = events.UNSCHEDULED_POD_ADD.label
UPDATED: Final = events.UNSCHEDULED_POD_UPDATE.label
DELETED: Final = events.UNSCHEDULED_POD_DELETE.label
ASSIGNED_UPDATED: Final = events.ASSIGNED_POD_UPDATE.label
ASSIGNED_DELETED: Final = events.ASSIGNED_POD_DELETE.label
BOUND: Final = (events.ASSIGNED_POD_ADD.label, DELETED)
"""A pod with a node is another pod for the reference's handlers: one takes it in, the other lets it go."""


class Changes:
    """Applies changes to the leader's queue, in stream order.

    :param profiles: names of the profiles that are scheduled here
    """

    def __init__(self, leader: Leader, profiles: Collection[str]) -> None:
        self._leader = leader
        self._queue = leader.queue
        self._profiles = frozenset(profiles)
        self._last_sequence = 0
        self._same_sequence = 0

    def apply(self, change: Change, now: float) -> None:
        """One change; parked pods are judged before the event is kept for those in flight."""
        queue = self._queue
        started, had = queue.timer(), change.uid in queue.pods
        self._apply(change, now)
        took = queue.timer() - started
        if labels := self._labels(change, had):
            queue.tally.handled.append((labels, took))

    def _labels(self, change: Change, had: bool) -> tuple[str, ...]:
        """Which events the reference times for such a change: those that a handler of it takes.

        :param had: the queue had the pod before
        """
        if change.resource != subjects.PODS:
            named = _named(change.events)
            return tuple([event.label for event in named if self._is_handled(change.resource, event)])
        if change.bound and change.new is not None:
            return BOUND
        has = change.uid in self._queue.pods
        if has or had:
            if had and has:
                return tuple(dict.fromkeys((UPDATED, *(event.label for event in _named(change.events)))))
            return (ADDED,) if has else (DELETED,)
        if change.release is not None:
            return (ASSIGNED_DELETED,)
        new: PodView | None = change.new
        if new is None or new.bound is None:
            return ()
        return tuple(dict.fromkeys((ASSIGNED_UPDATED, *(event.label for event in _named(change.events)))))

    def _apply(self, change: Change, now: float) -> None:
        happened = change.events
        if happened:
            self._leader.recent.note(change, now)
        if change.resource == subjects.PODS:
            self._pod(change, now)
        elif happened:
            for event in _named(happened):
                if self._is_handled(change.resource, event) and self._queue.wants(event, change.gap):
                    incoming = self._incoming(change, event, change.old, change.new, change.gap)
                    self._queue.move_wanted(incoming, now)

    def _is_handled(self, resource: str, event: ClusterEvent) -> bool:
        """Whether such an event reaches the queue: those of nodes always, of others if a plugin registered
        that very resource and action.

        Source: eventhandlers.go, addAllEventHandlers.
        """
        return resource == subjects.NODES or self._queue.hints.is_registered(event)

    def _pod(self, change: Change, now: float) -> None:
        old: PodView | None = change.old
        new: PodView | None = change.new
        if change.bound and new is not None and new.bound is not None:
            self._bound(change, old, new, new.bound, now)
            return
        if change.release is not None:  # found by a listing, it may be all that is told of a pod: go on
            self._move_pod(change, events.ASSIGNED_POD_DELETE, old, None, now)
        pod = self._queue.pods.get(change.uid)
        if pod is not None:
            self._pending(change, pod, old, new, now)
        elif new is None:
            self._nomination_is_over(old)
        elif is_pending(new, self._profiles):
            self._enter(new, now, change.origin)
        elif new.bound is not None:
            for event in _named(change.events):
                self._move_pod(change, event, old, new, now)

    def _enter(self, view: PodView, now: float, origin: Origin = NO_ORIGIN) -> None:
        """A pod is to be scheduled.

        :param origin: who wrote it, and what it replaces
        """
        if not self._leader.resume(view.uid, view.pod, view.priority, view.sequence):
            self._queue.add(queued_pod(view, now, origin), now)

    def compare(self, pods: Mapping[str, PodView], now: float) -> int:
        """After a listing: have exactly the pods that are to be scheduled.

        The listing's changes have seen to that; but a pod that is forgotten, or tried for ever, because one
        of them was not understood would be so until the next leader.

        :param pods: of the view, by uid
        :return: how many pods the queue had too many or too few
        """
        strangers = [pod for uid, pod in self._queue.pods.items() if not is_pending(pods.get(uid), self._profiles)]
        for pod in strangers:
            self._queue.delete(pod.uid)
            view = pods.get(pod.uid)
            self._nomination_is_over(view)
            if view is not None and view.node_name:
                self._leader.bound(pod, view.node_name, "", now)
            else:
                self._leader.gone(pod, now)
        missing = [view for view in pending_pods(pods, self._profiles) if view.uid not in self._queue.pods]
        for view in missing:
            self._enter(view, now)
        return len(strangers) + len(missing)

    def _move_pod(
        self, change: Change, event: ClusterEvent, old: PodView | None, new: PodView | None, now: float
    ) -> None:
        """An event of an assigned pod. One of which nothing but its end is known: no hint can look at it, all
        say Queue.
        """
        missed = change.gap or (old is None and new is None)
        if self._queue.wants(event, missed):
            incoming = self._incoming(change, event, old, new, missed)
            self._queue.move_wanted(incoming, now)

    def _bound(self, change: Change, old: PodView | None, new: PodView, bound: BoundPod, now: float) -> None:
        """AssignedPodAdd first, then the pod leaves the queue."""
        self._move_pod(change, events.ASSIGNED_POD_ADD, None, new, now)
        pod = self._queue.delete(change.uid)
        self._nomination_is_over(new)
        if pod is not None:
            if new.sequence > bound.decided_at and bound.attempt:
                self._bound_as_another(change, pod.version_at(bound.decided_at), new, now)
            self._leader.bound(pod, new.node_name, bound.attempt, now, bound.trace)
            if old is not None and old.nominated_node not in ("", new.node_name):
                self._nomination_ended(change, old, now)

    def _bound_as_another(self, change: Change, assumed: Pod | None, new: PodView, now: float) -> None:
        """A pod was written again between its decision and its binding: for its scheduler it changes with the
        binding.

        Until then it kept others out, or drew them, by the labels that it had when it was assumed. The
        reference tells nobody.

        :param assumed: the version that was decided; `None`: it is not known
        """
        if assumed is None:
            if self._queue.wants(ASSUMED_UPDATE, True):
                self._queue.move_wanted(self._incoming(change, ASSUMED_UPDATE, None, new.pod, True), now)
            return
        old = on_node(assumed, new.node_name)
        for event in _named(classify.classify_pod(old, new.pod)):
            if self._queue.wants(event):
                self._queue.move_wanted(self._incoming(change, event, old, new.pod), now)

    def _pending(self, change: Change, pod: QueuedPod, old: PodView | None, new: PodView | None, now: float) -> None:
        """A pod of the queue changed, or is no longer to be scheduled."""
        assumed = self._leader.assumed_node(pod)
        if new is None or not is_pending(new, self._profiles):
            self._queue.delete(pod.uid)
            self._nomination_is_over(old)
            if change.release is not None:  # between two listings it was bound, and has ended
                self._leader.bound(pod, change.release.node, "", now)
                return
            self._leader.gone(pod, now)
            if pod.attempts or pod.gating_plugin:
                trace = change.origin.trace
                self._queue.effects.append(LeftUnbound(pod.ref, now, pod.attempts, pod.previous_trace, trace))
            if assumed:
                self._assumed_ends(change, pod, assumed, now)
            elif old is not None and old.nominated_node:
                self._nomination_ended(change, old, now)
            return
        if assumed:
            before = pod.pod
            pod.replace(new.pod, new.sequence, missed=change.gap)
            if new.deleting and before.metadata.deletion_timestamp is None:
                self._assumed_ends(change, pod, assumed, now)
            return
        before = pod.pod
        incoming = [self._incoming(change, event, before, new.pod, change.gap) for event in _named(change.events)]
        self._queue.update(
            pod.uid,
            before,
            new.pod,
            incoming,
            now,
            priority=new.priority,
            sequence=new.sequence,
            missed=change.gap,
        )
        if old is not None and old.nominated_node and old.nominated_node != new.nominated_node:
            self._nomination_ended(change, old, now)

    def _nomination_is_over(self, view: PodView | None) -> None:
        """The fact about a pod that needs none any more is to go."""
        if view is not None and view.nomination is not None:
            self._queue.effects.append(NominationOver(PodRef(namespace=view.namespace, name=view.name, uid=view.uid)))

    def _assumed_ends(self, change: Change, pod: QueuedPod, node: str, now: float) -> None:
        """An assumed pod is deleted: its room will come free. Source: eventhandlers.go, updatePod and
        deletePod of assumed pods.
        """
        event = events.ASSIGNED_POD_DELETE
        if self._queue.wants(event):
            self._queue.move_wanted(self._incoming(change, event, on_node(pod.pod, node), None), now)

    def _nomination_ended(self, change: Change, old: PodView, now: float) -> None:
        """The room that a nomination kept is free, for pods of at most its priority
        (docs/rules.md, ended-nomination-frees-room).
        """
        event = events.ASSIGNED_POD_DELETE
        if self._queue.wants(event):
            self._queue.move_wanted(self._incoming(change, event, old.pod, None), now, Meant(old.priority))

    def _incoming(
        self, change: Change, event: ClusterEvent, old: object | None, new: object | None, missed: bool = False
    ) -> Incoming:
        origin = change.origin
        return Incoming(
            event,
            old,
            new,
            self._event_id(origin.sequence),
            change.object_name,
            origin.sequence,
            origin.who,
            origin.why,
            origin.trace,
            missed,
            origin.bytes,
        )

    def _event_id(self, sequence: int) -> str:
        """The stream's sequence; the second and later events of one message carry a number behind it."""
        if sequence != self._last_sequence:
            self._last_sequence, self._same_sequence = sequence, 0
            return str(sequence)
        self._same_sequence += 1
        return f"{sequence}-{self._same_sequence}"


def _named(happened: Collection[tuple[Any, ...]]) -> list[ClusterEvent]:
    return [ClusterEvent(event[0], event[1]) for event in happened]


def pending_pods(pods: Mapping[str, PodView], profiles: Collection[str]) -> list[PodView]:
    """All pods that the queue is to have, in the order in which they were written."""
    return sorted((view for view in pods.values() if is_pending(view, profiles)), key=lambda view: view.sequence)
