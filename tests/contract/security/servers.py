"""Three servers of one trust boundary, with the configurations that `podyard security init` wrote."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

import anyio

from podyard.bus import EmbeddedServer, embedded_server, key_files
from podyard.cli.security import directory, identities, mirrors
from podyard.runtime import ports
from tests.contract.security.visitors import AGENTS

NAMES: Final = ("nats-1", "nats-2", "nats-3")
MADE_WITHIN_S: Final = 60.0
LOOK_EVERY_S: Final = 0.2


class Cluster:
    """They have one address on this machine, and ports of their own."""

    def __init__(self, security: Path, routes: dict[str, int]) -> None:
        """:param routes: ports on which they know each other, by name"""
        self.security = security
        self.servers: dict[str, EmbeddedServer] = {}
        self._routes = routes

    @property
    def urls(self) -> tuple[str, ...]:
        """Where clients connect."""
        return tuple(server.url for server in self.servers.values())

    def settings(self, name: str) -> dict[str, Any]:
        """What was written for a server, with the places of this machine."""
        folder = self.security / "server"
        written = json.loads((folder / f"cluster-{name}.conf").read_text().replace(directory.MOUNTED, str(folder)))
        for ours in ("port", "http"):
            del written[ours]
        del written["jetstream"]["store_dir"]
        others = [f"nats://127.0.0.1:{port}" for other, port in self._routes.items() if other != name]
        written["cluster"] |= {"host": "127.0.0.1", "port": self._routes[name], "routes": others}
        return written

    async def follow(self) -> NoReturn:
        """The servers go by files that are replaced, as where somebody copies them."""
        files = directory.server_files(self.security)
        before = key_files.seen(files)
        while True:
            await anyio.sleep(LOOK_EVERY_S)
            now = key_files.seen(files)
            if now != before:
                before = now
                for name, server in self.servers.items():
                    server.reload(self.settings(name))


@asynccontextmanager
async def cluster(folder: Path) -> AsyncGenerator[Cluster]:
    """Three servers with streams and mirrors, as long as the block runs."""
    security = folder / "security"
    directory.create(security, identities.all_identities(AGENTS), cluster=NAMES)
    here = Cluster(security, dict(zip(NAMES, ports.free_ports(len(NAMES)), strict=True)))
    async with AsyncExitStack() as stack:
        for name in NAMES:
            started = embedded_server(folder / name, settings=here.settings(name))
            here.servers[name] = await stack.enter_async_context(started)
        with anyio.fail_after(MADE_WITHIN_S):
            await mirrors.bootstrap(security, here.urls, replicas=len(NAMES))
        yield here
