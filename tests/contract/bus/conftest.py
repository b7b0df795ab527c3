"""The suite runs on the real server and, where a test needs no server process of its own, on the one in memory as well."""

import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from podyard.bus import Bus, BusSettings, EmbeddedServer, connect, embedded_server, memory
from tests.conftest import ConnectBus, Hold

KINDS = ("nats", "memory")

ONLY_NATS = {
    "test_settings_that_cannot_be_changed_are_a_clear_error": "a stream in memory takes any new setting",
    "test_a_client_that_was_closed_for_good_is_replaced": "there is no client of nats-py",
    "test_a_silent_read_loop_is_noticed": "there is no read loop",
    "test_a_lost_message_is_noticed_by_the_next_one": "the test loses it in nats-py's client; the simulation loses its own",
    "test_a_lost_message_is_noticed_by_a_heartbeat": "as above",
}
"""Tests of what the server in memory does not model, and why."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """On which server a test runs."""
    if "bus_kind" in metafunc.fixturenames:
        own = inspect.signature(metafunc.function).parameters
        only_nats = "bus_server" in own or metafunc.function.__name__ in ONLY_NATS
        metafunc.parametrize("bus_kind", KINDS[:1] if only_nats else KINDS)


@pytest_asyncio.fixture
async def bus_server(tmp_path: Path, bus_kind: str) -> AsyncIterator[EmbeddedServer | memory.MemoryServer]:
    """A server with an empty store, without streams."""
    if bus_kind == "memory":
        yield memory.MemoryServer()
        return
    async with embedded_server(tmp_path / "nats") as server:
        yield server


@pytest_asyncio.fixture
async def connect_bus(bus_server: EmbeddedServer | memory.MemoryServer, hold: Hold[Bus]) -> ConnectBus:
    """`await connect_bus("name", request_timeout_s=1.0, ...)`: a further connection to `bus_server`, closed at the end."""

    async def connected(name: str = "test", **settings: Any) -> Bus:
        if isinstance(bus_server, memory.MemoryServer):
            return await hold(memory.connect(bus_server, BusSettings(name=name, **settings)))
        return await hold(connect(BusSettings(servers=(bus_server.url,), name=name, **settings)))

    return connected
