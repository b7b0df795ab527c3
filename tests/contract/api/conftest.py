"""The api as it runs, on a real server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import prometheus_client
import pytest_asyncio
import structlog
from anyio import Event, create_task_group, fail_after
from prometheus_client import CollectorRegistry

from podyard.api.service import SERVICE, Settings
from podyard.bus import Bus
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ApplyRequest, DeleteRequest, EvictRequest, ObjectsReply
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.service import Service
from podyard.runtime.settings import ServiceSettings
from podyard.telemetry.tracing import SpanRecord, Spans

LIMIT_S = 15.0


class SpanList:
    """Keeps every span."""

    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []

    def accept(self, span: SpanRecord) -> None:
        self.spans.append(span)

    def sampled(self, trace_id: int, name: str) -> bool:
        return False


class WatchedHealth(Health):
    """Tells when everything is ready."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.became_ready = Event()

    def set_ready(self, check: str, ok: bool, reason: str = "") -> None:
        super().set_ready(check, ok, reason)
        if self.ready:
            self.became_ready.set()


class Api:
    """A running instance and how people talk to it."""

    def __init__(self, bus: Bus, metrics: CollectorRegistry, health: Health, spans: SpanList) -> None:
        self.bus = bus
        self.metrics = metrics
        self.health = health
        self.spans = spans.spans

    async def ask(self, subject: str, request: msgspec.Struct, *, trace: str = "") -> ObjectsReply:
        reply = await self.bus.request(subject, codec.encode(request), trace=trace, timeout_s=LIMIT_S)
        return codec.decode(ObjectsReply, reply.payload)

    async def apply(self, *documents: dict[str, Any], **more: Any) -> ObjectsReply:
        objects = tuple(msgspec.Raw(msgspec.json.encode(document)) for document in documents)
        return await self.ask(subjects.OBJECTS_APPLY, ApplyRequest(objects=objects, who="ann", **more))

    async def delete(self, *references: ObjectRef, **more: Any) -> ObjectsReply:
        return await self.ask(subjects.OBJECTS_DELETE, DeleteRequest(objects=references, who="ann", **more))

    async def evict(self, *references: ObjectRef, **more: Any) -> ObjectsReply:
        return await self.ask(subjects.OBJECTS_EVICT, EvictRequest(pods=references, who="ann", **more))

    async def reached(self, position: int) -> None:
        """Until the instance has read everything up to `position`."""
        with fail_after(LIMIT_S):
            while self.metric("podyard_api_position") < position:
                await self.bus.last_sequence("CLUSTER")

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def running(bus: Bus) -> AsyncIterator[Api]:
    registry = prometheus_client.CollectorRegistry()
    health, spans = WatchedHealth(stall_limit_s=60.0, registry=registry), SpanList()
    service = Service(
        SERVICE,
        process=ServiceSettings(instance="test"),
        settings=Settings(),
        bus=bus,
        health=health,
        spans=Spans(spans),
        metrics=registry,
        log=structlog.get_logger(),
        endpoints=Endpoints(bus, name="api", identity="test", version="0", description="test"),
        session="s",
    )
    async with create_task_group() as tasks:
        tasks.start_soon(SERVICE.main, service)
        with fail_after(LIMIT_S):
            await health.became_ready.wait()
        yield Api(bus, registry, health, spans)
        tasks.cancel_scope.cancel()


StartApi = Callable[[Bus], Awaitable[Api]]


@pytest_asyncio.fixture
async def start_api(hold: Any) -> StartApi:
    async def start(bus: Bus) -> Api:
        return await hold(running(bus))

    return start


@pytest_asyncio.fixture
async def api(bus: Bus, start_api: StartApi) -> Api:
    return await start_api(bus)
