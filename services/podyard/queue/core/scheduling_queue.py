"""The scheduling queue: every pending pod is in one pool, and events move it.

Which pools there are, and from which to which a pod goes, is drawn in `pool_moves`.

Source: pkg/scheduler/backend/queue/scheduling_queue.go of kube-scheduler v1.36.2 (PriorityQueue).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor
from typing import Any, Final

from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.events import ClusterEvent
from podyard.framework.status import PluginError
from podyard.objects.core import Pod
from podyard.proto.decisions import WakeUp
from podyard.proto.pools import Pool
from podyard.proto.requeues import PodMove
from podyard.queue.core import waking
from podyard.queue.core.backoff import Backoff, is_backing_off
from podyard.queue.core.effects import Effect, Gated, Judged, Nominated, Skip
from podyard.queue.core.gates import Gates
from podyard.queue.core.hints import Hints, Strategy, Verdict
from podyard.queue.core.in_flight import InFlight
from podyard.queue.core.messages import Incoming
from podyard.queue.core.nominator import Nominator
from podyard.queue.core.parked import NOT_SHARED, Parked, Signers
from podyard.queue.core.pod_heap import PodHeap
from podyard.queue.core.queued_pod import NO_OBSTACLES, QueuedPod
from podyard.queue.core.tally import (
    ACTIVE,
    ATTEMPT_FAILED,
    BACKOFF,
    BACKOFF_COMPLETE,
    POPPED_FROM_BACKOFF,
    UNSCHEDULABLE,
    Tally,
)
from podyard.queue.core.waking import Meant, Woken

MAX_UNSCHEDULABLE_S = 300.0
"""After more than this, the safety flush retries an unschedulable pod. Source:
DefaultPodMaxInUnschedulablePodsDuration.
"""

IN_FLIGHT_RECORDS = 32
"""Events that a returning pod was judged by, at most, in one attempt's records; semi-arbitrary."""


ADDED: Final = events.UNSCHEDULED_POD_ADD.label


def by_priority(pod: QueuedPod) -> tuple[int, float]:
    """Priority descending, then the longest in the queue. Source: plugins/queuesort/priority_sort.go."""
    return (-pod.priority, pod.timestamp)


def _by_expiry(pod: QueuedPod) -> tuple[int, tuple[int, float]]:
    """Who may come back first, then by priority."""
    return pod.backoff_expiry or 0, by_priority(pod)


