"""The queue: the real core as leader or standby, with a shell that lives in virtual time."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.framework.event_registry import EventRegistry
from podyard.proto.facts import Nomination
from podyard.proto.message import PodRef
from podyard.proto.queue_api import PopReply
from podyard.queue import assembly, records
from podyard.queue.core import messages
from podyard.queue.core.effects import (
    AttemptEnded,
    Declined,
    Differed,
    Effect,
    Nominated,
    NominationOver,
    Reply,
    StepDown,
)
from podyard.queue.core.leader import Leader
from podyard.queue.core.queue import Queue
from podyard.queue.settings import QueueSettings
from tests.support import stored
from tests.unit.queue.small_world.log import Reader, follows_base, listed
from tests.unit.queue.small_world.surroundings import Respond, Surroundings, profile_of

UNSAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

_registered: dict[str, EventRegistry] = {}


class QueuePart:
    """One queue process; it leads once `lead` was called. As `podyard.queue.term`, without the safety
    flush.
    """

    def __init__(self, world: Surroundings) -> None:
        self.world = world
        self.view = ClusterView()
        self.core: Queue | None = None
        self.over = False
        self._tickets = itertools.count(1)
        self._waiting: dict[int, Respond] = {}
        """Requests that were not answered yet, by ticket."""
        self._rings_at = 0.0
        listed(world.log, self.view, follows_base)
        self.reader = Reader(world.log, world.lag(), follows_base, self._deliver, self.view.advance)
        self.reader.skip_to_end()

    @property
    def leader(self) -> Leader | None:
        return None if self.core is None else self.core.leader

    def lead(self, epoch: int) -> None:
        profile = profile_of("queue")
        if not _registered:
            _registered.update(assembly.registries([profile]))
        self.core = assembly.build_queue(
            [profile],
            _registered,
            QueueSettings(),
            epoch=epoch,
            view=self.view,
            instance="queue",
            new_trace=lambda keep: UNSAMPLED,
            timer=lambda: 0.0,
        )
        self.core.leader.queue.flush_unschedulable = lambda *_: None  # type: ignore[method-assign]
        self._step(messages.Begin(dict(self.world.last_records)))

    def stop(self) -> None:
        """The process dies."""
        self.over = True
        self.reader.stop()

    def cut_off(self, seconds: float) -> None:
        """It hears nothing of the cluster for so long, and lists it then."""
        self.reader.frozen_until = self.world.now + seconds

        def lists() -> None:
            if not self.over:
                self.relist()

        self.world.clock.after(seconds, lists)

    def relist(self) -> None:
        """It lost touch, and lists the cluster again."""
        self._changed(listed(self.world.log, self.view, follows_base))
        self.reader.skip_to_end()
        self._step(messages.Listed("it lost touch"))

    def _deliver(self, delivery: Delivery) -> None:
        self._changed(self.view.apply(delivery))
        assert not self.view.take_effects()

    def _changed(self, changes: Iterable[Change]) -> None:
        self._step(messages.Changed(list(changes)))

    def serve(self, verb: str, request: Any, respond: Respond) -> None:
        """A request arrives."""
        del verb
        if not self.over and self.core is not None:
            ticket = next(self._tickets)
            self._waiting[ticket] = respond
            self._step(messages.Asked(ticket, request))

    # ---- the core

    def _step(self, message: messages.Message) -> None:
        if self.core is None:
            return
        for effect in self.core.step(message, self.world.now):
            self._carry_out(self.core, effect)
        self._set_alarm(self.core)

    def _set_alarm(self, core: Queue) -> None:
        """See that the core is told in time what it waits for."""
        now, due = self.world.now, core.wake_at
        assert due is not None
        if self._rings_at <= now or due < self._rings_at:
            self._rings_at = due
            self.world.clock.after(due - now, self._ring(core, due))

    def _ring(self, core: Queue, at: float) -> Callable[[], None]:
        def ring() -> None:
            if self.over or self._rings_at != at:
                return
            self._rings_at = 0.0
            due = core.wake_at
            if due is not None and due <= self.world.now:
                self._step(messages.Tick())
            else:
                self._set_alarm(core)

        return ring

    def _carry_out(self, core: Queue, effect: Effect) -> None:
        match effect:
            case Reply(ticket=ticket, reply=reply):
                if isinstance(reply, PopReply):
                    self.world.handed_out(reply)
                self._waiting.pop(ticket)(reply)
            case AttemptEnded():
                self.world.attempt_ended(effect)
                if effect.by_queue:
                    self.world.last_records[effect.pod.uid] = records.ended_record(effect)
            case Nominated(pod=pod, node=node):
                self._nominate(core.epoch, pod, node, effect.priority)
            case NominationOver(pod=pod):
                self._nominate(core.epoch, pod, "", 0, over=True)
            case Differed() | Declined() | StepDown():
                raise AssertionError(f"changes were not understood, or an epoch is nobody's: {effect}")
            case _:
                pass

    def _nominate(self, epoch: int, pod: PodRef, node: str, priority: int, over: bool = False) -> None:
        fact = Nomination(
            namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node, priority=priority, epoch=epoch
        )
        self.world.clock.after(0.002, lambda: self._write(fact, over))

    def _write(self, fact: Nomination, over: bool) -> None:
        """As `podyard.queue.nominations`: what is no longer pending has none."""
        pod = self.world.log.documents.get(("pods", fact.name))
        lives = pod is not None and pod["metadata"]["uid"] == fact.uid
        if not self.over and (lives or over):
            self.world.log.put(stored.nomination(fact, over=over))
