"""One term as leader: start from what is on the bus, serve, tick, end."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn, TypeAlias

import anyio

from podyard.bus import Delivery, Outgoing, Request, Subscription
from podyard.cluster.changes import Change
from podyard.cluster.informer import Informer
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.profile import Profile
from podyard.proto import codec, streams, subjects
from podyard.proto.decisions import AttemptRecord, message_id
from podyard.queue import assembly, attempt_spans, records, rescues
from podyard.queue.bare_events import BareEvents
from podyard.queue.core import listing, restart
from podyard.queue.core.changes import Changes, is_pending
from podyard.queue.core.effects import AttemptEnded, Effect, Gated, Incoming, Judged, Nominated, NominationOver
from podyard.queue.earlier import Earlier
from podyard.queue.endpoints import MAX_POPS, QueueEndpoints
from podyard.queue.instruments import Instruments
from podyard.queue.nominations import Nominations
from podyard.queue.outbox import Outbox
from podyard.queue.settings import QueueSettings
from podyard.runtime.service import Service
from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.guard import Guard

Told: TypeAlias = Cause | Sequence[Change] | str
"""What the core is told: what was asked, what changed, or in a word what else."""

FLUSH_UNSCHEDULABLE_EVERY_S: Final = 30
END_WITHIN_S: Final = 2.0
PURGE_AGAIN_S: Final = 10.0
"""How much later the records of a deleted pod are purged once more: a scheduler may store that of its last attempt after the first time."""


class Term:
    """The queue while this process leads. All state is owned by the event loop; callbacks are synchronous."""

    def __init__(
        self,
        service: Service[QueueSettings],
        settings: QueueSettings,
        informer: Informer,
        view: ClusterView,
        profiles: Sequence[Profile],
        registered: Mapping[str, EventRegistry],
        instruments: Instruments,
        boundary: Boundary,
        epoch: int,
        found: Earlier,
        *,
        ended: Callable[[], None],
    ) -> None:
        """
        :param found: what earlier leaders left
        :param ended: called when the core has raised: with a core the view is made anew, too
        """
        self._service = service
        self._log = service.log.bind(epoch=epoch)
        self._now = service.clock.now
        self._informer = informer
        self._view = view
        self._boundary = boundary
        self._ended_by_core = ended
        self._guard: Guard[Told] = Guard(self._failed)
        self._filling: PodView | None = None
        """Of the pods that the queue is filled with, the one that is being put in."""
        self._found = found
        self._instruments = instruments
        self._leader = assembly.build_leader(
            profiles,
            registered,
            settings,
            epoch=epoch,
            view=view,
            new_trace=lambda: service.spans.new_trace(attempt_spans.ROOT),
            timer=time.perf_counter,
        )
        self._queue = self._leader.queue
        self._profiles = tuple(profile.name for profile in profiles)
        self._digests = {profile.name: profile.digest for profile in profiles}
        self._changes = Changes(self._leader, self._profiles)
        self._nominations = Nominations(service.bus, self._log, epoch, view.version_of, self._is_pending)
        self._outbox = Outbox(service.bus, self._log, instruments.lost_records.inc)
        self._bare_events = BareEvents()
        self._recorded: set[str] = set()
        """Uids of pods with records in DECISIONS, to be purged after them."""
        self._purge_again: deque[tuple[float, str]] = deque()
        """When (monotonic clock), and the subject."""
        self._endpoints = QueueEndpoints(
            self._leader,
            position=lambda: informer.position,
            settled=self._settle,
            popped=instruments.pops.inc,
            instance=service.instance,
            linger_s=settings.pop_linger_s,
            outranked=self._end,
            now=self._now,
            guard=self._guard,
            set_aside=boundary.refusal,
        )
        self._began = False
        self._tasks = anyio.create_task_group()
        self.outranked_by = 0
        """The epoch above its own of which a scheduler told, and which ended the term; 0: none."""

    async def run(self) -> None:
        """Lead until cancelled, or until a scheduler knows of a higher epoch."""
        await self._informer.synced()
        self._begin(self._found)
        if self._guard.over:
            return
        subscriptions: list[Subscription] = []
        async with self._tasks as tasks:
            tasks.start_soon(self._nominations.run)
            tasks.start_soon(self._outbox.run)
            try:
                await self._serve(subscriptions)
                await self._tick()
            finally:
                self._began = False
                self._instruments.show_pools(None)
                self._endpoints.end()
                with anyio.move_on_after(END_WITHIN_S, shield=True):
                    for subscription in subscriptions:
                        await subscription.close()
                    await self._outbox.flush()

    def _end(self, epoch: int) -> None:
        """Schedulers listen to the highest epoch only: whoever has it leads, or has to be outranked by the next term."""
        self._log.warning("steps down: a scheduler knows of a higher epoch", known=epoch)
        self.outranked_by = epoch
        self._tasks.cancel_scope.cancel()

    def _failed(self, told: Told, error: Exception) -> None:
        """The core raised: the term ends, without what it was told. Who asks is to ask the next leader."""
        self._boundary.raised(self._cause(told), error)
        self._endpoints.end()
        self._ended_by_core()

    def _cause(self, told: Told) -> Cause:
        if isinstance(told, Cause):
            return told
        if self._filling is not None:
            subject = subjects.object_(subjects.PODS, *self._filling.key)
            return Cause(Delivery(subject, b"", self._filling.sequence))
        found = None
        if not isinstance(told, str):
            found = causes.of(told, self._informer.delivery, self._view.version_of)
        return found or causes.unknown(told if isinstance(told, str) else "Changed")

    def _fill(self, found: Earlier) -> int:
        pods = self._view.pods_by_uid.values()
        count = restart.fill(self._queue, pods, found.records, self._profiles, self._now(), self._note_filling)
        self._filling = None
        return count

    def _note_filling(self, pod: PodView) -> None:
        self._filling = pod

    def _begin(self, found: Earlier) -> None:
        """Fill the queue. No await in here: the view must not move between the filling and the first change."""
        pods = self._view.pods_by_uid
        count = self._guard.call("pods", self._fill, found)
        if count is None:
            return
        for uid, record in found.records.items():
            if uid in pods:
                self._recorded.add(uid)
            else:
                self._purge(record.namespace, record.name, uid)
        for namespace, name, uid in found.nominated:
            if not self._is_pending(uid):
                self._nominations.put(namespace, name, uid, over=True)
        self._began = True
        self._settle()
        self._instruments.show_pools(lambda: listing.counts(self._leader))
        self._log.info("leads the queue", pods=count, position=self._informer.position)

    async def _serve(self, found: list[Subscription]) -> None:
        """Answer; `found` is given what is to be closed."""
        endpoints, serve = self._endpoints, self._service.endpoints.serve
        handlers = {
            "done": endpoints.done,
            "heartbeat": endpoints.heartbeat,
            "activate": endpoints.activate,
            "preempting": endpoints.preempting,
            "list": endpoints.list,
            "would": endpoints.would,
        }
        found.append(await serve("pop", subjects.queue_verb("pop"), endpoints.pop, max_inflight=MAX_POPS))
        for verb, handler in handlers.items():
            found.append(await serve(verb, subjects.queue_verb(verb), handler))
        found.append(await self._service.bus.subscribe(subjects.ALL_BARE_EVENTS, self._on_bare_event))

    # -- what comes in -----------------------------------------------------------------------------------------

    def on_changes(self, changes: list[Change]) -> None:
        """The view has changed."""
        if not self._began:
            return
        told = causes.told(changes, self._informer.delivery)
        self._guard.call(told, self._follow, told)
        self._settle()

    def _follow(self, changes: Sequence[Change]) -> None:
        now = self._now()
        for change in changes:
            self._changes.apply(change, now)
            if change.new is None and change.resource == subjects.PODS:
                self._pod_gone(change)

    def _pod_gone(self, change: Change) -> None:
        key = change.key
        self._nominations.gone(key.namespace, key.name, change.uid)
        if change.uid in self._recorded:
            self._purge(key.namespace, key.name, change.uid)

    def _is_pending(self, uid: str) -> bool:
        return is_pending(self._view.pods_by_uid.get(uid), self._profiles)

    def on_listed(self, reason: str) -> None:
        """The view was listed again: what happened in between is not known in full, so everybody is retried."""
        if not self._began:
            return
        self._guard.call(reason, self._list_again, reason)
        self._settle()

    def _list_again(self, reason: str) -> None:
        now, position = self._now(), self._informer.position
        wrong = self._changes.compare(self._view.pods_by_uid, now)
        if wrong:
            self._log.warning("the queue had other pods than the cluster listed: changes were missed", pods=wrong)
        why = f"the queue has listed the cluster again: {reason}"
        retry = Incoming(event=events.RETRY_ALL, id=f"listed-{position}", position=position, why=why)
        self._queue.retry_all(retry, now)

    def _on_bare_event(self, subject: str, payload: bytes, trace: str) -> None:
        if not self._began:
            return
        for incoming in self._bare_events.read(payload, trace):
            self._guard.call(Cause(Request(subject, payload, trace)), self._happened, incoming)
        self._settle()

    def _happened(self, incoming: Incoming) -> None:
        now = self._now()
        self._leader.recent.note(incoming, now)
        self._queue.move_all(incoming, now)

    async def _tick(self) -> NoReturn:
        """Every whole second, since backoffs end at whole seconds."""
        flushed = time.monotonic()
        while True:
            now = self._now()
            await anyio.sleep(math.floor(now) + 1 - now)
            now = self._now()
            self._guard.call("Tick", self._leader.tick, now)
            if time.monotonic() - flushed >= FLUSH_UNSCHEDULABLE_EVERY_S:
                flushed = time.monotonic()
                timeout = Incoming(event=events.UNSCHEDULABLE_TIMEOUT, id=f"timeout-{now:.0f}")
                self._guard.call(timeout.id, self._queue.flush_unschedulable, timeout, now)
            while self._purge_again and self._purge_again[0][0] <= time.monotonic():
                self._outbox.purge(streams.DECISIONS.name, self._purge_again.popleft()[1])
            self._settle()

    # -- what goes out -----------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Carry the core's effects out, and hand pods to those who wait. What a core wanted before it raised is not done."""
        if self._guard.over:
            return
        if self._queue.effects:
            effects = self._queue.take_effects()
            for effect in effects:
                self._carry_out(effect)
            for judged in records.merged(effect for effect in effects if isinstance(effect, Judged)):
                self._judged(judged)
        if self._queue.faults:
            for fault in self._queue.faults.take():
                self._instruments.plugin_faults.told(fault.plugin, fault.point, fault.detail)
        self._endpoints.wake()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case AttemptEnded():
                self._ended(effect)
            case Judged():
                pass  # told together, after the others
            case Gated():
                self._record(records.gated_record(effect, self._leader.epoch))
            case Nominated(pod=pod, node=node):
                self._nominations.put(*pod.key, pod.uid, node=node, priority=pod.priority)
            case NominationOver(namespace=namespace, name=name, uid=uid):
                self._nominations.put(namespace, name, uid, over=True)

    def _ended(self, ended: AttemptEnded) -> None:
        self._instruments.ended(ended)
        attempt_spans.attempt_ended(self._service.spans, ended)
        pod = ended.attempt.pod
        if ended.outcome == "scheduled":
            if rescues.is_rescue(ended):
                self._rescued(ended)
        elif pod.uid not in self._view.pods_by_uid:
            self._purge(*pod.key, pod.uid)
        elif ended.by_queue:
            self._record(records.ended_record(ended))
        else:
            self._recorded.add(pod.uid)

    def _rescued(self, ended: AttemptEnded) -> None:
        """A hint is wrong: told with all that is needed to see which."""
        self._instruments.rescued.inc()
        story = rescues.story(ended, self._leader.recent, self._digests[ended.attempt.pod.profile])
        self._log.warning("a pod was scheduled right after the safety flush: a queueing hint is wrong", **story)

    def _judged(self, judged: Judged) -> None:
        self._instruments.judged(judged)
        attempt_spans.pods_moved(self._service.spans, judged)
        record = records.requeue_record(judged)
        self._outbox.put(Outgoing(subjects.requeue(record.event_id), codec.encode(record), trace=judged.incoming.trace))

    def _record(self, record: AttemptRecord) -> None:
        self._recorded.add(record.uid)
        subject = subjects.decisions(record.namespace, record.name, record.uid)
        self._outbox.put(Outgoing(subject, codec.encode(record), message_id=message_id(record)))

    def _purge(self, namespace: str, name: str, uid: str) -> None:
        self._recorded.discard(uid)
        subject = subjects.decisions(namespace, name, uid)
        self._outbox.purge(streams.DECISIONS.name, subject)
        self._purge_again.append((time.monotonic() + PURGE_AGAIN_S, subject))
