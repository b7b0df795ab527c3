"""Connections as one identity each, which note what the server forbids them."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg

from podyard.bus import Bus, EmbeddedServer, connect, embedded_server
from podyard.cli.security import directory, identities, mirrors
from podyard.cli.security.identities import Identity

AGENTS: Final = {"rack1": ("node-1",)}
FEW: Final = ("admin", "mirrors", "operator", "api", "queue", "person")
WITHIN_S: Final = 10.0
_FORBIDDEN: Final = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"', re.IGNORECASE)


class Visitor:
    """One connection; subjects as the server wrote them, in lower case since nats-py makes them so."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.client = Client()
        self.refused_publishes: set[str] = set()
        self.refused_subscriptions: set[str] = set()

    async def note(self, error: Exception) -> None:
        found = _FORBIDDEN.search(str(error))
        if found is not None:
            kind, subject = found.groups()
            noted = self.refused_publishes if kind.lower() == "publish" else self.refused_subscriptions
            noted.add(subject.lower())

    async def publish_all(self, subjects: Sequence[str]) -> set[str]:
        """Publish to each, the identity's name as payload; returns those that the server refused."""
        for subject in subjects:
            await self.client.publish(subject, self.identity.name.encode())
        await self.settled()
        return {subject for subject in subjects if subject.lower() in self.refused_publishes}

    async def subscribe_all(self, subjects: Sequence[str]) -> set[str]:
        """Listen to each; returns those that the server refused."""
        for subject in subjects:
            await self.client.subscribe(subject)
        await self.settled()
        return {subject for subject in subjects if subject.lower() in self.refused_subscriptions}

    async def settled(self) -> None:
        """Until the server has handled what was sent: what we sent to ourselves last comes back after its
        complaints."""
        done = asyncio.Event()

        async def back(_message: Msg) -> None:
            done.set()

        subject = f"{self.identity.inbox}.settled"
        listening = await self.client.subscribe(subject, cb=back)
        await self.client.publish(subject, b"")
        async with asyncio.timeout(WITHIN_S):
            await done.wait()
        await listening.unsubscribe()

    async def ask(self, subject: str, body: Any, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """Request and JSON answer."""
        payload = body if isinstance(body, bytes) else msgspec.json.encode(body)
        answer = await self.client.request(subject, payload, timeout=WITHIN_S, headers=headers)
        return msgspec.json.decode(answer.data)


class Site:
    """A server with accounts, its streams and mirrors."""

    def __init__(self, server: EmbeddedServer, security: Path, admin: Bus, read: Bus) -> None:
        self.server = server
        self.security = security
        self.admin = admin
        self.read = read

    def identity(self, name: str) -> Identity:
        return directory.named(name, AGENTS)

    @asynccontextmanager
    async def visit(self, name: str) -> AsyncGenerator[Visitor]:
        visitor = Visitor(self.identity(name))
        given = directory.environment(self.security, visitor.identity)
        await visitor.client.connect(
            self.server.url,
            nkeys_seed=given["PODYARD_NATS_NKEY_SEED_FILE"],
            tls=tls(given),
            inbox_prefix=visitor.identity.inbox,
            error_cb=visitor.note,
            allow_reconnect=False,
        )
        try:
            yield visitor
        finally:
            await visitor.client.close()


def tls(given: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=given["PODYARD_NATS_TLS_CA_FILE"])
    context.load_cert_chain(given["PODYARD_NATS_TLS_CERT_FILE"], given["PODYARD_NATS_TLS_KEY_FILE"])
    return context


@asynccontextmanager
async def site(
    folder: Path, *, change: Callable[[dict[str, Any]], None] | None = None, few: bool = False
) -> AsyncGenerator[Site]:
    """:param change: changes the server's settings, to see what they are good for
    :param few: with some identities only, where each takes time
    """
    security = folder / "security"
    known = identities.all_identities(AGENTS)
    directory.create(security, [one for one in known if one.name in FEW] if few else known)
    settings = directory.server_settings(security)
    if change is not None:
        change(settings)
    async with embedded_server(folder / "nats", settings=settings) as server:
        await mirrors.bootstrap(security, (server.url,))
        admin = directory.bus_settings(security, directory.named(identities.ADMIN), (server.url,))
        read = directory.bus_settings(security, directory.named(identities.MIRRORS), (server.url,))
        async with connect(admin) as core, connect(read) as mirror:
            yield Site(server, security, core, mirror)
