"""Queue, schedulers and binder: the real cores, with shells that live in virtual time."""

import itertools
from collections.abc import Callable
from typing import Any, Protocol

from podyard.binder.core import effects as binding
from podyard.binder.core.binder import Phase
from podyard.bus.delivery import Delivery
from podyard.cluster.view import ClusterView
from podyard.framework import events
from podyard.framework.event_registry import EventRegistry
from podyard.framework.profile import Profile
from podyard.plugins.defaults import default_profile
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import Nomination
from podyard.proto.message import PodRef
from podyard.proto.queue_api import DoneRequest, PopReply, PopRequest, PreemptingRequest, SessionHeartbeat
from podyard.queue import assembly, records
from podyard.queue.core import restart
from podyard.queue.core.changes import Changes
from podyard.queue.core.effects import AttemptEnded, Incoming, Judged, Nominated, NominationOver
from podyard.queue.core.leader import Leader
from podyard.queue.settings import QueueSettings
from podyard.scheduler.core.effects import Bind, Done, Preempt, Record
from podyard.scheduler.core.messages import BindAnswered, Changed, Message, Popped, SessionStarted, Work
from podyard.scheduler.core.scheduler import Scheduler
from tests.unit.binder.stage import Reign
from tests.unit.queue.small_world.clock import Clock, Network
from tests.unit.queue.small_world.log import Log, Reader, follows_all, follows_base, listed

Respond = Callable[[Any], None]
HEARTBEAT_S = 2.0
POP_WAIT_S = 1.0
MOST_BACKLOG = 3

_profiles: dict[str, Profile] = {}


def profile_of(part: str) -> Profile:
    """Each part's own plugins, made once: they are dear, and parts of one name follow each other."""
    if part not in _profiles:
        _profiles[part] = default_profile()
    return _profiles[part]


_registered: dict[str, EventRegistry] = {}


class Surroundings(Protocol):
    """What the parts know of the world."""

    clock: Clock
    network: Network
    log: Log
    last_records: dict[str, AttemptRecord]

    @property
    def stream(self) -> Log: ...
    @property
    def now(self) -> float: ...
    def lag(self) -> float: ...
    def handed_out(self, reply: PopReply) -> None: ...
    def attempt_ended(self, ended: AttemptEnded) -> None: ...
    def judged(self, judged: Judged) -> None: ...
    def to_queue(self, verb: str, request: Any, respond: Respond) -> None: ...
    def to_binder(self, request: BindRequest, respond: Respond) -> None: ...
    def delete(self, name: str, uid: str) -> None: ...


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
            new_trace=lambda: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
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

    def relist(self) -> None:
        """It lost touch, and lists the cluster again."""
        self._apply(listed(self.world.log, self.view, follows_base))
        self.reader.skip_to_end()
        if self.leader is not None:
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
                case Judged():
                    self.world.judged(effect)
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
            self.world.log.nominate(fact, over)


