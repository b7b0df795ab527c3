"""The queue's side: pops, results, heartbeats, and the session they belong to."""

from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar

import anyio
import structlog
from msgspec import structs

from podyard.bus import Bus, BusError, TemporaryError, Unclear
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.queue_api import DoneRequest, PopReply, PopRequest, PreemptingRequest, QueueReply, SessionHeartbeat
from podyard.runtime.health import Health
from podyard.scheduler.core.messages import Popped, SessionStarted
from podyard.scheduler.engine import Engine
from podyard.scheduler.instruments import Instruments
from podyard.scheduler.settings import SchedulerSettings

R = TypeVar("R", PopReply, QueueReply)
Asked: TypeAlias = PopRequest | DoneRequest | SessionHeartbeat | PreemptingRequest

CHECK: Final = "queue"
POP: Final = subjects.queue_verb("pop")
DONE: Final = subjects.queue_verb("done")
HEARTBEAT: Final = subjects.queue_verb("heartbeat")
PREEMPTING: Final = subjects.queue_verb("preempting")

MOST_RESULTS: Final = 1024
"""Results in one request."""
PAUSE_S: Final = 0.1
"""Before a request is sent again that nobody answered in time."""
REFUSED_PAUSE_S: Final = 1.0
"""After a refusal, before a new session asks."""
ANSWER_S: Final = 5.0
"""How long an answer may take, beyond what the queue may hold a pop."""


class QueueLink:
    """One session after the other. A session ends when the queue refuses it; the next one begins with nothing open.

    While the queue changes its leader two may answer. The highest epoch counts: an answer of a lower one than is known counts as none,
    and every request names the highest, so that a leader that is none any more, and does not know it, steps down.
    """

    def __init__(
        self,
        bus: Bus,
        engine: Engine,
        digests: Mapping[str, str],
        settings: SchedulerSettings,
        *,
        session: str,
        health: Health,
        instruments: Instruments,
        log: structlog.stdlib.BoundLogger,
    ) -> None:
        """
        :param session: unique to this start of the process: the first session; later ones are derived from it
        """
        self._bus = bus
        self._engine = engine
        self._digests = dict(digests)
        self._settings = settings
        self._process = session
        self._session = session
        self._sessions = 1
        self._pops = 0
        self._epoch = 0
        """The highest of all answers."""
        self._last_pop = ""
        """The last pop that was answered, with pods or without: another leader may have given pods in an answer that came too late."""
        self._said = ""
        self._health = health
        self._instruments = instruments
        self._log = log
        instruments.sessions.inc()
        health.set_ready(CHECK, False, "waiting for the queue's first answer")

    # ---- pops ----------------------------------------------------------------------------------------------------------------

    async def pop(self) -> None:
        """Fetch pods for ever; one pop is under way while the pods of the one before are scheduled."""
        while True:
            await self._room()
            session = self._session
            self._pops += 1
            request = PopRequest(
                session=session,
                pop_id=f"{session}/{self._pops}",
                digests=self._digests,
                max_pods=self._engine.wanted,
                wait_s=self._settings.pop_wait_s,
            )
            asked_at = anyio.current_time()
            reply = await self._ask(POP, request, PopReply, ANSWER_S + request.wait_s)
            if session != self._session:
                continue  # the answer of a session that has ended
            if reply.refused:
                await self._refused(session, reply.refused)
                continue
            self._health.set_ready(CHECK, True)
            self._last_pop = request.pop_id
            if reply.pods:
                self._instruments.pops.inc(len(reply.pods))
                self._engine.pace.popped(anyio.current_time() - asked_at)
                self._engine.step(Popped(reply))

    async def _room(self) -> None:
        """Wait while there is enough to do: popped pods for a slice and the next pop, or too many decisions without an answer."""
        core, settings = self._engine.core, self._settings
        while core.backlog >= self._engine.wanted or core.unanswered >= settings.most_unanswered:
            await self._engine.progress()

    # ---- results -------------------------------------------------------------------------------------------------------------

    async def send_results(self) -> None:
        """Tell the queue how attempts ended, for ever; what comes while a request is under way goes with the next one."""
        while True:
            results = await self._engine.results.take(MOST_RESULTS)
            session = self._session
            request = DoneRequest(session=session, results=tuple(results))
            reply = await self._ask(DONE, request, QueueReply, ANSWER_S)
            if reply.refused and session == self._session:
                await self._refused(session, reply.refused)

    async def preempting(self, request: PreemptingRequest) -> QueueReply:
        """Tell the queue that an asynchronous preemption begins, goes on or ends, until it answers."""
        return await self._ask(PREEMPTING, request, QueueReply, ANSWER_S)

    # ---- the session ---------------------------------------------------------------------------------------------------------

    async def heartbeat(self) -> None:
        """Show signs of life for ever."""
        while True:
            await anyio.sleep(self._settings.heartbeat_s)
            session = self._session
            waiting = {result.attempt for result in self._engine.results}.union(self._engine.untold)
            request = SessionHeartbeat(
                session=session,
                attempts=tuple(waiting.union(self._engine.core.open_attempts())),
                last_pop=self._last_pop,
                held=self._engine.core.held_attempts(),
            )
            reply = await self._ask(HEARTBEAT, request, QueueReply, ANSWER_S)
            if reply.refused and session == self._session:
                await self._refused(session, reply.refused)

    async def _refused(self, session: str, reason: str) -> None:
        """The queue wants nothing of this session any more: begin another. A difference of plugins stays, and stays visible."""
        self._sessions += 1
        self._session = f"{self._process}-{self._sessions}"
        self._last_pop = ""
        self._instruments.sessions.inc()
        self._health.set_ready(CHECK, False, f"the queue refuses: {reason}")
        self._log.warning("the queue refuses the session", session=session, reason=reason, next=self._session)
        self._engine.step(SessionStarted(self._session))
        await anyio.sleep(REFUSED_PAUSE_S)

    # ---- requests ------------------------------------------------------------------------------------------------------------

    async def _ask(self, subject: str, request: Asked, reply_type: type[R], timeout_s: float) -> R:
        """The answer to a request that may safely be sent again, sent until there is one."""
        while True:
            payload = codec.encode(structs.replace(request, epoch=self._epoch))
            try:
                answer = await self._bus.request(subject, payload, timeout_s=timeout_s)
                reply = codec.decode(reply_type, answer.payload)
                if reply.epoch < self._epoch:
                    why = f"a leader of epoch {reply.epoch} answers, and there is one of {self._epoch}"
                    await self._again(subject, why, PAUSE_S)
                    continue
                self._epoch = reply.epoch
                self._said = ""
                return reply
            except Unclear as error:
                await self._again(subject, str(error), PAUSE_S)
            except TemporaryError as error:
                await self._again(subject, str(error), error.delay_s)
            except (BusError, MessageError) as error:
                await self._again(subject, str(error), REFUSED_PAUSE_S)

    async def _again(self, subject: str, reason: str, pause_s: float) -> None:
        self._health.set_ready(CHECK, False, reason)
        self._instruments.repeats.labels(subject).inc()
        if reason != self._said:  # a missing queue is told once, not twice a second
            self._said = reason
            self._log.warning("the queue does not answer, asking again", subject=subject, reason=reason)
        await anyio.sleep(pause_s)
