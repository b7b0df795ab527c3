"""Fixtures that need a real NATS server: `bus_server`, `connect_bus`, `bus`, and `hold` for other context managers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest_asyncio

from podyard.bus import Bus, BusSettings, EmbeddedServer, connect, embedded_server, ensure_streams
from tests.support import plays

pytest_addoption = plays.pytest_addoption
pytest_configure = plays.pytest_configure
pytest_collection_modifyitems = plays.pytest_collection_modifyitems

T = TypeVar("T")
Hold = Callable[[AbstractAsyncContextManager[T]], Awaitable[T]]
ConnectBus = Callable[..., Awaitable[Bus]]


class _Held:
    """A context manager entered and left in one task of its own, as cancel scopes need; pytest-asyncio's fixtures use two."""

    def __init__(self, manager: AbstractAsyncContextManager[Any]) -> None:
        self._manager = manager
        self._end = asyncio.Event()
        self._entered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    async def entered(self) -> Any:
        return await self._entered

    async def leave(self) -> None:
        self._end.set()
        await self._task

    async def _run(self) -> None:
        try:
            async with self._manager as value:
                self._entered.set_result(value)
                await self._end.wait()
        except BaseException as error:
            if self._entered.done():
                raise
            self._entered.set_exception(error)


@pytest_asyncio.fixture
async def hold() -> AsyncIterator[Hold[Any]]:
    """`await hold(manager)` enters an async context manager until the end of the test; the last one is left first."""
    async with AsyncExitStack() as stack:

        async def enter(manager: AbstractAsyncContextManager[T]) -> T:
            held = _Held(manager)
            value = await held.entered()
            stack.push_async_callback(held.leave)
            return value

        yield enter


@pytest_asyncio.fixture
async def bus_server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A nats-server with an empty store, without streams."""
    async with embedded_server(tmp_path / "nats") as server:
        yield server


@pytest_asyncio.fixture
async def connect_bus(bus_server: EmbeddedServer, hold: Hold[Bus]) -> ConnectBus:
    """`await connect_bus("name", request_timeout_s=1.0, ...)`: a further connection to `bus_server`, closed at the end."""

    async def connected(name: str = "test", **settings: Any) -> Bus:
        return await hold(connect(BusSettings(servers=(bus_server.url,), name=name, **settings)))

    return connected


@pytest_asyncio.fixture
async def bus(connect_bus: ConnectBus) -> Bus:
    """A connection to `bus_server`, all streams made."""
    connection = await connect_bus()
    await ensure_streams(connection)
    return connection
