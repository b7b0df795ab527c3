"""The api as it runs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest_asyncio

from podyard.api.service import SERVICE
from podyard.api.settings import ApiSettings
from podyard.bus import Bus
from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ApplyRequest, DeleteRequest, EvictRequest, ObjectsReply
from podyard.runtime.service import Service
from podyard.shell import writes
from tests.support import objects
from tests.support.holding import Hold
from tests.support.objects import Document, written
from tests.support.services import make_service, running
from tests.support.spans import KeptSpans
from tests.support.waiting import WITHIN_S, eventually


def pod(name: str, **more: Any) -> Document:
    """A pod as a person writes it."""
    return written(objects.pod(name, cpu="100m", **more))


def outcomes(reply: ObjectsReply) -> list[str]:
    return [one.outcome for one in reply.results]


async def stored(bus: Bus, resource: str, name: str, namespace: str = "default") -> Stored:
    found = await writes.read(bus, ObjectKey(resource, namespace, name))
    assert found is not None
    return found


class Api:
    """A running instance and how people talk to it."""

    def __init__(self, service: Service[ApiSettings], spans: KeptSpans) -> None:
        self.bus = service.bus
        self.metrics = service.metrics
        self.spans = spans.spans

    async def ask(self, subject: str, request: msgspec.Struct, *, trace: str = "") -> ObjectsReply:
        reply = await self.bus.request(subject, codec.encode(request), trace=trace, timeout_s=WITHIN_S)
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
        await eventually(f"position {position}", lambda: self.metric("podyard_api_position") >= position)

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def ready(bus: Bus, key: Path | None = None) -> AsyncIterator[Api]:
    """:param key: file of the key of Secrets; none: they are refused"""
    spans = KeptSpans()
    service = make_service(SERVICE, bus, ApiSettings(secrets_key_file=str(key)) if key else None, spans=spans)
    async with running(service):
        await eventually("the api is ready", lambda: service.health.ready)
        yield Api(service, spans)


StartApi = Callable[[Bus], Awaitable[Api]]


@pytest_asyncio.fixture
async def start_api(hold: Hold[Api]) -> StartApi:
    async def start(bus: Bus) -> Api:
        return await hold(ready(bus))

    return start


@pytest_asyncio.fixture
async def api(bus: Bus, start_api: StartApi) -> Api:
    return await start_api(bus)
