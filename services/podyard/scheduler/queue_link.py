"""The queue's side: pops, results, heartbeats, and the session they belong to."""

from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import structlog

from podyard.bus import Bus, BusError
from podyard.proto import codec, subjects
from podyard.proto.queue_api import (
    AttemptResult,
    DoneRequest,
    PopReply,
    PopRequest,
    PreemptingRequest,
    QueueReply,
    SessionHeartbeat,
)
from podyard.runtime.health import Health
from podyard.scheduler.core.messages import Popped, SessionStarted
from podyard.scheduler.engine import Engine
from podyard.scheduler.instruments import Instruments
from podyard.scheduler.settings import SchedulerSettings
from podyard.shell.asking import Asking, Epochs

POP: Final = subjects.queue_verb("pop")
DONE: Final = subjects.queue_verb("done")
HEARTBEAT: Final = subjects.queue_verb("heartbeat")
PREEMPTING: Final = subjects.queue_verb("preempting")

MOST_RESULTS: Final = 1024
"""Results in one request."""
REFUSED_PAUSE_S: Final = 1.0
"""After a refusal, before a new session asks."""
ANSWER_S: Final = 5.0
"""How long an answer may take, beyond what the queue may hold a pop."""
SAY_OVER_S: Final = 2.0
"""How long it may take a scheduler that ends to tell the queue so."""


class QueueLink:
    """One session after the other. A session ends when the queue refuses it; the next one begins with nothing
    open."""

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
        self._last_pop = ""
        """The last pop that was answered, with pods or without: another leader may have given pods in an
        answer that came too late."""
        self._under_way: Sequence[AttemptResult] = ()
        """Results of which the queue is being told."""
        self._epochs = Epochs()
        self._asking = Asking(
            bus,
            "queue",
            health=health,
            log=log,
            repeated=lambda subject: instruments.repeats.labels(subject).inc(),
            epochs=self._epochs,
            refusal_is_answer=True,
            at_first="waiting for the queue's first answer",
        )
        self._instruments = instruments
        self._log = log
        instruments.sessions.inc()

    # ---- pops ----------------------------------------------------------------------------------------------

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
            reply = await self._asking.ask(POP, request, PopReply, timeout_s=ANSWER_S + request.wait_s)
            if session != self._session:
                continue  # the answer of a session that has ended
            if reply.refused:
                await self._refused(session, reply.refused)
                continue
            self._asking.accepted()
            self._last_pop = request.pop_id
            if reply.pods:
                self._instruments.pops.inc(len(reply.pods))
                self._engine.pace.popped(anyio.current_time() - asked_at)
                self._engine.step(Popped(reply))

    async def _room(self) -> None:
        """Wait while there is enough to do: popped pods for a slice and the next pop, or too many decisions
        without an answer."""
        core, settings = self._engine.core, self._settings
        while core.backlog >= self._engine.wanted or core.unanswered >= settings.most_unanswered:
            await self._engine.progress()

    # ---- results -------------------------------------------------------------------------------------------

    async def send_results(self) -> None:
        """Tell the queue how attempts ended, for ever; what comes while a request is under way goes with the
        next one."""
        while True:
            results = self._under_way = await self._engine.results.take(MOST_RESULTS)
            session = self._session
            request = DoneRequest(session=session, results=tuple(results))
            reply = await self._asking.ask(DONE, request, QueueReply, timeout_s=ANSWER_S)
            self._under_way = ()
            if reply.refused and session == self._session:
                await self._refused(session, reply.refused)

    async def preempting(self, request: PreemptingRequest) -> QueueReply:
        """Tell the queue that an asynchronous preemption begins, goes on or ends, until its leader
        knows."""
        while True:
            reply = await self._asking.ask(PREEMPTING, request, QueueReply, timeout_s=ANSWER_S)
            if not reply.outdated:  # each request names the newest leader that answered so far
                return reply

    # ---- the session ---------------------------------------------------------------------------------------

    async def heartbeat(self) -> None:
        """Show signs of life for ever."""
        while True:
            await anyio.sleep(self._settings.heartbeat_s)
            session = self._session
            unsent = {result.attempt for result in self._engine.results}.union(self._engine.untold)
            request = SessionHeartbeat(
                session=session,
                attempts=tuple(unsent.union(self._engine.core.open_attempts())),
                last_pop=self._last_pop,
                waiting=self._engine.core.waiting_attempts(),
            )
            reply = await self._asking.ask(HEARTBEAT, request, QueueReply, timeout_s=ANSWER_S)
            if reply.refused and session == self._session:
                await self._refused(session, reply.refused)

    async def leave(self) -> None:
        """The scheduler ends in order, and pops no more: tell the queue the last results, then that the
        session is over, so that others have at once what it did not decide.

        Each is said once. Where nobody leads, the next leader knows of no session; where there is no answer,
        this one dies of its silence.
        """
        if not self._pops:
            return
        session, epoch = self._session, self._epochs.highest
        results = [*self._under_way, *self._engine.results]
        parts = [tuple(results[first : first + MOST_RESULTS]) for first in range(0, len(results), MOST_RESULTS)]
        last = [(DONE, DoneRequest(session=session, results=part, epoch=epoch)) for part in parts]
        with anyio.move_on_after(SAY_OVER_S, shield=True):
            for subject, request in [*last, (HEARTBEAT, SessionHeartbeat(session=session, over=True, epoch=epoch))]:
                try:
                    await self._bus.request(subject, codec.encode(request))
                except BusError as error:
                    self._log.info("the queue is not told of the end", subject=subject, reason=str(error))

    async def _refused(self, session: str, reason: str) -> None:
        """The queue wants nothing of this session any more: begin another. A difference of plugins stays, and
        stays visible."""
        self._sessions += 1
        self._session = f"{self._process}-{self._sessions}"
        self._last_pop = ""
        self._instruments.sessions.inc()
        self._asking.refused(reason)
        self._log.warning("the queue refuses the session", session=session, reason=reason, next=self._session)
        self._engine.step(SessionStarted(self._session))
        await anyio.sleep(REFUSED_PAUSE_S)
