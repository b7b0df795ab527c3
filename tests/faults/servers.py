"""Real nats-servers for fault tests: one, or three that replicate as in production (R3,
`sync_interval: always`).

    async with three_servers(directory) as servers, connect(servers.settings("test")) as bus:
        await ensure_streams(bus, replicas=3)
        leader = await servers.leader(bus, "CLUSTER")
        await servers[leader].kill()

What can be done to a server: `kill`, `pause`, `resume`, `stop`, `start` (`EmbeddedServer`); its routes may be
led through proxies (`routes`); what its disk can do to it is in `disks`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import httpx
import msgspec

from podyard.bus import Bus, BusSettings, EmbeddedServer, embedded_server
from podyard.bus.embedded import store_limit_bytes
from podyard.bus.errors import BusError
from podyard.proto import streams
from podyard.runtime import ports

NAMES: Final = ("one", "two", "three")
NOWHERE: Final = "127.0.0.1:1"
"""What a server tells others to connect to: nothing listens there, so that only the configured routes are
used."""

ELECTED_WITHIN_S: Final = 30.0
CAUGHT_UP_WITHIN_S: Final = 90.0
HEALTHY: Final = '{"status":"ok"}'
POLL_S: Final = 0.05

Routes = Callable[[str, Mapping[str, int]], list[str]]
"""The routes that a server is to make: its name, and every server's own port for routes -> URLs."""


Undo = Callable[[], Awaitable[None]]
Harm = Callable[[EmbeddedServer], Awaitable[Undo]]
"""Does something to a server; what it returns undoes it."""


async def killed(server: EmbeddedServer) -> Undo:
    """SIGKILL; until it is undone it stays away."""
    await server.kill()
    return server.start


async def paused(server: EmbeddedServer) -> Undo:
    """SIGSTOP: connections stay, nothing is answered."""
    server.pause()

    async def resumed() -> None:
        server.resume()

    return resumed


async def stopped(server: EmbeddedServer) -> Undo:
    """SIGTERM: it ends in order."""
    await server.stop()
    return server.start


class Holds(NamedTuple):
    """A stream as it lies in one server's files."""

    messages: int
    first_sequence: int
    last_sequence: int


