"""Decisions to the binder: the same request again until it is answered, by whichever binder leads then."""

import msgspec
import structlog

from podyard.bus import Bus
from podyard.proto import subjects
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.runtime.health import Health
from podyard.scheduler.engine import Engine
from podyard.scheduler.instruments import Instruments
from podyard.shell.asking import Asking


class BindLink:
    """Up to `width` requests at once, begun in the order in which they were decided."""

    def __init__(
        self, bus: Bus, engine: Engine, *, health: Health, instruments: Instruments, log: structlog.stdlib.BoundLogger
    ) -> None:
        self._bus = bus
        self._engine = engine
        # an answer of any epoch counts: who was deposed says nothing that was not durable before
        self._asking = Asking(
            bus,
            "binder",
            health=health,
            log=log,
            repeated=lambda subject: instruments.repeats.labels(subject).inc(),
        )

    async def run(self, width: int) -> None:
        """Send for ever."""
        await self._engine.binds.carry_out(width, self._bind)

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
        return await self._asking.ask(subjects.BINDER_BIND, request, BindReply)
