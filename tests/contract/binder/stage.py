"""What the binder's contract tests are made of: terms in this process, a faulty bus, a cluster that asks."""

import itertools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from podyard.binder.debug import Shown
from podyard.binder.instruments import Instruments
from podyard.binder.reading import followed
from podyard.binder.service import SERVICE
from podyard.binder.term import Term
from podyard.bus import Ack, Bus, NoResponders, Outgoing, Request, Unclear
from podyard.bus.services import Handler, Subscription
from podyard.plugins.defaults import default_profile
from podyard.proto import codec, subjects
from podyard.proto.binder_api import BindReply, BindRequest, Decision, NumberRange
from podyard.shell.boundary import Boundary
from podyard.shell.leading import Leading
from tests.support import cluster, objects
from tests.support.services import make_service
from tests.support.spans import KeptSpans
from tests.support.waiting import WITHIN_S, eventually

PROFILE = default_profile()


class FaultyBus:
    """A bus whose publishes of placements go wrong on demand; everything else passes."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.faults: deque[str] = deque()
        """For the next sends: `ok`, `lost ack` (stored, no answer), `lost` (not sent), `hold` (until
        `resume`)."""
        self.cut = False
        """Nothing that is sent arrives any more, leases neither."""
        self.late_s = 0.0
        """How much later its services' answers come: the first that comes is the one that is heard."""
        self.held = anyio.Event()
        self._resume = anyio.Event()
        self.batches: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    def resume(self) -> None:
        self._resume.set()

    async def serve(self, subject: str, handler: Handler, **more: Any) -> Subscription:
        async def late(request: Request) -> bytes:
            answer = await handler(request)
            if self.late_s:
                await anyio.sleep(self.late_s)
            return answer

        return await self._bus.serve(subject, late, **more)

    async def publish(self, message: Outgoing, *, timeout_s: float | None = None) -> Ack:
        return await self._faulty(message.subject, lambda: self._bus.publish(message, timeout_s=timeout_s))

    async def publish_batch(
        self, messages: Sequence[Outgoing], *, batch_id: str | None = None, timeout_s: float | None = None
    ) -> Ack:
        self.batches.append(batch_id or "")
        return await self._faulty(
            "batch", lambda: self._bus.publish_batch(messages, batch_id=batch_id, timeout_s=timeout_s)
        )

    async def _faulty(self, what: str, send: Callable[[], Awaitable[Ack]]) -> Ack:
        if self.cut:
            await anyio.sleep_forever()
        if what.startswith("leases."):
            return await send()
        fault = self.faults.popleft() if self.faults else "ok"
        if fault == "lost":
            raise Unclear(what, "lost by the test")
        if fault == "hold":
            self.held.set()
            await self._resume.wait()
        ack = await send()
        if fault == "lost ack":
            raise Unclear(what, "its answer was lost by the test")
        return ack


@asynccontextmanager
async def leading_term(
    bus: Any, instance: str, lease_epoch: int = 1, spans: KeptSpans | None = None
) -> AsyncIterator[Term]:
    """A term without a lease: whoever begins one takes the fence over from all before."""
    service = make_service(SERVICE, bus, instance=instance, spans=spans)
    instruments = Instruments(service.metrics)
    boundary = Boundary(service)
    leading = Leading(service.lease(), service.health, service.metrics, pause=boundary.pause)
    profiles = {PROFILE.name: PROFILE}
    subjects = followed(profiles)
    term = Term(service, profiles, subjects, instruments, boundary, leading, Shown(subjects), 1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(term.run, lease_epoch)
        await eventually("the term serves", lambda: service.health.ready)
        yield term
        tasks.cancel_scope.cancel()


class Cluster(cluster.Cluster):
    """One that asks for bindings, as of its own last write."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus)
        self._numbers = itertools.count(1)

    async def pods(self, *names: str) -> None:
        """Pods of one CPU."""
        await self.create("pods", [objects.pod(name, cpu="1") for name in names])

    def decide(self, name: str, node: str = "n1", attempt: str = "", trace: str = "") -> Decision:
        return Decision(
            namespace="default",
            name=name,
            uid=f"uid-{name}",
            attempt=attempt or f"1-{name}",
            node=node,
            number=next(self._numbers),
            position=self.position,
            trace=trace,
        )

    async def ask(
        self,
        *decisions: Decision,
        session: str = "s1",
        timeout_s: float = WITHIN_S,
        outstanding: tuple[NumberRange, ...] = (),
    ) -> BindReply:
        request = BindRequest(
            session=session, decisions=decisions, digest={PROFILE.name: PROFILE.digest}, outstanding=outstanding
        )
        payload = codec.encode(request)
        with anyio.fail_after(WITHIN_S):
            while True:
                try:
                    reply = await self.bus.request(subjects.BINDER_BIND, payload, timeout_s=timeout_s)
                    return codec.decode(BindReply, reply.payload)
                except NoResponders:  # the subscription has not reached the server yet
                    await anyio.sleep(0.01)

    async def bind(self, *decisions: Decision) -> list[str]:
        return [answer.result for answer in (await self.ask(*decisions)).answers]
