"""A scheduler: the real core, with a shell that lives in virtual time."""

import itertools
from collections.abc import Callable
from typing import Any

from podyard.bus.delivery import Delivery
from podyard.cluster.view import ClusterView
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.proto.message import PodRef
from podyard.proto.queue_api import DoneRequest, PopReply, PopRequest, PreemptingRequest, SessionHeartbeat
from podyard.scheduler.core.effects import Bind, Done, Preempt, Record
from podyard.scheduler.core.messages import BindAnswered, Changed, Message, Popped, SessionStarted, Work
from podyard.scheduler.core.scheduler import Scheduler
from tests.unit.queue.small_world.log import Reader, follows_base, listed
from tests.unit.queue.small_world.surroundings import Respond, Surroundings, profile_of

HEARTBEAT_S = 2.0
MOST_BACKLOG = 3


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
            else:
                self._last_pop = request.pop_id
                if reply.pods:
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
