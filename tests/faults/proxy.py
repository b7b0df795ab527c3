"""A TCP proxy before a NATS server, one for each service process, that does harm: to bytes, to single
messages, to the process.

It reads the client protocol, so that a message can be named by what it is about: its subject, or
`answer to <subject>` for the reply to a request, in whichever direction that travels. Patterns are those of
NATS (`*`, `>`) over such names.

    proxy.up.hold()                                         nothing of the process arrives any more (one way)
    proxy.rule(DropAnswers("answer to svc.binder.bind", times=3))
    proxy.rule(CrashPoint("placement.fence", "stored", nth=4))
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeVar

from tests.faults.connection import CHUNK, Connection, Ends, Observer, Way
from tests.faults.frames import Frame
from tests.faults.message_rules import Rule

R = TypeVar("R", bound=Rule)
CLOSED_WITHIN_S: Final = 1.0


class Proxy:
    """What stands between one process and the servers. Owned by the event loop that serves it."""

    def __init__(self, name: str, servers: Sequence[int], tell: Callable[[str], None]) -> None:
        """
        :param servers: ports on the loopback address; each connection goes to the next one that takes it
        :param tell: gets a sentence for all that is done
        """
        self.name = name
        self.servers = list(servers)
        self.up, self.down = Way(), Way()
        self.port = 0
        self.made = 0
        """Connections so far."""
        self.kill: Callable[[], None] = lambda: None
        """Ends the process at once (SIGKILL); called at a crash point."""
        self.sent: list[Observer] = []
        """Called for every message that goes to the server, when it goes."""
        self.said: list[Observer] = []
        """Called for every message that comes from the server, even if the process never gets it."""
        self._tell = tell
        self._on_their_way = 0
        self._landed = asyncio.Event()
        self._rules: list[Rule] = []
        self._connections: list[Connection] = []
        self._turn = 0

    @property
    def url(self) -> str:
        """Where the process connects."""
        return f"nats://127.0.0.1:{self.port}"

    def tell(self, text: str) -> None:
        """Tell what is done here."""
        self._tell(f"{self.name}: {text}")

    def rule(self, rule: R) -> R:
        """Apply a rule from now on, until it ends by itself or by `rule.end()`."""
        rule.begin(self.tell)
        self._rules.append(rule)
        return rule

    def rules(self) -> list[Rule]:
        """Those that have not ended, in the order in which they were made."""
        if any(rule.over for rule in self._rules):
            self._rules = [rule for rule in self._rules if not rule.over]
        return self._rules

    def hold(self, *, up: bool = False, down: bool = False) -> None:
        """A partition: nothing comes through these ways; connections stay."""
        self.tell("holds " + " and ".join(way for way, held in (("up", up), ("down", down)) if held))
        if up:
            self.up.hold()
        if down:
            self.down.hold()

    def heal(self) -> None:
        """End of holding, latency and limits in both directions; rules go on."""
        if self.up.harmed or self.down.harmed:
            self.tell("heals")
        for way in (self.up, self.down):
            way.latency_s, way.bytes_left = 0.0, None
            way.release()

    def reset(self) -> None:
        """End all connections at once (RST)."""
        self.tell("resets the connection")
        for connection in self._connections:
            connection.reset()

    async def landed(self) -> None:
        """Wait until all that comes late has come."""
        while self._on_their_way:
            self._landed.clear()
            await self._landed.wait()

    def later(self, delay_s: float, arrive: Callable[[], None]) -> None:
        """Something arrives so many seconds from now."""

        def land() -> None:
            self._on_their_way -= 1
            arrive()
            self._landed.set()

        self._on_their_way += 1
        asyncio.get_running_loop().call_later(delay_s, land)

    def send(self, frame: Frame) -> bool:
        """Bring a message to the server as if the process had sent it, on its newest connection; whether
        there is one."""
        if not self._connections:
            return False
        self._connections[-1].inject(frame)
        return True

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the process."""
        ends: list[Ends] = [(reader, writer)]
        try:
            server = await self._dial()
            if server is not None:
                ends.append(server)
                await self._serve(Connection(self, (reader, writer), server))
        finally:
            for _, end in ends:  # all of them first: who waits for one to be closed may be cancelled
                end.close()
            for _, end in ends:
                await _closed(end)

    async def _serve(self, connection: Connection) -> None:
        self._connections.append(connection)
        self.made += 1
        try:
            await connection.run()
        finally:
            self._connections.remove(connection)

    async def _dial(self) -> Ends | None:
        for _ in self.servers:
            port = self.servers[self._turn % len(self.servers)]
            self._turn += 1
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port, limit=CHUNK)
        return None


@asynccontextmanager
async def serving(proxy: Proxy) -> AsyncGenerator[Proxy]:
    """Listen on a port of its own while the block runs."""
    served: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(proxy.accept(reader, writer))
        served.add(task)
        task.add_done_callback(served.discard)
        # one that is cancelled before it has begun closes nothing itself
        task.add_done_callback(lambda _: writer.close())

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=CHUNK)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        failed: list[Exception] = []
        while served:
            for task in served:
                task.cancel()
            ended = await asyncio.gather(*served, return_exceptions=True)
            failed += [one for one in ended if isinstance(one, Exception)]
        if failed:
            raise failed[0]


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Close it: what was written is still sent, if the other side takes it soon."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSED_WITHIN_S):
            await writer.wait_closed()
    except OSError:
        writer.transport.abort()
    except asyncio.CancelledError:
        writer.transport.abort()
        raise
