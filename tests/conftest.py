"""Fixtures for tests on a bus. `--bus` names its server: `memory`, the model in this process, or `nats`, the
real one.

- `bus_server`, `connect_bus`, `bus`         on the server that `--bus` names
- `nats_server`, `connect_nats`, `nats_bus`  on a real one always: for what the model lacks, or what leaves
  this process
- `hold`                                     for other context managers
"""

import gc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from podyard.bus import Bus, EmbeddedServer, embedded_server, ensure_streams
from podyard.runtime import clock
from tests.memory_nats import LoopTimers, MemoryServer
from tests.support import plays
from tests.support.buses import KINDS, MEMORY, ConnectBus, Server, connector
from tests.support.holding import Hold, holding

pytest_configure = plays.pytest_configure
pytest_collection_modifyitems = plays.pytest_collection_modifyitems


def pytest_collection_finish() -> None:
    """What is loaded by now stays: the garbage collector need not go through it again (a twentieth of the CPU
    time)."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    plays.pytest_addoption(parser)
    parser.addoption(
        "--bus", choices=KINDS, default=MEMORY, help="the server of tests that do not need a real one (default: memory)"
    )
    parser.addoption(
        "--churn-s",
        type=float,
        default=0.0,
        help="seconds of changes with which tests/kube/test_controller_manager.py goes on (default: none)",
    )


@pytest.fixture
def bus_kind(request: pytest.FixtureRequest) -> str:
    """Which server `bus_server` is."""
    return request.config.getoption("--bus")


@pytest_asyncio.fixture
async def hold() -> AsyncIterator[Hold[Any]]:
    """`await hold(manager)` enters a context manager until the end of the test; the last one is left
    first."""
    async with holding() as hold:
        yield hold


@pytest_asyncio.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A nats-server with an empty store, without streams."""
    async with embedded_server(tmp_path / "nats") as server:
        yield server


@pytest.fixture
def bus_server(bus_kind: str, request: pytest.FixtureRequest) -> Server:
    """A server with an empty store, without streams."""
    if bus_kind == MEMORY:
        return MemoryServer(LoopTimers(clock.now))
    return request.getfixturevalue("nats_server")


@pytest_asyncio.fixture
async def connect_bus(bus_server: Server, hold: Hold[Bus]) -> ConnectBus:
    """`await connect_bus("name", request_timeout_s=1.0)`: a further connection to `bus_server`, closed at the
    end.
    """
    return connector(bus_server, hold)


@pytest_asyncio.fixture
async def bus(connect_bus: ConnectBus) -> Bus:
    """A connection to `bus_server`, all streams made."""
    return await _with_streams(connect_bus)


@pytest_asyncio.fixture
async def connect_nats(nats_server: EmbeddedServer, hold: Hold[Bus]) -> ConnectBus:
    """As `connect_bus`, to `nats_server`."""
    return connector(nats_server, hold)


@pytest_asyncio.fixture
async def nats_bus(connect_nats: ConnectBus) -> Bus:
    """A connection to `nats_server`, all streams made."""
    return await _with_streams(connect_nats)


async def _with_streams(connect_to_it: ConnectBus) -> Bus:
    connection = await connect_to_it()
    await ensure_streams(connection)
    return connection
