"""The network between the servers of a cluster, which can be cut in one direction.

Each server's configured routes lead through proxies, one for each pair of servers; what servers would tell
each other of further addresses leads nowhere (`servers.NOWHERE`). Bytes are passed on as they are.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import permutations
from typing import Final

CHUNK: Final = 1 << 16


class Gate:
    """One direction between two servers."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()


class Routes:
    """All pairs. Owned by the event loop that serves them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._gates = {pair: Gate() for pair in permutations(names, 2)}
        self._ports: dict[tuple[str, str], int] = {}
        """By who connects, and to whom."""
        self._targets: Mapping[str, int] = {}
        self._writers: set[asyncio.StreamWriter] = set()

    def urls(self, name: str, ports: Mapping[str, int]) -> list[str]:
        """The routes of a server, as `servers.three_servers` asks for them."""
        self._targets = ports
        return [f"nats://127.0.0.1:{self._ports[name, other]}" for other in self._names if other != name]

    def hold(self, sender: str, receiver: str) -> None:
        """What `sender` sends to `receiver` does not arrive any more; the connections stay."""
        self._gates[sender, receiver].open.clear()

    def heal(self) -> None:
        """Let through everything, what was held first."""
        for gate in self._gates.values():
            gate.open.set()

    async def serve(self, stack: AsyncExitStack) -> None:
        """Listen for every pair until the stack is left."""
        for pair in permutations(self._names, 2):
            server = await asyncio.start_server(partial(self._accept, *pair), "127.0.0.1", 0, limit=CHUNK)
            self._ports[pair] = server.sockets[0].getsockname()[1]
            stack.callback(server.close)
        stack.callback(self._abort)

    async def _accept(
        self, caller: str, called: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            onward = await asyncio.open_connection("127.0.0.1", self._targets[called], limit=CHUNK)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, onward[1]}
        there, back = self._gates[caller, called], self._gates[called, caller]
        try:
            await asyncio.gather(_pass_on(reader, onward[1], there), _pass_on(onward[0], writer, back))
        finally:
            self._writers -= {writer, onward[1]}
            for one in (writer, onward[1]):
                one.transport.abort()

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def between(names: Sequence[str]) -> AsyncGenerator[Routes]:
    """The routes of these servers, for as long as the block runs."""
    found = Routes(names)
    async with AsyncExitStack() as stack:
        await found.serve(stack)
        yield found


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: Gate) -> None:
    """One direction of one connection; the end of it ends both."""
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            await gate.open.wait()
            writer.write(data)
            await writer.drain()
    writer.transport.abort()
