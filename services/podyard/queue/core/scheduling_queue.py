"""The scheduling queue: every pending pod is in one pool, and events move it.

    add --------> activeQ --pop--> inFlight --done--> binding (see `attempts`), or gone
                   ^   ^              |
         flush, pop|   |event, flush  |fail
                   |   |              v
                 backoffQ <------ unschedulable / gated        (errors: errorBackoffQ)

Source: pkg/scheduler/backend/queue/scheduling_queue.go of kube-scheduler v1.36.2 (PriorityQueue).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import floor
from typing import Any, NamedTuple

from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.events import ClusterEvent
from podyard.framework.status import PluginError
from podyard.objects.core import Pod
from podyard.proto.decisions import WakeUp
from podyard.queue.core.backoff import Backoff, is_backing_off
from podyard.queue.core.effects import Effect, Gated, Incoming, Judged, Move, Nominated, NotAsked, Skip
from podyard.queue.core.gates import Gates
from podyard.queue.core.in_flight import InFlight
from podyard.queue.core.judge import Judge, Strategy, Verdict
from podyard.queue.core.nominator import Nominator
from podyard.queue.core.parked import NOT_SHARED, Parked, ParkedClass, Shelf, Signers
from podyard.queue.core.pod_heap import PodHeap
from podyard.queue.core.queued_pod import NO_OBSTACLES, Pool, QueuedPod, Watcher

MAX_UNSCHEDULABLE_S = 300.0
"""After more than this, the safety flush retries an unschedulable pod. Source: DefaultPodMaxInUnschedulablePodsDuration."""

IN_FLIGHT_RECORDS = 32
"""Events that a returning pod was judged by, at most, in one attempt's records; semi-arbitrary."""


NAMED_SKIPS = 256
"""Skipped pods that a record names; above that it counts by plugin and reason (DESIGN.md 6)."""


class Meant(NamedTuple):
    """Which parked pods an event is for: those of at most `max_priority` (`None`: any), but `except_uid`."""

    max_priority: int | None
    except_uid: str

    def __contains__(self, pod: object) -> bool:
        return (
            isinstance(pod, QueuedPod)
            and pod.uid != self.except_uid
            and (self.max_priority is None or pod.priority <= self.max_priority)
        )


