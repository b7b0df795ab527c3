"""Tracing never breaks scheduling: with a collector that is away, hangs, or refuses, everything is bound all
the same.

How much it may cost is measured by `podyard bench`; what is lost is counted (tests/contract/telemetry).
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.stage import WITHIN_S, node, pod, stand

SERVICES: Final = "api,queue,scheduler,binder"
PODS: Final = 200
REFUSAL: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.mark.whole_faults
@pytest.mark.parametrize("kind", ["away", "hangs", "refuses"])
async def test_a_collector_that_does_not_work_delays_no_pod(tmp_path: Path, kind: str) -> None:
    async with collector(kind) as (port, calls):
        tracing = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_TRACES_SAMPLER": "always_on"}
        async with stand(tmp_path, SERVICES, environment=tracing) as here:
            await here.do.apply([node(f"node-{number}", cpu="64") for number in range(4)], "room for all")
            began_at = time.monotonic()
            await here.do.apply([pod(f"pod-{number}") for number in range(PODS)], "work")
            await here.seen.until("all bound", lambda: len(here.seen.view.placements) == PODS, WITHIN_S)
            print(
                f"{kind}: {PODS} pods bound in {time.monotonic() - began_at:.1f} s, {len(calls)} calls to the collector"
            )
            if kind != "away":
                async with asyncio.timeout(WITHIN_S):
                    while not calls:  # noqa: ASYNC110  # spans are sent every few seconds
                        await asyncio.sleep(0.1)
            await here.do.apply([pod("afterwards")], "work goes on")
            await here.seen.until("one more", lambda: len(here.seen.view.placements) == PODS + 1, WITHIN_S)
            await here.lab.until_ready(WITHIN_S)
            assert all(child.starts == 1 for child in here.lab.children)


@asynccontextmanager
async def collector(kind: str) -> AsyncGenerator[tuple[int, list[float]]]:
    """Its port, and when it was called."""
    calls: list[float] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(time.monotonic())
        await reader.read(1)
        if kind == "refuses":
            writer.write(REFUSAL)
            await writer.drain()
        else:
            await reader.read()
        writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    if kind == "away":
        server.close()
    try:
        yield port, calls
    finally:
        server.close()