class SchedulingQueue:
    """The pools and the rules by which pods move between them.

    :param registries: profile -> which plugin listens to what
    :param gates: PreEnqueue plugins
    :param sort_key: the QueueSort plugin's; `sorter` is its name
    :param signers: which parts of a pod the plugins' hints read; those that do not say share no answers
    :param timer: measures hints and the handling of changes, seconds
    :param max_unschedulable_s: how long a pod stays parked at most
    """

    def __init__(
        self,
        registries: Mapping[str, EventRegistry],
        gates: Gates,
        *,
        backoff: Backoff | None = None,
        sort_key: Callable[[QueuedPod], Any] = by_priority,
        sorter: str = "PrioritySort",
        signers: Signers = NOT_SHARED,
        timer: Callable[[], float] = lambda: 0.0,
        max_unschedulable_s: float = MAX_UNSCHEDULABLE_S,
    ) -> None:
        self.faults = gates.faults
        """What plugins did amiss, for the shell to take."""
        self.timer = timer
        self.tally = Tally()
        self.hints = Hints(registries, timer, self.faults)
        self.gates = gates
        self.backoff = backoff or Backoff()
        self._plugins_key = sort_key
        self._sorter = sorter
        self._max_unschedulable_s = max_unschedulable_s
        self.pods: dict[str, QueuedPod] = {}
        """Every pod that the queue knows, in whatever pool, by uid."""
        self.active = PodHeap(by_priority, self._unsorted)
        self.backing_off = PodHeap(_by_expiry, self._unsorted)
        self.errors = PodHeap(_by_expiry, self._unsorted)
        self.parked = Parked(signers, self.faults)
        self.in_flight = InFlight()
        self.nominator = Nominator()
        self.cycle = 0
        """Pops so far."""
        self.effects: list[Effect] = []
        """What the shell has to do, in order; it takes them with `take_effects`."""

    def _sort_key(self, pod: QueuedPod) -> Any:
        """Pods that the QueueSort plugin cannot sort come behind all others, by priority."""
        try:
            return 0, self._plugins_key(pod)
        except Exception as fault:  # the boundary to plugins
            self._unsorted(fault)
            return 1, by_priority(pod)

    def _unsorted(self, fault: Exception) -> None:
        """Pods have no sort key, or keys that do not compare: they go by priority."""
        self.faults.note(PluginError.wrapping(self._sorter, "QueueSort", fault))

    def take_effects(self) -> Sequence[Effect]:
        """The effects since the last call."""
        taken, self.effects = self.effects, []
        return taken

    # -- entering --------------------------------------------------------------------------------------------

    def add(self, pod: QueuedPod, now: float) -> None:
        """A pod became pending: to activeQ, or gated."""
        self.pods[pod.uid] = pod
        nominated = pod.pod.status.nominated_node_name
        if self._to_active(pod, now, ADDED) is Pool.ACTIVE and nominated:
            self.nominator.set(pod.uid, nominated)

    def _to_active(self, pod: QueuedPod, now: float, why: str, *, run_gates: bool = True) -> Pool:
        """Into activeQ if no PreEnqueue plugin objects (asked before already, for a pod of the backoffQ).

        :param why: what brings it there, as `tally` calls it
        """
        if run_gates and not self.gates.run(pod):
            return self._gate(pod, now, why)
        if pod.initial_attempt_at is None:
            pod.initial_attempt_at = now
        if self.parked:
            self.parked.remove(pod)
        self.active.push(self._sort_key(pod), pod)
        pod.enter(Pool.ACTIVE)
        pod.ready_since = now
        self.tally.enters(ACTIVE, why)
        return Pool.ACTIVE

    def _to_backoff(self, pod: QueuedPod, now: float, why: str) -> Pool:
        """Into backoffQ, or errorBackoffQ if no plugin rejected it
        (docs/rules.md, no-rejector-is-an-error).
        """
        if not self.gates.run(pod):
            return self._gate(pod, now, why)
        self.parked.remove(pod)
        pool = self.backing_off if pod.rejectors else self.errors
        pool.push((pod.backoff_expiry or 0, self._sort_key(pod)), pod)
        pod.enter(Pool.BACKOFF if pool is self.backing_off else Pool.ERROR_BACKOFF)
        pod.backing_off_since = now
        self.tally.enters(BACKOFF, why)
        return pod.pool

    def _gate(self, pod: QueuedPod, now: float, why: str) -> Pool:
        said = pod.message
        self._park(pod, why)
        pod.message = pod.gate_message
        if said != pod.gate_message:
            self.effects.append(_gated(pod, now))
        return Pool.GATED

    def _park(self, pod: QueuedPod, why: str) -> None:
        if pod not in self.parked:
            self.tally.enters(UNSCHEDULABLE, why)
        self.parked.add(pod)
        pod.was_parked = True

    def _requeue(self, pod: QueuedPod, strategy: Strategy, now: float, why: str) -> Pool:
        """Carry a verdict out. Source: requeuePodWithQueueingStrategy."""
        if strategy is Strategy.SKIP:
            self._park(pod, why)
            return pod.pool
        if strategy is Strategy.AFTER_BACKOFF and is_backing_off(pod, now):
            return self._to_backoff(pod, now, why)
        return self._to_active(pod, now, why)

    # -- popping and coming back -----------------------------------------------------------------------------

    def has_ready(self) -> bool:
        """Whether `pop` would give a pod."""
        return bool(self.active or self.backing_off)

    def pop(self) -> QueuedPod | None:
        """The next pod to schedule; from backoffQ early if activeQ is empty, never from errorBackoffQ
        (docs/rules.md, early-pop-spares-errors).
        """
        pod = self.active.pop()
        if pod is None:
            pod = self.backing_off.pop()
            if pod is None:
                return None
            self.tally.enters(ACTIVE, POPPED_FROM_BACKOFF)
        pod.attempts += 1
        pod.enter(Pool.IN_FLIGHT)
        self.in_flight.start(pod.uid)
        self.cycle += 1
        return pod

    def done(self, uid: str) -> None:
        """The pod's attempt ended well, or does not matter any more; every pop needs one `done` or `fail`
        (docs/rules.md, every-pop-ends-once).
        """
        self.in_flight.done(uid)
        pod = self.pods.get(uid)
        if pod is not None and pod.pool is Pool.IN_FLIGHT:
            pod.enter(Pool.NOWHERE)

    def await_binding(self, uid: str) -> bool:
        """The pod's attempt found a node; whether the queue still has the pod, which is in `binding` then."""
        self.in_flight.done(uid)
        pod = self.pods.get(uid)
        if pod is not None:
            pod.enter(Pool.BINDING)
        return pod is not None

    def fail(
        self,
        uid: str,
        now: float,
        *,
        unschedulable: Iterable[str] = (),
        pending: Iterable[str] = (),
        obstacles: Mapping[str, tuple[str, ...]] = NO_OBSTACLES,
        message: str = "",
    ) -> None:
        """The pod's attempt failed: rejected by these plugins, or (none at all) by an internal error.

        Source: AddUnschedulableIfNotPresent. A pod that is gone, or in a pool already, only ends its attempt.

        :param obstacles: what these plugins said stands in its way, by plugin
        """
        pod = self.pods.get(uid)
        if pod is not None and pod.pool in (Pool.IN_FLIGHT, Pool.BINDING, Pool.NOWHERE):
            # Rejectors of the attempt before go first, or an error is taken for a rejection
            # (docs/rules.md, rejectors-are-of-the-last-attempt).
            pod.unschedulable_plugins, pod.pending_plugins = frozenset(unschedulable), frozenset(pending)
            pod.obstacles = obstacles
            self._put_back(pod, now, message)
        self.in_flight.done(uid)

    def _put_back(self, pod: QueuedPod, now: float, message: str) -> None:
        pod.gating_plugin = pod.gate_message = ""
        pod.message, pod.was_flushed, pod.woken_by = message, False, None
        pod.timestamp = now
        if pod.rejectors:
            pod.unschedulable_count += 1
            pod.consecutive_errors = 0
        else:
            pod.consecutive_errors += 1
        self.backoff.start(pod)
        verdict, waker = self._judge_in_flight(pod, now)
        pool = self._requeue(pod, verdict.strategy, now, ATTEMPT_FAILED)
        if verdict.strategy is not Strategy.SKIP and waker is not None:
            self._moved(pod, waker, verdict, now)
            move = _move(pod, Pool.IN_FLIGHT, pool, verdict)
            self.effects.append(Judged(incoming=waker, moved=(move,), attempt=pod.attempt, at=now))

    def _judge_in_flight(self, pod: QueuedPod, now: float) -> tuple[Verdict, Incoming | None]:
        """The strongest verdict of the events since the pod's pop, and the first event that gave it.

        Only what a plugin is pending on is stronger than the first that helps. Source:
        scheduling_queue.go (determineSchedulingHintForInFlightPod).
        """
        if not pod.rejectors or pod.uid not in self.in_flight:
            # Without its events nobody can say that none helped: never park
            # (docs/rules.md, no-parking-without-events).
            return Verdict(Strategy.AFTER_BACKOFF), None
        best: tuple[Verdict, Incoming | None] = (Verdict(Strategy.SKIP), None)
        skipped = 0
        for incoming in self.in_flight.events_for(pod.uid):
            verdict = self.hints.verdict(pod, incoming)
            if verdict.strategy is Strategy.IMMEDIATELY:
                return verdict, incoming
            if verdict.strategy is Strategy.AFTER_BACKOFF and best[1] is None:
                best = (verdict, incoming)
                if not pod.pending_plugins:
                    break
            elif verdict.calls and verdict.strategy is Strategy.SKIP and skipped < IN_FLIGHT_RECORDS:
                skipped += 1
                skip = Skip(pods=(pod.ref,), calls=verdict.calls)
                self.effects.append(Judged(incoming=incoming, skipped=(skip,), attempt=pod.attempt, at=now))
        return best

    def give_back(self, uid: str, now: float) -> None:
        """The pod's attempt never began: to activeQ again, nothing counted but the attempt."""
        pod = self.pods.get(uid)
        if pod is not None and pod.pool is Pool.IN_FLIGHT:
            self._to_active(pod, now, ATTEMPT_FAILED)
        self.in_flight.done(uid)

    def resume(self, pod: QueuedPod) -> None:
        """A pod that was deleted while in flight is there after all: when its attempt fails it goes to
        activeQ or backoff.
        """
        pod.enter(Pool.IN_FLIGHT)
        self.pods[pod.uid] = pod
        self.in_flight.record(Incoming(event=events.FORCE_ACTIVATE, new=pod.pod, object_name="/".join(pod.key)))

    def restore(self, pod: QueuedPod, now: float) -> None:
        """Take a pod in as its last attempt left it: to backoffQ or errorBackoffQ while its backoff lasts,
        else to activeQ.
        """
        self.pods[pod.uid] = pod
        self.nominator.set(pod.uid, pod.pod.status.nominated_node_name)
        self._requeue(pod, Strategy.AFTER_BACKOFF, now, ADDED)

    # -- changes of the pod itself ---------------------------------------------------------------------------

    def update(
        self,
        uid: str,
        old: Pod,
        new: Pod,
        changes: Sequence[Incoming],
        now: float,
        *,
        priority: int,
        sequence: int = 0,
        missed: bool = False,
    ) -> None:
        """A pending pod's object changed; `changes` are the events that this is. Source:
        PriorityQueue.Update.

        In flight, they are kept for when it comes back (docs/rules.md, own-update-in-flight-is-kept); parked,
        its own hints are asked, gated or not.

        :param sequence: of `new` in CLUSTER
        :param missed: there may have been versions between `old` and `new`
        """
        pod = self.pods[uid]
        pod.replace(new, sequence, missed=missed)
        if uid in self.in_flight:
            for incoming in changes:
                self.in_flight.record(incoming)
            return
        self.nominator.updated(uid, old.status.nominated_node_name, new.status.nominated_node_name)
        if pod.pool in (Pool.ACTIVE, Pool.BACKOFF, Pool.ERROR_BACKOFF):
            if priority != pod.priority:
                pod.priority = priority
                self._reorder(pod)
        elif pod in self.parked:
            pod.priority = priority
            self._update_parked(pod, changes, now)

    def _reorder(self, pod: QueuedPod) -> None:
        key = self._sort_key(pod)
        if pod.pool is Pool.ACTIVE:
            self.active.push(key, pod)
        else:
            heap = self.backing_off if pod.pool is Pool.BACKOFF else self.errors
            heap.push((pod.backoff_expiry or 0, key), pod)

    def _update_parked(self, pod: QueuedPod, changes: Sequence[Incoming], now: float) -> None:
        self.parked.add(pod)  # its hints may read another pod now
        for incoming in changes:
            if self._apply_verdict(pod, incoming, now) in (Pool.ACTIVE, Pool.BACKOFF):
                return

    def _apply_verdict(self, pod: QueuedPod, incoming: Incoming, now: float) -> Pool:
        """Judge one parked pod by one event, carry the verdict out, and say so."""
        before = pod.pool
        verdict = self.hints.verdict(pod, incoming)
        if verdict.strategy is Strategy.SKIP:
            if verdict.calls:
                skip = Skip(pods=(pod.ref,), calls=verdict.calls)
                self.effects.append(Judged(incoming=incoming, skipped=(skip,), at=now))
            return before
        after = self._requeue(pod, verdict.strategy, now, incoming.event.label)
        self._moved(pod, incoming, verdict, now)
        move = _move(pod, before, after, verdict)
        self.effects.append(Judged(incoming=incoming, moved=(move,), at=now))
        return after

    def delete(self, uid: str) -> QueuedPod | None:
        """The pod is no longer pending (bound, deleted). If it is in flight, its attempt stays open until
        `done` or `fail`.
        """
        pod = self.pods.pop(uid, None)
        self.nominator.set(uid, "")
        if pod is not None:
            if pod.pool in (Pool.UNSCHEDULABLE, Pool.GATED):
                self.parked.remove(pod)
            elif pod.pool in (Pool.ACTIVE, Pool.BACKOFF, Pool.ERROR_BACKOFF):
                for heap in (self.active, self.backing_off, self.errors):
                    if heap.remove(pod):
                        break
            pod.enter(Pool.NOWHERE)
        return pod

    # -- events ----------------------------------------------------------------------------------------------

    def wants(self, event: ClusterEvent, missed: bool = False) -> bool:
        """Whether anybody who is parked or in flight may care for such an event."""
        return bool(self.parked or self.in_flight) and self.hints.is_interested(event, missed)

    def move_all(
        self, incoming: Incoming, now: float, *, max_priority: int | None = None, except_uid: str = ""
    ) -> None:
        """Something happened in the cluster: retry the parked pods that it may help, then remember it for
        those in flight.

        :param max_priority: only pods of at most this priority (room that a nomination kept is theirs,
            docs/rules.md, ended-nomination-frees-room)
        :param except_uid: the pod whose own doing this was (docs/rules.md, own-drop-wakes-only-others)
        """
        if self.wants(incoming.event, incoming.missed):
            self.move_wanted(incoming, now, Meant(max_priority, except_uid))

    def move_wanted(self, incoming: Incoming, now: float, meant: Meant = waking.EVERYBODY) -> None:
        """As `move_all`, for whoever has asked whether the queue `wants` it: that costs less than to join the
        event's objects.

        The order matters: an event recorded before the parked pods were judged could fall between the two
        (docs/rules.md, judge-then-record).
        """
        if self.parked:
            judge = waking.by_wildcard if incoming.event.is_wildcard else waking.by_class
            self._carry_out(judge(self.parked, self.hints, incoming, meant), incoming, now)
        self.in_flight.record(incoming)

    def _carry_out(self, woken: Woken, incoming: Incoming, now: float) -> None:
        """Move the pods that go, and say what became of all."""
        if not woken:
            return
        moved: list[PodMove] = []
        why = incoming.event.label
        for pod, verdict in woken.moving:
            before = pod.pool
            after = self._requeue(pod, verdict.strategy, now, why)
            self._moved(pod, incoming, verdict, now)
            moved.append(_move(pod, before, after, verdict))
        self.effects.append(
            Judged(
                incoming=incoming,
                moved=tuple(moved),
                skipped=tuple(woken.skipped),
                not_asked=woken.not_asked,
                at=now,
            )
        )

    def _moved(self, pod: QueuedPod, incoming: Incoming, verdict: Verdict, now: float) -> None:
        pod.woken_by = WakeUp(
            event_id=incoming.id,
            event=incoming.event.label,
            object=incoming.object_name,
            plugin=verdict.plugin,
            reason=verdict.reason or (incoming.why if incoming.event == events.FORCE_ACTIVATE else ""),
            own=verdict.own,
            at=now,
            trace=incoming.trace,
        )

    def retry_all(self, incoming: Incoming, now: float) -> None:
        """The queue may have missed something: retry every parked pod, ask the gates again, mark all
        in-flight pods.

        Podyard's own, for a relist, a dead session, a new leader
        (docs/rules.md, missed-changes-retry-everybody).
        """
        if self.parked:
            self._carry_out(waking.one_by_one(self.hints, tuple(self.parked), incoming), incoming, now)
        self.in_flight.record(incoming)

    # -- time ------------------------------------------------------------------------------------------------

    def flush_backoff(self, now: float) -> None:
        """Move pods whose backoff is over to activeQ; runs every second. Source: flushBackoffQCompleted."""
        window = floor(now)
        for heap in (self.errors, self.backing_off):
            while (pod := heap.head()) is not None and (pod.backoff_expiry or 0) < window:
                heap.pop()
                self._to_active(pod, now, BACKOFF_COMPLETE, run_gates=False)

    def flush_unschedulable(self, incoming: Incoming, now: float) -> None:
        """Retry pods parked for longer than that, 5 minutes by default; runs every 30 s
        (docs/rules.md, flush-is-the-safety-net). `incoming` is UnschedulableTimeout.

        Gated pods stay (docs/rules.md, flush-leaves-gated-pods): what gates a pod can be asked any time, so
        no event can have been lost on it. Those whose gate failed are tried: no event tells that a plugin
        would not fail any more.
        """
        late = [pod for pod in self.parked if now - pod.timestamp > self._max_unschedulable_s]
        for pod in late:
            pod.was_flushed = True
        if late:
            pods = [pod for pod in late if not pod.gating_plugin or pod.gate_failed]
            self._carry_out(waking.one_by_one(self.hints, pods, incoming), incoming, now)
            self.in_flight.record(incoming)

    # -- on demand -------------------------------------------------------------------------------------------

    def activate(self, uid: str, now: float, why: str = "") -> None:
        """Move a pod to activeQ without asking hints; in flight, leave a wildcard event for it alone
        (docs/rules.md, activation-in-flight-is-kept).

        :param why: for people
        """
        pod = self.pods.get(uid)
        if pod is None:
            return
        incoming = Incoming(event=events.FORCE_ACTIVATE, new=pod.pod, object_name="/".join(pod.key), why=why)
        if pod.pool in (Pool.UNSCHEDULABLE, Pool.GATED, Pool.BACKOFF, Pool.ERROR_BACKOFF):
            from_heap = self.backing_off.remove(pod) or self.errors.remove(pod)
            if self._to_active(pod, now, incoming.event.label, run_gates=not from_heap) is Pool.ACTIVE:
                self._moved(pod, incoming, Verdict(Strategy.IMMEDIATELY), now)
        elif uid in self.in_flight:
            self.in_flight.record(incoming)

    def nominate(self, uid: str, node: str) -> None:
        """Keep a node for a pod ("" ends it), and have the fact written if that is news."""
        pod = self.pods.get(uid)
        if pod is None:
            return
        if node != self.nominator.node_of(uid) or node != pod.pod.status.nominated_node_name:
            self.effects.append(Nominated(pod=pod.ref, node=node, priority=pod.priority))
        self.nominator.set(uid, node)


def _move(pod: QueuedPod, before: Pool, after: Pool, verdict: Verdict) -> PodMove:
    namespace, name = pod.key
    return PodMove(
        namespace=namespace,
        name=name,
        uid=pod.uid,
        from_=before,
        to=after,
        plugin=verdict.plugin,
        hints=verdict.calls,
        own=verdict.own,
    )


def _gated(pod: QueuedPod, now: float) -> Gated:
    return Gated(
        pod=pod.ref,
        plugin=pod.gating_plugin,
        message=pod.gate_message,
        at=now,
        profile=pod.profile,
        attempts=pod.attempts,
        queued_at=pod.timestamp,
        woken_by=pod.woken_by,
        previous_trace=pod.previous_trace,
        causes=pod.causes,
    )