class Servers:
    """Some servers that together are NATS."""

    def __init__(
        self,
        servers: Mapping[str, EmbeddedServer],
        monitors: Mapping[str, int],
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """:param monitors: ports of their HTTP endpoints

        :param settings: what each was started with
        """
        self.by_name = dict(servers)
        self.monitors = monitors
        self._settings = settings or {}

    def __getitem__(self, name: str) -> EmbeddedServer:
        return self.by_name[name]

    @property
    def urls(self) -> tuple[str, ...]:
        """Where clients connect, by name of the server."""
        return tuple(server.url for server in self.by_name.values())

    def others(self, *names: str) -> list[str]:
        """The names of the servers that are not these."""
        return [name for name in self.by_name if name not in names]

    def reconfigure(self, name: str, settings: Mapping[str, Any]) -> None:
        """Further settings of a server, from its next start on."""
        self[name].reload({**self._settings[name], **settings})

    async def variable(self, name: str, variable: str) -> Any:
        """What /varz of a server says of a setting."""
        return msgspec.json.decode(await self._monitored(name, "/varz"))[variable]

    async def healthy(self, name: str, within_s: float = CAUGHT_UP_WITHIN_S) -> None:
        """Wait until a server says that all its streams are well, as deployments ask. That a replica is
        `current` is no proof: of one that lost its store the leader says so after 0.2 s, while catching up
        may take half a minute (nats-server 2.15.1)."""
        said = "nothing"
        with anyio.move_on_after(within_s):
            while (said := await self.health(name)) != HEALTHY:  # noqa: ASYNC110  # nobody tells
                await anyio.sleep(POLL_S)
            return
        raise AssertionError(f"the server {name} is not healthy within {within_s:g} s: {said}")

    async def caught_up(self, name: str, stream: str, within_s: float = CAUGHT_UP_WITHIN_S) -> None:
        """Wait until a server has of the stream what the others have, while nobody writes.

        Neither that it is `current` in the stream's description nor its /healthz is a proof of that
        (nats-server 2.15.1): each server's /jsz tells what lies in its own files.
        """
        await self._alike(name, stream, within_s, lambda holds: holds)

    async def at_the_end(self, name: str, stream: str, within_s: float = CAUGHT_UP_WITHIN_S) -> Holds:
        """Wait until a server has the last message that the others have, while nobody writes; it may lack
        earlier ones.

        :return: what it holds then
        """
        return await self._alike(name, stream, within_s, lambda holds: holds.last_sequence)

    async def _alike(self, name: str, stream: str, within_s: float, what: Callable[[Holds], object]) -> Holds:
        """Wait until all servers hold the same of a stream.

        :param what: of what they hold is to be the same
        :return: what the server `name` holds then
        """
        holds: dict[str, Holds | None] = {}
        with anyio.move_on_after(within_s):
            while True:
                holds = {each: await self.holds(each, stream) for each in self.by_name}
                mine = holds[name]
                if mine is not None and all(one and what(one) == what(mine) for one in holds.values()):
                    return mine
                await anyio.sleep(POLL_S)
        raise AssertionError(f"the server {name} has not caught up within {within_s:g} s: {holds}")

    async def holds(self, name: str, stream: str) -> Holds | None:
        """What of a stream lies in the server's files; None if it does not say."""
        said = await self._monitored(name, "/jsz?accounts=true&streams=true")
        try:
            accounts = msgspec.json.decode(said)["account_details"]
        except (msgspec.DecodeError, KeyError):
            return None
        for account in accounts:
            for found in account.get("stream_detail", ()):
                if found["name"] == stream:
                    state = found["state"]
                    return Holds(state["messages"], state["first_seq"], state["last_seq"])
        return None

    async def health(self, name: str) -> str:
        """What /healthz of a server says, or why it says nothing."""
        return await self._monitored(name, "/healthz")

    async def _monitored(self, name: str, path: str) -> str:
        try:
            async with httpx.AsyncClient(timeout=2.0) as client:
                return (await client.get(f"http://127.0.0.1:{self.monitors[name]}{path}")).text
        except httpx.HTTPError as error:
            return type(error).__name__

    def settings(self, name: str, *, at: str = "") -> BusSettings:
        """How a client connects: to any of them, or only to the server `at`."""
        urls = (self[at].url,) if at else self.urls
        return BusSettings(servers=urls, name=name, request_timeout_s=2.0)

    async def leader(self, bus: Bus, stream: str, *, but: str = "") -> str:
        """Who leads the stream, waited for.

        :param but: the former leader, of which an old answer may still tell
        """
        with anyio.fail_after(ELECTED_WITHIN_S):
            while True:
                found = (await _told(bus, stream)).get("leader", "")
                if found and found != but:
                    return found
                await anyio.sleep(POLL_S)

    async def let_lead(self, bus: Bus, stream: str, name: str) -> None:
        """Move the stream's leadership to a server, waited for: it may have to catch up first."""
        with anyio.fail_after(CAUGHT_UP_WITHIN_S):
            while (await _told(bus, stream)).get("leader") != name:
                body = msgspec.json.encode({"placement": {"preferred": name}})
                with suppress(BusError):
                    await bus.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", body)
                await anyio.sleep(POLL_S)


@asynccontextmanager
async def one_server(
    directory: Path, *, settings: Mapping[str, Any] | None = None, jetstream: Mapping[str, Any] | None = None
) -> AsyncGenerator[Servers]:
    """One server as it runs on one machine: `sync_interval` as the server has it, unless `jetstream` says
    otherwise."""
    monitor = ports.free_port()
    wanted = {"http": f"127.0.0.1:{monitor}", "jetstream": _jetstream(jetstream), **(settings or {})}
    async with embedded_server(directory, settings=wanted) as server:
        yield Servers({NAMES[0]: server}, {NAMES[0]: monitor})


@asynccontextmanager
async def three_servers(directory: Path, *, routes: Routes | None = None) -> AsyncGenerator[Servers]:
    """Three servers that replicate, each with fsync before every acknowledgement.

    :param routes: which URLs each connects to; `None`: every other server, directly
    """
    free = ports.free_ports(2 * len(NAMES))
    clustering = dict[str, int](zip(NAMES, free[:3], strict=True))
    monitors = dict[str, int](zip(NAMES, free[3:], strict=True))
    async with AsyncExitStack() as stack:
        servers: dict[str, EmbeddedServer] = {}
        settings: dict[str, dict[str, Any]] = {}
        for name in NAMES:
            settings[name] = _clustered(name, clustering, (routes or direct)(name, clustering))
            settings[name]["http"] = f"127.0.0.1:{monitors[name]}"
            started = embedded_server(directory / name, settings=settings[name])
            servers[name] = await stack.enter_async_context(started)
        yield Servers(servers, monitors, settings)


def direct(name: str, ports: Mapping[str, int]) -> list[str]:
    """Routes to all others, with nothing between."""
    return [f"nats://127.0.0.1:{port}" for other, port in ports.items() if other != name]


def _clustered(name: str, ports: Mapping[str, int], routes: list[str]) -> dict[str, Any]:
    return {
        "server_name": name,
        "jetstream": _jetstream({"sync_interval": "always"}),
        "cluster": {
            "name": "podyard",
            "host": "127.0.0.1",
            "port": ports[name],
            "routes": routes,
            "no_advertise": True,
            "advertise": NOWHERE,
        },
    }


def _jetstream(more: Mapping[str, Any] | None) -> dict[str, Any]:
    limits = {"max_file_store": store_limit_bytes(), "max_memory_store": 256 * streams.MEBIBYTE}
    return {**limits, **(more or {})}


async def _told(bus: Bus, stream: str) -> dict[str, Any]:
    """What the server says about the stream's replicas; nothing if it does not answer."""
    try:
        answer = await bus.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout_s=1.0)
    except BusError:
        return {}
    return msgspec.json.decode(answer.payload).get("cluster") or {}