class Outcome:
    """What one event does to parked pods, as it is found."""

    __slots__ = ("_not_asked", "moved", "skipped")

    def __init__(self, not_asked: Sequence[NotAsked] = ()) -> None:
        self._not_asked = tuple(not_asked)
        self.moved: list[Move] = []
        self.skipped: list[Skip] = []

    def __bool__(self) -> bool:
        return bool(self.moved or self.skipped or self._not_asked)

    def skip(self, pods: Sequence[QueuedPod], verdict: Verdict) -> None:
        """They stay."""
        self.skipped.append(Skip(pods=tuple(pods[:NAMED_SKIPS]), count=len(pods), calls=verdict.calls))

    def judged(self, incoming: Incoming, now: float) -> Judged:
        """As an effect."""
        return Judged(
            incoming=incoming,
            moved=tuple(self.moved),
            skipped=tuple(self.skipped),
            not_asked=self._not_asked,
            at=now,
        )


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
    :param timer: measures hints, seconds
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
    ) -> None:
        self.faults = gates.faults
        """What plugins did amiss, for the shell to take."""
        self.judge = Judge(registries, timer, self.faults)
        self.gates = gates
        self.backoff = backoff or Backoff()
        self._plugins_key = sort_key
        self._sorter = sorter
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

    # -- entering ----------------------------------------------------------------------------------------------

    def add(self, pod: QueuedPod, now: float) -> None:
        """A pod became pending: to activeQ, or gated."""
        self.pods[pod.uid] = pod
        self._to_active(pod, now)
        if pod.pool == "activeQ":
            self.nominator.set(pod.uid, pod.pod.status.nominated_node_name)

    def _to_active(self, pod: QueuedPod, now: float, *, run_gates: bool = True) -> Pool:
        """Into activeQ if no PreEnqueue plugin objects (asked before already, for a pod of the backoffQ)."""
        if run_gates and not self.gates.run(pod):
            return self._gate(pod, now)
        if pod.initial_attempt_at is None:
            pod.initial_attempt_at = now
        self.parked.remove(pod)
        self.active.push(self._sort_key(pod), pod)
        pod.pool = "activeQ"
        return "activeQ"

    def _to_backoff(self, pod: QueuedPod, now: float) -> Pool:
        """Into backoffQ, or errorBackoffQ if no plugin rejected it (PITFALLS 10)."""
        if not self.gates.run(pod):
            return self._gate(pod, now)
        self.parked.remove(pod)
        pool = self.backing_off if pod.rejectors else self.errors
        pool.push((pod.backoff_expiry or 0, self._sort_key(pod)), pod)
        pod.pool = "backoffQ" if pool is self.backing_off else "errorBackoffQ"
        return pod.pool

    def _gate(self, pod: QueuedPod, now: float) -> Pool:
        said = pod.message
        self.parked.add(pod)
        pod.message = pod.gate_message
        if said != pod.gate_message:
            self.effects.append(Gated(pod=pod, plugin=pod.gating_plugin, message=pod.gate_message, at=now))
        return "gated"

    def _requeue(self, pod: QueuedPod, strategy: Strategy, now: float) -> Pool:
        """Carry a verdict out. Source: requeuePodWithQueueingStrategy."""
        if strategy is Strategy.SKIP:
            self.parked.add(pod)
            return pod.pool
        if strategy is Strategy.AFTER_BACKOFF and is_backing_off(pod, now):
            return self._to_backoff(pod, now)
        return self._to_active(pod, now)

    # -- popping and coming back -------------------------------------------------------------------------------

    def has_ready(self) -> bool:
        """Whether `pop` would give a pod."""
        return bool(self.active or self.backing_off)

    def pop(self) -> QueuedPod | None:
        """The next pod to schedule; from backoffQ early if activeQ is empty, never from errorBackoffQ (PITFALLS 19)."""
        pod = self.active.pop() or self.backing_off.pop()
        if pod is None:
            return None
        pod.attempts += 1
        pod.pool = "inFlight"
        self.in_flight.start(pod.uid)
        self.cycle += 1
        return pod

    def done(self, uid: str) -> None:
        """The pod's attempt ended well, or does not matter any more; every pop needs one `done` or `fail` (PITFALLS 2)."""
        self.in_flight.done(uid)
        pod = self.pods.get(uid)
        if pod is not None and pod.pool == "inFlight":
            pod.pool = ""

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
        if pod is not None and pod.pool in ("inFlight", "binding", ""):
            # Rejectors of the attempt before go first, or an error is taken for a rejection (PITFALLS 9).
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
        pool = self._requeue(pod, verdict.strategy, now)
        if verdict.strategy is not Strategy.SKIP and waker is not None:
            self._moved(pod, waker, verdict, now)
            move = _move(pod, "inFlight", pool, verdict)
            self.effects.append(Judged(incoming=waker, moved=(move,), attempt=pod.attempt, at=now))

    def _judge_in_flight(self, pod: QueuedPod, now: float) -> tuple[Verdict, Incoming | None]:
        """The strongest verdict of the events since the pod's pop, and the event that gave it."""
        if not pod.rejectors or pod.uid not in self.in_flight:
            # Without its events nobody can say that none helped: never park (PITFALLS 3).
            return Verdict(Strategy.AFTER_BACKOFF), None
        best: tuple[Verdict, Incoming | None] = (Verdict(Strategy.SKIP), None)
        skipped = 0
        for incoming in self.in_flight.events_for(pod.uid):
            verdict = self.judge.verdict(pod, incoming)
            if verdict.strategy is Strategy.IMMEDIATELY:
                return verdict, incoming
            if verdict.strategy is Strategy.AFTER_BACKOFF and best[1] is None:
                best = (verdict, incoming)
            elif verdict.calls and verdict.strategy is Strategy.SKIP and skipped < IN_FLIGHT_RECORDS:
                skipped += 1
                skip = Skip(pods=(pod,), calls=verdict.calls)
                self.effects.append(Judged(incoming=incoming, skipped=(skip,), attempt=pod.attempt, at=now))
        return best

    def give_back(self, uid: str, now: float) -> None:
        """The pod's attempt never began: to activeQ again, nothing counted but the attempt."""
        pod = self.pods.get(uid)
        if pod is not None and pod.pool == "inFlight":
            self._to_active(pod, now)
        self.in_flight.done(uid)

    def resume(self, pod: QueuedPod) -> None:
        """A pod that was deleted while in flight is there after all: when its attempt fails it goes to activeQ or backoff."""
        pod.pool = "inFlight"
        self.pods[pod.uid] = pod
        self.in_flight.record(Incoming(event=events.FORCE_ACTIVATE, new=pod.pod, object_name="/".join(pod.key)))

    def restore(self, pod: QueuedPod, now: float) -> None:
        """Take a pod in as its last attempt left it: to backoffQ or errorBackoffQ while its backoff lasts, else to activeQ."""
        self.pods[pod.uid] = pod
        self.nominator.set(pod.uid, pod.pod.status.nominated_node_name)
        self._requeue(pod, Strategy.AFTER_BACKOFF, now)

    # -- changes of the pod itself -----------------------------------------------------------------------------

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
        """A pending pod's object changed; `changes` are the events that this is. Source: PriorityQueue.Update.

        In flight, they are kept for when it comes back (PITFALLS 4); parked, its own hints are asked, gated or not.

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
        if pod.pool in ("activeQ", "backoffQ", "errorBackoffQ"):
            if priority != pod.priority:
                pod.priority = priority
                self._reorder(pod)
        elif pod in self.parked:
            pod.priority = priority
            self._update_parked(pod, changes, now)

    def _reorder(self, pod: QueuedPod) -> None:
        key = self._sort_key(pod)
        if pod.pool == "activeQ":
            self.active.push(key, pod)
        else:
            heap = self.backing_off if pod.pool == "backoffQ" else self.errors
            heap.push((pod.backoff_expiry or 0, key), pod)

    def _update_parked(self, pod: QueuedPod, changes: Sequence[Incoming], now: float) -> None:
        self.parked.add(pod)  # its hints may read another pod now
        for incoming in changes:
            if self._apply_verdict(pod, incoming, now) in ("activeQ", "backoffQ"):
                return

    def _apply_verdict(self, pod: QueuedPod, incoming: Incoming, now: float) -> Pool:
        """Judge one parked pod by one event, carry the verdict out, and say so."""
        before = pod.pool
        verdict = self.judge.verdict(pod, incoming)
        if verdict.strategy is Strategy.SKIP:
            if verdict.calls:
                skip = Skip(pods=(pod,), calls=verdict.calls)
                self.effects.append(Judged(incoming=incoming, skipped=(skip,), at=now))
            return before
        after = self._requeue(pod, verdict.strategy, now)
        self._moved(pod, incoming, verdict, now)
        move = _move(pod, before, after, verdict)
        self.effects.append(Judged(incoming=incoming, moved=(move,), at=now))
        return after

    def delete(self, uid: str) -> QueuedPod | None:
        """The pod is no longer pending (bound, deleted). If it is in flight, its attempt stays open until `done` or `fail`."""
        pod = self.pods.pop(uid, None)
        self.nominator.set(uid, "")
        if pod is not None:
            if pod.pool in ("unschedulable", "gated"):
                self.parked.remove(pod)
            else:
                for heap in (self.active, self.backing_off, self.errors):
                    if heap.remove(pod):
                        break
            pod.pool = ""
        return pod

    # -- events ------------------------------------------------------------------------------------------------

    def wants(self, event: ClusterEvent, missed: bool = False) -> bool:
        """Whether `move_all` would do anything with such an event: ask first, it costs a lookup."""
        return bool(self.parked or self.in_flight) and self.judge.is_interested(event, missed)

    def move_all(
        self, incoming: Incoming, now: float, *, max_priority: int | None = None, except_uid: str = ""
    ) -> None:
        """Something happened in the cluster: retry the parked pods that it may help, then remember it for those in flight.

        The order matters: an event recorded before the parked pods were judged could fall between the two (PITFALLS 16).

        :param max_priority: only pods of at most this priority (room that a nomination kept is theirs, PITFALLS 27)
        :param except_uid: the pod whose own doing this was (PITFALLS 6)
        """
        if not self.wants(incoming.event, incoming.missed):
            return
        if self.parked:
            meant = None
            if max_priority is not None or except_uid:
                meant = Meant(max_priority, except_uid)
            if incoming.event.is_wildcard:
                pods = self._all_but_gated(incoming)
                self._move(pods if meant is None else [pod for pod in pods if pod in meant], incoming, now)
            else:
                self._move_classes(incoming, now, meant)
        self.in_flight.record(incoming)

    def _all_but_gated(self, incoming: Incoming) -> list[QueuedPod]:
        listeners = self.judge.listeners(incoming.event, incoming.missed)
        return [
            pod for pod in self.parked if not pod.gating_plugin or pod.gating_plugin in listeners.get(pod.profile, ())
        ]

    def _move(self, pods: Iterable[QueuedPod], incoming: Incoming, now: float) -> None:
        """Judge these pods, each for itself."""
        outcome = Outcome()
        for pod in pods:
            verdict = self.judge.verdict(pod, incoming)
            if verdict.strategy is Strategy.SKIP:
                outcome.skip([pod], verdict)
            else:
                self._carry_out(outcome, pod, verdict, incoming, now)
        if outcome:
            self.effects.append(outcome.judged(incoming, now))

    def _move_classes(self, incoming: Incoming, now: float, meant: Meant | None) -> None:
        """Judge each class of pods once, and the pod that the event is about for itself."""
        itself = self._about_itself(incoming)
        concerned, not_asked = self._concerned(incoming, itself)
        outcome = Outcome(not_asked)
        verdicts: list[tuple[list[QueuedPod], Verdict]] = []
        for one in concerned:
            pods = [pod for pod in one.pods.values() if pod is not itself and (meant is None or pod in meant)]
            if itself is not None and itself.uid in one.pods and (meant is None or itself in meant):
                verdicts.append(([itself], self.judge.verdict(itself, incoming)))
            if pods:
                verdicts.append((pods, self.judge.verdict(pods[0], incoming)))
        moving: list[tuple[QueuedPod, Verdict]] = []
        for pods, verdict in verdicts:
            if verdict.strategy is Strategy.SKIP:
                outcome.skip(pods, verdict)
            else:
                moving += [(pod, verdict) for pod in pods]
        moving.sort(key=lambda entry: entry[0].park_order)
        for pod, verdict in moving:
            self._carry_out(outcome, pod, verdict, incoming, now)
        if outcome:
            self.effects.append(outcome.judged(incoming, now))

    def _concerned(self, incoming: Incoming, itself: QueuedPod | None) -> tuple[list[ParkedClass], list[NotAsked]]:
        """Classes that the event may move, and what the plugins' indexes leave out.

        While a record names every skipped pod, all are asked: people see each pod's own reason.
        """
        shelves = self.parked.shelves(self.judge.watchers(incoming.event, incoming.missed))
        by_index = not incoming.missed and _standing(shelves) > NAMED_SKIPS
        found: dict[Hashable, ParkedClass] = {}
        for profile, watcher, shelf in shelves:
            if by_index:
                matching = self.judge.matching(profile, watcher, incoming.event)
                found.update(shelf.candidates(matching, incoming.old, incoming.new))
            else:
                found.update(shelf.every())
        if by_index and itself is not None:
            own = self.parked.class_of(itself)
            if any(profile == own.profile and watcher in own.watchers for profile, watcher, _ in shelves):
                found[own.key] = own
        asked = list(found.values())
        return asked, _left_out(shelves, asked) if by_index else []

    def _about_itself(self, incoming: Incoming) -> QueuedPod | None:
        """The parked pod that the event is about: hints may know it by its uid, which no class does."""
        changed = incoming.old if incoming.new is None else incoming.new
        return self.parked.get(changed.metadata.uid) if isinstance(changed, Pod) else None

    def _carry_out(self, outcome: Outcome, pod: QueuedPod, verdict: Verdict, incoming: Incoming, now: float) -> None:
        before = pod.pool
        after = self._requeue(pod, verdict.strategy, now)
        self._moved(pod, incoming, verdict, now)
        outcome.moved.append(_move(pod, before, after, verdict))

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
        """The queue may have missed something: retry every parked pod, ask the gates again, mark all in-flight pods.

        Podyard's own, for a relist, a dead session, a new leader (DESIGN.md 3 and 4).
        """
        if self.parked:
            self._move(tuple(self.parked), incoming, now)
        self.in_flight.record(incoming)

    # -- time --------------------------------------------------------------------------------------------------

    def flush_backoff(self, now: float) -> None:
        """Move pods whose backoff is over to activeQ; runs every second. Source: flushBackoffQCompleted."""
        window = floor(now)
        for heap in (self.errors, self.backing_off):
            while (pod := heap.head()) is not None and (pod.backoff_expiry or 0) < window:
                heap.pop()
                self._to_active(pod, now, run_gates=False)

    def flush_unschedulable(self, incoming: Incoming, now: float) -> None:
        """Retry pods parked for more than 5 minutes; runs every 30 s (PITFALLS 11). `incoming` is UnschedulableTimeout.

        Gated pods stay, as in the reference: what gates a pod can be asked any time, so no event can have been lost on it. Those whose
        gate failed are tried: no event tells that a plugin would not fail any more.
        """
        late = [pod for pod in self.parked if now - pod.timestamp > MAX_UNSCHEDULABLE_S]
        for pod in late:
            pod.was_flushed = True
        if late:
            self._move([pod for pod in late if not pod.gating_plugin or pod.gate_failed], incoming, now)
            self.in_flight.record(incoming)

    # -- on demand ---------------------------------------------------------------------------------------------

    def activate(self, uid: str, now: float, why: str = "") -> None:
        """Move a pod to activeQ without asking hints; in flight, leave a wildcard event for it alone (PITFALLS 5).

        :param why: for people
        """
        pod = self.pods.get(uid)
        if pod is None:
            return
        incoming = Incoming(event=events.FORCE_ACTIVATE, new=pod.pod, object_name="/".join(pod.key), why=why)
        if pod.pool in ("unschedulable", "gated", "backoffQ", "errorBackoffQ"):
            from_heap = self.backing_off.remove(pod) or self.errors.remove(pod)
            if self._to_active(pod, now, run_gates=not from_heap) == "activeQ":
                self._moved(pod, incoming, Verdict(Strategy.IMMEDIATELY), now)
        elif uid in self.in_flight:
            self.in_flight.record(incoming)

    def nominate(self, uid: str, node: str) -> None:
        """Keep a node for a pod ("" ends it), and have the fact written if that is news."""
        pod = self.pods.get(uid)
        if pod is None:
            return
        if node != self.nominator.node_of(uid) or node != pod.pod.status.nominated_node_name:
            self.effects.append(Nominated(pod=pod, node=node))
        self.nominator.set(uid, node)


def _move(pod: QueuedPod, before: Pool, after: Pool, verdict: Verdict) -> Move:
    return Move(pod=pod, from_=before, to=after, plugin=verdict.plugin, own=verdict.own, calls=verdict.calls)  # pyright: ignore[reportArgumentType] - neither is "binding"


def _standing(shelves: Iterable[tuple[str, Watcher, Shelf]]) -> int:
    """How many pods stand on these shelves; one with several rejectors counts for each, own hints beside the
    reference's do not."""
    plain = own = 0
    for _, watcher, shelf in shelves:
        if watcher.own:
            own += shelf.pods
        else:
            plain += shelf.pods
    return max(plain, own)


def _left_out(shelves: Iterable[tuple[str, Watcher, Shelf]], asked: Iterable[ParkedClass]) -> list[NotAsked]:
    """Pods of these shelves that are in none of the classes asked, by plugin; own hints do not count beside
    the reference's."""
    left = {(profile, watcher): shelf.pods for profile, watcher, shelf in shelves}
    for profile, watcher, _ in shelves:
        if watcher.own and (profile, Watcher(watcher.plugin)) in left:
            del left[profile, watcher]
    for one in asked:
        for watcher in one.watchers:
            if (one.profile, watcher) in left:
                left[one.profile, watcher] -= len(one.pods)
    counts: dict[str, int] = {}
    for (_, watcher), pods in left.items():
        counts[watcher.plugin] = counts.get(watcher.plugin, 0) + pods
    return [NotAsked(plugin=plugin, count=count) for plugin, count in counts.items() if count]