class SchedulerPart:
    """One scheduler process."""

    def __init__(self, world: Surroundings, slot: str, number: int) -> None:
        self.world = world
        self.process = f"{slot}.{number}"
        self.session = self.process
        self.view = ClusterView()
        profile = profile_of(slot)
        self.core = Scheduler({profile.name: profile}, self.view, self.session)
        self.digests = {profile.name: profile.digest}
        self.over = False
        self.frozen_until = 0.0
        self._numbers = itertools.count(1)
        self._last_pop = ""
        self._results: list[Any] = []
        self._untold: dict[str, Preempt] = {}
        self._sending: tuple[Any, ...] = ()
        self._working = False
        self.preempting = 0
        self._step(Changed(tuple(listed(world.log, self.view, follows_base))))
        self.reader = Reader(world.log, world.lag(), follows_base, self._deliver, self.view.advance)
        self.reader.skip_to_end()
        self._pop()
        self._heartbeat()

    def stop(self) -> None:
        """The process dies; what it sent is still under way."""
        self.over = True
        self.reader.stop()

    @property
    def idle(self) -> bool:
        busy = self.core.backlog or self.core.unanswered or self._results or self._sending or self.preempting
        return not busy and not self.core.open_attempts()

    def freeze(self, seconds: float) -> None:
        """The process stands still; what comes meanwhile waits."""
        self.frozen_until = self.reader.frozen_until = self.world.now + seconds

    def _lives(self) -> bool:
        return not self.over

    def _do(self, act: Callable[[], None]) -> None:
        """Now, or when the process runs again."""
        if self.over:
            return
        if self.frozen_until > self.world.now:
            self.world.clock.after(self.frozen_until - self.world.now, lambda: self._do(act))
        else:
            act()

    def _ask(self, verb: str, request: Any, answered: Callable[[Any], None]) -> None:
        def serve(respond: Respond) -> None:
            self.world.to_queue(verb, request, respond)

        self.world.network.ask(serve, lambda reply: self._do(lambda: answered(reply)), self._lives)

    def _deliver(self, delivery: Delivery) -> None:
        """The view and the core stand still together: nothing is between them."""
        changes = self.view.apply(delivery)
        assert not self.view.take_effects()
        if changes:
            self._step(Changed(changes))
        self._wake()

    # ---- the core

    def _step(self, message: Message) -> None:
        for effect in self.core.step(message, self.world.now):
            match effect:
                case Done():
                    self._results.append(effect.result)
                case Bind():
                    self._bind(effect.request)
                case Record():
                    self.world.last_records[effect.record.uid] = effect.record
                case Preempt():
                    self._preempt(effect)
                case _:
                    pass
        self._send_results()
        self._wake()

    def _wake(self) -> None:
        if self.core.ready and not self._working:
            self._working = True
            self.world.clock.after(self.world.clock.random.uniform(0.0005, 0.01), lambda: self._do(self._work))

    def _work(self) -> None:
        self._working = False
        self._step(Work(self.world.clock.random.randint(1, 3)))

    # ---- the queue

    def _pop(self) -> None:
        if self.core.backlog > MOST_BACKLOG:
            self.world.clock.after(0.01, lambda: self._do(self._pop))
            return
        session = self.session
        request = PopRequest(
            session=session,
            pop_id=f"{session}/{next(self._numbers)}",
            digests=self.digests,
            max_pods=self.world.clock.random.randint(1, 4),
        )
        self._ask("pop", request, lambda reply: self._popped(session, request, reply))

    def _popped(self, session: str, request: PopRequest, reply: PopReply) -> None:
        if session == self.session:
            if reply.refused:
                self._refused()
            elif reply.pods:
                self._last_pop = request.pop_id
                self._step(Popped(reply))
        self.world.clock.after(0.001, lambda: self._do(self._pop))

    def _send_results(self) -> None:
        if self._results and not self._sending:
            self._sending, self._results = tuple(self._results), []
            session = self.session
            request = DoneRequest(session=session, results=self._sending)
            self._ask("done", request, lambda reply: self._sent(session, reply.refused))

    def _sent(self, session: str, refused: str) -> None:
        self._sending = ()
        if refused and session == self.session:
            self._refused()
        self._send_results()

    def _heartbeat(self) -> None:
        session = self.session
        waiting = {result.attempt for result in (*self._results, *self._sending)}.union(self._untold)
        request = SessionHeartbeat(
            session=session,
            attempts=tuple(sorted(waiting.union(self.core.open_attempts()))),
            last_pop=self._last_pop,
        )

        def answered(reply: Any) -> None:
            if reply.refused and session == self.session:
                self._refused()
            self.world.clock.after(HEARTBEAT_S, lambda: self._do(self._heartbeat))

        self._ask("heartbeat", request, answered)

    def _refused(self) -> None:
        self.session = f"{self.process}-{next(self._numbers)}"
        self._last_pop = ""
        self._step(SessionStarted(self.session))

    # ---- the binder

    def _bind(self, request: BindRequest) -> None:
        def answered(reply: BindReply) -> None:
            if reply.refused:
                self.world.clock.after(0.1, lambda: self._do(lambda: self._bind(request)))
            else:
                self._step(BindAnswered(request, reply))

        def serve(respond: Respond) -> None:
            self.world.to_binder(request, respond)

        self.world.network.ask(serve, lambda reply: self._do(lambda: answered(reply)), self._lives)

    # ---- preemption, as podyard.scheduler.preemption_link

    def _preempt(self, effect: Preempt) -> None:
        if not effect.victims:
            self._results.append(effect.result)
            return
        self._untold[effect.result.attempt] = effect
        self.preempting += 1
        self._tell(effect, True, lambda refused: self._told(effect, refused))

    def _tell(self, effect: Preempt, running: bool, then: Callable[[str], None]) -> None:
        result, victim = effect.result, effect.victims[-1]
        request = PreemptingRequest(
            session=effect.session,
            pod=PodRef(namespace=result.namespace, name=result.name, uid=result.uid),
            running=running,
            victim=PodRef(namespace=victim.namespace, name=victim.name, uid=victim.uid) if running else None,
            attempt=result.attempt,
        )
        self._ask("preempting", request, lambda reply: then(reply.refused))

    def _told(self, effect: Preempt, refused: str) -> None:
        del self._untold[effect.result.attempt]
        self._results.append(effect.result)
        self._send_results()
        if refused:
            self._end_preemption(effect)
            return
        for victim in effect.victims:
            self.world.delete(victim.name, victim.uid)
        self._until_seen(effect, self.world.log.last)

    def _until_seen(self, effect: Preempt, position: int) -> None:
        if self.view.position < position:
            self.world.clock.after(0.02, lambda: self._do(lambda: self._until_seen(effect, position)))
        else:
            self._end_preemption(effect)

    def _end_preemption(self, effect: Preempt) -> None:
        def over(_refused: str) -> None:
            self.preempting -= 1

        self._tell(effect, False, over)


