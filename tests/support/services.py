"""Services in the test's own process, made as `podyard run NAME` makes them."""

import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import msgspec
import prometheus_client
import structlog

from podyard.bus import Bus
from podyard.runtime.clock import Clock
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.pages import Pages
from podyard.runtime.service import Service, ServiceDefinition
from podyard.runtime.settings import ServiceSettings
from podyard.telemetry.tracing import Spans, SpanSink

S = TypeVar("S", bound=msgspec.Struct)
STALL_LIMIT_S = 60.0
"""Longer than any test blocks the loop: no test here is about that."""

_starts = itertools.count(1)


def make_service(
    definition: ServiceDefinition[S],
    bus: Bus | Any,
    settings: S | None = None,
    *,
    instance: str = "",
    spans: SpanSink | None = None,
    health: type[Health] = Health,
    clock: Clock | None = None,
) -> Service[S]:
    """A service with registry, health and session of its own.

    :param bus: its connection, or a stand-in for one
    :param settings: the defaults if None
    :param instance: `<name>-1` if empty; the session is unique to each call
    :param spans: where its spans go; nowhere if None
    :param clock: one that a test sets; else one that begins now
    """
    registry = prometheus_client.CollectorRegistry()
    known_as = instance or f"{definition.name}-1"
    session = f"{known_as}-{next(_starts)}"
    return Service(
        definition,
        process=ServiceSettings(instance=known_as),
        settings=definition.settings_type() if settings is None else settings,
        bus=bus,
        clock=clock or Clock(),
        health=health(stall_limit_s=STALL_LIMIT_S, registry=registry),
        pages=Pages(),
        spans=Spans(spans),
        metrics=registry,
        log=structlog.get_logger(),
        endpoints=Endpoints(bus, name=f"podyard-{definition.name}", identity=session, version="0", description="test"),
        session=session,
    )


@asynccontextmanager
async def running(service: Service[Any]) -> AsyncGenerator[anyio.CancelScope]:
    """The service runs inside the block, and has ended in order after it; cancel what is given to end it
    earlier.

    :raises ExceptionGroup: with what the service raised
    """
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                await service.definition.main(service)

        tasks.start_soon(run)
        yield scope
        scope.cancel()
