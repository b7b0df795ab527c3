"""The queue of one term as a pure state machine: `step(message, now) -> effects`.

    Begin ---> serves (Asked, Changed, Listed, Happened, Tick) ---> over, by StepDown

Before `Begin` and after `StepDown` it is told in vain: nothing changes, nothing is said.
"""

from collections.abc import Callable, Collection, Sequence
from enum import Enum, auto
from math import floor
from typing import Any, Final

from podyard.cluster.changes import Change
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.framework import events
from podyard.proto import subjects
from podyard.proto.message import PodRef
from podyard.queue.core import listing, messages, restart
from podyard.queue.core.changes import Changes, is_pending
from podyard.queue.core.effects import (
    AttemptEnded,
    Began,
    Differed,
    Effect,
    Gated,
    NominationOver,
    PluginFailed,
    PodGone,
    StepDown,
)
from podyard.queue.core.leader import Leader
from podyard.queue.core.messages import Incoming, Message
from podyard.queue.core.once import Once
from podyard.queue.core.recorded import Recorded
from podyard.queue.core.requests import Requests
from podyard.queue.core.tally import Counted

LINGER_S: Final = 0.002
FLUSH_UNSCHEDULABLE_EVERY_S: Final = 30.0
"""Source: pkg/scheduler/backend/queue/scheduling_queue.go, Run (flushUnschedulablePodsLeftover)."""


class Phase(Enum):
    """How far a term is."""

    WAITING = auto()
    """For `Begin`."""
    LEADING = auto()
    OVER = auto()