class BinderPart(Reign):
    """One binder's reign."""

    def __init__(self, world: Any, name: str, epoch: int) -> None:
        super().__init__(world, name, profile_of("binder"))
        self.world: Surroundings = world
        self._respond: dict[int, Respond] = {}
        self._ticks: set[float] = set()
        self.reader = Reader(world.log, world.lag(), follows_all, self._deliver, self._advance)
        self.reader.skip_to_end()
        self.elect(epoch)

    @property
    def leads(self) -> bool:
        return self.core.phase is not Phase.DEPOSED

    def list_all(self) -> None:
        self.reader.skip_to_end()
        super().list_all()

    def step(self, message: binding.Message) -> None:
        super().step(message)
        wake_at = self.core.wake_at
        if wake_at is not None and wake_at not in self._ticks:
            self._ticks.add(wake_at)
            self.world.clock.after(max(0.0, wake_at - self.world.now), lambda: self._tick(wake_at))

    def _tick(self, due: float) -> None:
        self._ticks.discard(due)
        if self.leads:
            self.step(binding.Tick())

    def _deliver(self, delivery: Delivery) -> None:
        changes = self.view.apply(delivery)
        if changes and self.leads:
            self.step(binding.Changed(changes))
        assert not self.view.take_effects()

    def _advance(self, position: int) -> None:
        self.view.advance(position)

    def serve(self, request: BindRequest, respond: Respond) -> None:
        """A request arrives; a reign that ended says nothing."""
        if not self.leads:
            return
        ticket = next(self._tickets)
        self._respond[ticket] = respond
        self.step(binding.Requested(ticket, request))

    def carry_out(self, effect: binding.Effect) -> binding.Message | None:
        if isinstance(effect, binding.Reply):
            self._respond.pop(effect.ticket)(effect.reply)
            return None
        return super().carry_out(effect)
