"""Decisions to the binder: the same request again until it is answered, by whichever binder leads then."""

from typing import Final

import anyio
import msgspec
import structlog

from podyard.bus import Bus, BusError, TemporaryError, Unclear
from podyard.proto import codec, subjects
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.proto.codec import MessageError
from podyard.runtime.health import Health
from podyard.scheduler.engine import Engine
from podyard.scheduler.instruments import Instruments

CHECK: Final = "binder"
PAUSE_S: Final = 0.1
"""Before a request is sent again that nobody answered in time: its answer may be on its way."""
REFUSED_PAUSE_S: Final = 0.5
"""After a refusal: another leader, or a person, has to do something first."""


class BindLink:
    """Up to `width` requests at once, begun in the order in which they were decided."""

    def __init__(
        self, bus: Bus, engine: Engine, *, health: Health, instruments: Instruments, log: structlog.stdlib.BoundLogger
    ) -> None:
        self._bus = bus
        self._engine = engine
        self._health = health
        self._instruments = instruments
        self._log = log
        health.set_ready(CHECK, True)

    async def run(self, width: int) -> None:
        """Send for ever."""
        async with anyio.create_task_group() as tasks:
            for _ in range(width):
                tasks.start_soon(self._send_on)

    async def _send_on(self) -> None:
        while True:
            for request in await self._engine.binds.take(1):
                await self._bind(request)

    async def _bind(self, request: BindRequest) -> None:
        """Until every decision of the request has its answer."""
        left = request
        while left.decisions:
            reply = await self._ask(left)
            self._engine.answered(left, reply)
            answered = {answer.attempt for answer in reply.answers}
            decisions = tuple(decision for decision in left.decisions if decision.attempt not in answered)
            left = msgspec.structs.replace(left, decisions=decisions)

    async def _ask(self, request: BindRequest) -> BindReply:
        payload = codec.encode(request)
        while True:
            try:
                answer = await self._bus.request(subjects.BINDER_BIND, payload)
                reply = codec.decode(BindReply, answer.payload)
            except Unclear as error:
                await self._again(str(error), PAUSE_S)
            except TemporaryError as error:
                await self._again(str(error), error.delay_s)
            except (BusError, MessageError) as error:
                await self._again(str(error), REFUSED_PAUSE_S)
            else:
                if not reply.refused:
                    self._health.set_ready(CHECK, True)
                    return reply
                await self._again(f"the binder refuses: {reply.refused}", REFUSED_PAUSE_S)

    async def _again(self, reason: str, pause_s: float) -> None:
        self._health.set_ready(CHECK, False, reason)
        self._instruments.repeats.labels(subjects.BINDER_BIND).inc()
        self._log.warning("decisions are not answered, sending them again", reason=reason, pause_s=pause_s)
        await anyio.sleep(pause_s)
