"""The queue: the real core as leader or standby, with a shell that lives in virtual time."""

from typing import Any

from podyard.bus.delivery import Delivery
from podyard.cluster.view import ClusterView
from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.proto.facts import Nomination
from podyard.proto.queue_api import PopRequest
from podyard.queue import assembly, records
from podyard.queue.core import restart
from podyard.queue.core.changes import Changes
from podyard.queue.core.effects import AttemptEnded, Incoming, Nominated, NominationOver
from podyard.queue.core.leader import Leader
from podyard.queue.settings import QueueSettings
from tests.support import stored
from tests.unit.queue.small_world.log import Reader, follows_base, listed
from tests.unit.queue.small_world.surroundings import Respond, Surroundings, profile_of

POP_WAIT_S = 1.0
UNSAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

_registered: dict[str, EventRegistry] = {}


class QueuePart:
    """One queue process; it leads once `lead` was called. As `podyard.queue.term`, without the safety flush."""

    def __init__(self, world: Surroundings) -> None:
        self.world = world
        self.view = ClusterView()
        self.leader: Leader | None = None
        self.over = False
        self._changes: Changes | None = None
        self._waiting: list[tuple[PopRequest, Respond]] = []
        listed(world.log, self.view, follows_base)
        self.reader = Reader(world.log, world.lag(), follows_base, self._deliver, self.view.advance)
        self.reader.skip_to_end()

    def lead(self, epoch: int) -> None:
        profile, now = profile_of("queue"), self.world.now
        if not _registered:
            _registered.update(assembly.registries([profile]))
        self.leader = assembly.build_leader(
            [profile],
            _registered,
            QueueSettings(),
            epoch=epoch,
            view=self.view,
            new_trace=lambda: UNSAMPLED,
            timer=lambda: 0.0,
        )
        self._changes = Changes(self.leader, [profile.name])
        restart.fill(
            self.leader.queue, self.view.pods_by_uid.values(), dict(self.world.last_records), [profile.name], now
        )
        self._settle()
        self._tick()

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
        self._apply(listed(self.world.log, self.view, follows_base))
        self.reader.skip_to_end()
        if self.leader is not None and self._changes is not None:
            assert not self._changes.compare(self.view.pods_by_uid, self.world.now), "changes were not understood"
            incoming = Incoming(event=events.RETRY_ALL, id=f"listed-{self.view.position}", position=self.view.position)
            self.leader.queue.retry_all(incoming, self.world.now)
            self._settle()

    def _deliver(self, delivery: Delivery) -> None:
        self._apply(self.view.apply(delivery))
        assert not self.view.take_effects()

    def _apply(self, changes: Any) -> None:
        if self._changes is not None:
            for change in changes:
                self._changes.apply(change, self.world.now)
            self._settle()

    def _tick(self) -> None:
        if not self.over and self.leader is not None:
            self.world.clock.after(int(self.world.now) + 1 - self.world.now, self._tick)
            self.leader.tick(self.world.now)
            self._settle()

    def serve(self, verb: str, request: Any, respond: Respond) -> None:
        """A request arrives."""
        if self.over or self.leader is None:
            return
        if verb == "pop":
            self._pop(request, respond)
            self._settle()
        else:
            reply = getattr(self.leader, verb)(request, self.world.now)
            self._settle()
            respond(reply)

    def _pop(self, request: PopRequest, respond: Respond) -> None:
        assert self.leader is not None
        reply = self.leader.pop(request, self.world.now, self.view.position)
        if reply is not None:
            self.world.handed_out(reply)
            respond(reply)
            return
        entry = (request, respond)
        self._waiting.append(entry)

        def give_up() -> None:
            if not self.over and self.leader is not None and entry in self._waiting:
                self._waiting.remove(entry)
                respond(self.leader.pop_nothing(request, self.view.position))

        self.world.clock.after(POP_WAIT_S, give_up)

    def _settle(self) -> None:
        assert self.leader is not None
        for effect in self.leader.queue.take_effects():
            match effect:
                case AttemptEnded():
                    self.world.attempt_ended(effect)
                    if effect.by_queue:
                        self.world.last_records[effect.attempt.pod.uid] = records.ended_record(effect)
                case Nominated(pod=pod, node=node):
                    self._nominate(pod.key, pod.uid, node, pod.priority)
                case NominationOver(namespace=namespace, name=name, uid=uid):
                    self._nominate((namespace, name), uid, "", 0, over=True)
                case _:
                    pass
        if self._waiting and self.leader.queue.has_ready():
            waiting, self._waiting = self._waiting, []
            for request, respond in waiting:
                self._pop(request, respond)

    def _nominate(self, key: tuple[str, str], uid: str, node: str, priority: int, over: bool = False) -> None:
        assert self.leader is not None
        fact = Nomination(namespace=key[0], name=key[1], uid=uid, node=node, priority=priority, epoch=self.leader.epoch)
        self.world.clock.after(0.002, lambda: self._write(fact, over))

    def _write(self, fact: Nomination, over: bool) -> None:
        """As `podyard.queue.nominations`: what is no longer pending has none."""
        pod = self.world.log.documents.get(("pods", fact.name))
        lives = pod is not None and pod["metadata"]["uid"] == fact.uid
        if not self.over and (lives or over):
            self.world.log.put(stored.nomination(fact, over=over))