class Queue:
    """One term. Owned by one task; not to be used after `StepDown`."""

    def __init__(
        self,
        leader: Leader,
        view: ClusterView,
        profiles: Collection[str],
        *,
        instance: str = "",
        linger_s: float = LINGER_S,
    ) -> None:
        """
        :param leader: with an empty queue
        :param view: what the informer keeps up to date
        :param profiles: names of the profiles that are scheduled here
        :param instance: of this process, for people
        :param linger_s: how long a pop that had to wait goes on waiting for more pods, seconds
        """
        self.leader = leader
        self.phase = Phase.WAITING
        self.filling: PodView | None = None
        """The pod that is being taken in, while `Begin` is told: what the core raises on then."""
        self._view = view
        self._profiles = frozenset(profiles)
        self._queue = leader.queue
        self._changes = Changes(leader, profiles)
        self._requests = Requests(leader, view, instance, linger_s)
        self._recorded = Recorded()
        self._bare_events = Once()
        self._tick_at = 0.0
        self._flush_at = 0.0
        self._handlers: dict[type[Message], Callable[[Any, float], None]] = {
            messages.Begin: self._on_begin,
            messages.Asked: self._on_asked,
            messages.Changed: self._on_changed,
            messages.Listed: self._on_listed,
            messages.Happened: self._on_happened,
            messages.Tick: self._on_tick,
        }

    @property
    def epoch(self) -> int:
        """Of the term."""
        return self.leader.epoch

    @property
    def wake_at(self) -> float | None:
        """When to tell a `Tick`, seconds since 1970, UTC; None: only a message changes anything."""
        return min(self._tick_at, self._requests.wake_at) if self.phase is Phase.LEADING else None

    @property
    def answering(self) -> int | None:
        """Ticket of a pop that has waited and is being answered: what the core raises on then; None: there is
        none.
        """
        return self._requests.in_hand

    def counts(self) -> dict[str, int]:
        """How many pods are in each pool."""
        return listing.counts(self.leader)

    def rejected(self) -> dict[tuple[str, ...], int]:
        """How many pods of the queue were rejected, by plugin and profile. Any thread may ask."""
        return listing.rejected(self.leader)

    def in_flight_events(self) -> dict[str, int]:
        """Events that are kept for pods in flight, by label. Any thread may ask."""
        return self._queue.in_flight.counts()

    def take_counted(self) -> Counted | None:
        """What was counted since last asked; None: nothing."""
        return self._queue.tally.take() if self._queue.tally else None

    @property
    def counted(self) -> int:
        """How many changes are counted that nobody has taken yet."""
        return len(self._queue.tally.handled)

    def step(self, message: Message, now: float) -> Sequence[Effect]:
        """Take one message in; returns what is to be done, in this order. `now` is seconds since 1970,
        UTC.
        """
        expected = Phase.WAITING if isinstance(message, messages.Begin) else Phase.LEADING
        if self.phase is not expected:
            return ()
        self._handlers[type(message)](message, now)
        self._requests.pods_came(now)
        if self._queue.effects:
            self._keep_books(now)
        if self._queue.faults:
            faults = self._queue.faults.take()
            self._do(*[PluginFailed(fault.plugin, fault.point, fault.detail) for fault in faults])
        return self._queue.take_effects()

    def _keep_books(self, now: float) -> None:
        """Note who gets a record. Records of pods that are gone are purged, whoever writes them."""
        for effect in self._queue.effects[:]:
            if isinstance(effect, Gated):
                self._recorded.add(effect.pod.uid)
            elif isinstance(effect, AttemptEnded) and effect.outcome != "scheduled":
                if effect.pod.uid in self._view.pods_by_uid:
                    self._recorded.add(effect.pod.uid)
                else:
                    self._do(*self._recorded.purge(effect.pod, now))

    def _do(self, *effects: Effect) -> None:
        self._queue.effects.extend(effects)

    # ---- begin ---------------------------------------------------------------------------------------------

    def _on_begin(self, begin: messages.Begin, now: float) -> None:
        self.phase = Phase.LEADING
        self._tick_at, self._flush_at = floor(now) + 1, now + FLUSH_UNSCHEDULABLE_EVERY_S
        pods = self._view.pods_by_uid
        count = restart.fill(self._queue, pods.values(), begin.records, self._profiles, now, self._note_filling)
        self.filling = None
        for uid, record in begin.records.items():
            if uid in pods:
                self._recorded.add(uid)
            else:
                self._do(*self._recorded.purge(PodRef(namespace=record.namespace, name=record.name, uid=uid), now))
        for pod in begin.nominated:
            if not is_pending(pods.get(pod.uid), self._profiles):
                self._do(NominationOver(pod))
        self._do(Began(count))

    def _note_filling(self, pod: PodView) -> None:
        self.filling = pod

    # ---- what comes in -------------------------------------------------------------------------------------

    def _on_asked(self, asked: messages.Asked, now: float) -> None:
        said = self._requests.answer(asked, now)
        if said is not None:
            self._do(said)
        if isinstance(said, StepDown):
            self.phase = Phase.OVER

    def _on_changed(self, changed: messages.Changed, now: float) -> None:
        for change in changed.changes:
            self._changes.apply(change, now)
            if change.new is None and change.resource == subjects.PODS:
                self._pod_gone(change, now)

    def _pod_gone(self, change: Change, now: float) -> None:
        pod = PodRef(namespace=change.key.namespace, name=change.key.name, uid=change.uid)
        self._do(PodGone(pod), *self._recorded.gone(pod, now))

    def _on_listed(self, listed: messages.Listed, now: float) -> None:
        """Everybody is retried, since not all is known that has happened."""
        wrong = self._changes.compare(self._view.pods_by_uid, now)
        if wrong:
            self._do(Differed(wrong))
        position = self._view.position
        why = f"the queue has listed the cluster again: {listed.reason}"
        retry = Incoming(event=events.RETRY_ALL, id=f"listed-{position}", position=position, why=why)
        self._queue.retry_all(retry, now)

    def _on_happened(self, happened: messages.Happened, now: float) -> None:
        if self._bare_events.is_new(happened.id):
            for incoming in happened.events:
                self.leader.recent.note(incoming, now)
                self._queue.move_all(incoming, now)

    def _on_tick(self, tick: messages.Tick, now: float) -> None:
        """Backoffs end at whole seconds; pops that wait have deadlines of their own."""
        del tick
        if now >= self._tick_at:
            self._tick_at = floor(now) + 1
            self.leader.tick(now)
            if now >= self._flush_at:
                self._flush_at = now + FLUSH_UNSCHEDULABLE_EVERY_S
                timeout = Incoming(event=events.UNSCHEDULABLE_TIMEOUT, id=f"timeout-{now:.0f}")
                self._queue.flush_unschedulable(timeout, now)
            self._do(*self._recorded.due(now))
        self._do(*self._requests.hand_out(now))
