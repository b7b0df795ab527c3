"""What the binder's contract tests are made of: reigns in this process on a real server, a bus with faults, a cluster to write into."""

import itertools
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import prometheus_client
import structlog

from podyard.binder.instruments import Instruments
from podyard.binder.reign import Reign
from podyard.binder.service import SERVICE, followed
from podyard.binder.settings import BinderSettings
from podyard.bus import Ack, Bus, NoResponders, Outgoing, Unclear
from podyard.plugins.defaults import default_profile
from podyard.proto import codec, subjects
from podyard.proto.binder_api import BindReply, BindRequest, Decision, NumberRange
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import PodStatusFact
from podyard.proto.placement import CommitRecord, Fence, Placement
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.service import Service
from podyard.runtime.settings import ServiceSettings
from podyard.telemetry.tracing import Spans
from tests.support.object_events import event_of

WITHIN_S = 10.0
PROFILE = default_profile()
T = TypeVar("T")


class FaultyBus:
    """A bus whose publishes of placements go wrong on demand; everything else passes."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.faults: deque[str] = deque()
        """For the next sends: `ok`, `lost ack` (stored, no answer), `lost` (not sent), `hold` (until `resume`)."""
        self.cut = False
        """Nothing that is sent arrives any more, leases neither."""
        self.held = anyio.Event()
        self._resume = anyio.Event()
        self.batches: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    def resume(self) -> None:
        self._resume.set()

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


def make_service(bus: Any, instance: str, spans: Spans | None = None, **settings: Any) -> Service[BinderSettings]:
    """The binder's Service as `podyard run binder` would make it."""
    registry = prometheus_client.CollectorRegistry()
    session = f"{instance}-{time.monotonic_ns()}"
    return Service(
        SERVICE,
        process=ServiceSettings(instance=instance),
        settings=BinderSettings(**settings),
        bus=bus,
        health=Health(stall_limit_s=10, registry=registry),
        spans=spans or Spans(),
        metrics=registry,
        log=structlog.get_logger(),
        endpoints=Endpoints(bus, name="podyard-binder", identity=session, version="0", description="test"),
        session=session,
    )


@asynccontextmanager
async def reigning(bus: Any, instance: str, lease_epoch: int = 1, spans: Spans | None = None) -> AsyncIterator[Reign]:
    """A reign without a lease: whoever begins one takes the fence over from all before."""
    service = make_service(bus, instance, spans)
    instruments = Instruments(service.metrics, service.spans)
    reign = Reign(service, {PROFILE.name: PROFILE}, followed({PROFILE.name: PROFILE}), instruments, 1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reign.run, lease_epoch)
        await eventually("the reign serves", lambda: _serves(service))
        yield reign
        tasks.cancel_scope.cancel()


async def _serves(service: Service[BinderSettings]) -> bool:
    return service.health.ready


async def eventually(what: str, probe: Callable[[], Awaitable[T]], within_s: float = WITHIN_S) -> T:
    """What `probe` gives as soon as it is true; fails with `what` after a while."""
    with anyio.move_on_after(within_s):
        while True:
            found = await probe()
            if found:
                return found
            await anyio.sleep(0.01)
    raise AssertionError(f"not seen within {within_s:g} s: {what}")


class Cluster:
    """Writes objects as the api would, and reads placements."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.position = 0
        self._numbers = itertools.count(1)

    async def node(self, name: str = "n1", cpu: str = "4", pods: str = "110") -> None:
        status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}}
        await self._put("nodes", "", {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": status})

    async def pods(self, *names: str, cpu: str = "1") -> None:
        for name in names:
            spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
            await self._put(
                "pods",
                "default",
                {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec},
            )

    async def remove_pod(self, name: str) -> None:
        event = ClusterEvent(
            resource="pods",
            namespace="default",
            name=name,
            uid=f"uid-{name}",
            op="delete",
            who="test",
            object=codec.NULL,
        )
        ack = await self.bus.publish(
            Outgoing(subjects.object_("pods", "default", name), codec.encode(event), ttl_s=600, deleted=True)
        )
        self.position = ack.sequence

    async def ended(self, name: str, node: str = "n1") -> None:
        fact = PodStatusFact(
            namespace="default", name=name, uid=f"uid-{name}", node=node, phase="Succeeded", ended=True
        )
        await self.bus.publish(Outgoing(subjects.pod_status(node, "default", name, f"uid-{name}"), codec.encode(fact)))

    async def _put(self, resource: str, namespace: str, document: dict[str, Any]) -> None:
        subject, event = event_of(resource, namespace, document, "test")
        there = await self.bus.get("CLUSTER", subject)
        message = Outgoing(subject, codec.encode(event), expect=there.sequence if there is not None else 0)
        self.position = (await self.bus.publish(message)).sequence

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

    async def fence(self) -> Fence:
        found = await self.bus.get("CLUSTER", subjects.FENCE)
        assert found is not None
        return codec.decode(Fence, found.payload)

    async def move_fence(self, holder: str) -> Fence:
        """Somebody else takes over."""
        found = await self.bus.get("CLUSTER", subjects.FENCE)
        assert found is not None
        fence = codec.decode(Fence, found.payload)
        moved = Fence(epoch=fence.epoch + 1, n=fence.n, batch=f"{holder}.x", holder=holder)
        await self.bus.publish(Outgoing(subjects.FENCE, codec.encode(moved), expect=found.sequence))
        return moved

    async def placement(self, name: str) -> Any:
        found = await self.bus.get("CLUSTER", subjects.binding("default", name, f"uid-{name}"))
        return None if found is None else codec.decoder(Placement).decode(found.payload)

    async def commits(self) -> list[CommitRecord]:
        """All commit records so far; fails if one is missing."""
        records: list[CommitRecord] = []
        for n in range(1, (await self.fence()).n + 1):
            found = await self.bus.get("CLUSTER", subjects.commit(n))
            assert found is not None, f"commit {n} is missing"
            records.append(codec.decode(CommitRecord, found.payload))
        return records
