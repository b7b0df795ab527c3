"""The bus on either server: a real one, or the model in memory that passes the bus' own contract suite.

server = MemoryServer(LoopTimers(clock.now))  # or that of `embedded_server(directory)`
async with connected(server, "me") as bus: ...
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from podyard.bus import Bus, BusSettings, EmbeddedServer, connect
from podyard.runtime import clock
from tests import memory_nats
from tests.memory_nats import MemoryServer
from tests.support.holding import Hold

MEMORY: Final = "memory"
NATS: Final = "nats"
KINDS: Final = (NATS, MEMORY)

Server = EmbeddedServer | MemoryServer
ConnectBus = Callable[..., Awaitable[Bus]]
"""`await connect_bus("name", request_timeout_s=1.0)`: a further connection, closed at the end of the test."""


def connected(server: Server, name: str = "test", **settings: Any) -> AbstractAsyncContextManager[Bus]:
    """A connection to the server, for as long as the block runs.

    :param settings: further fields of BusSettings
    """
    if isinstance(server, MemoryServer):
        return memory_nats.connect(server, BusSettings(name=name, **settings), now=clock.now)
    return connect(BusSettings(servers=(server.url,), name=name, **settings), now=clock.now)


def connector(server: Server, hold: Hold[Bus]) -> ConnectBus:
    """Makes connections that `hold` closes."""

    async def connect_bus(name: str = "test", **settings: Any) -> Bus:
        return await hold(connected(server, name, **settings))

    return connect_bus
