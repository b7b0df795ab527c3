"""What a rotation asks of running servers, as the operator: to read their configuration again, who is
connected with a key, whom they let in."""

import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import msgspec
from anyio.streams.tls import TLSAttribute, TLSStream

from podyard.bus.connection import Bus, BusState, connect
from podyard.bus.errors import BusError, TemporaryError, Unclear
from podyard.bus.settings import BusSettings, without_secrets
from podyard.cli.errors import CliError, InputError
from podyard.cli.security import directory, identities

CONNECT_S: Final = 5.0
ATTEMPTS: Final = 5
LOOK_EVERY_S: Final = 0.25
REFUSED: Final = "authorization"
"""In what a server says to who has a key that it does not know."""
MOST_CONNECTIONS: Final = 10_000
DEFAULT_PORT: Final = 4222
GREETING_BYTES: Final = 65_536
ALERT_WITHIN_S: Final = 0.5
"""Seconds that a server gets to say that it does not believe a certificate, before we go on."""


class _Server(msgspec.Struct):
    id: str
    name: str = ""


class _Info(msgspec.Struct):
    server: _Server


class _Error(msgspec.Struct):
    description: str = ""


class _Reloaded(msgspec.Struct):
    error: _Error | None = None


class _Stats(msgspec.Struct):
    active_servers: int = 1


class _Statsz(msgspec.Struct):
    statsz: _Stats


class _Connection(msgspec.Struct):
    name: str = ""
    ip: str = ""


class _Connections(msgspec.Struct):
    connections: list[_Connection] = []


class _Connz(msgspec.Struct):
    data: _Connections


class Servers:
    """The servers of one directory. Each is asked by an address of its own."""

    def __init__(self, place: Path, addresses: Sequence[str]) -> None:
        self.addresses = tuple(addresses)
        self._place = place

    async def reload(self) -> None:
        """Have all of them read their configuration again.

        :raises CliError: if one is not there, or refuses what it read
        :raises InputError: if the cluster has more of them than were named
        """
        for address in self.addresses:
            stats = await self._asked(address, "STATSZ", {}, _Statsz)
            if stats.statsz.active_servers > len(self.addresses):
                raise InputError(
                    f"there are {stats.statsz.active_servers} servers, and {len(self.addresses)} named",
                    "name every one: --nats nats://nats-1:4222,nats://nats-2:4222,nats://nats-3:4222",
                )
            answer = await self._asked(address, "RELOAD", {}, _Reloaded)
            if answer.error is not None:
                raise CliError(f"{_shown(address)} does not take its configuration: {answer.error.description}")

    async def connected(self, key: str) -> list[str]:
        """Who is connected with a public key: names of connections and where they come from."""
        found: list[str] = []
        asked = {"auth": True, "user": key, "limit": MOST_CONNECTIONS}
        for address in self.addresses:
            connz = await self._asked(address, "CONNZ", asked, _Connz)
            found += [f"{one.name or 'somebody'} ({one.ip})" for one in connz.data.connections]
        return sorted(found)

    async def _asked(self, address: str, what: str, body: Any, answer: Any) -> Any:
        """One question, repeated where the connection is lost: a server that reads its configuration again
        closes those that are just being made. To ask twice does no harm."""
        for _attempt in range(ATTEMPTS - 1):
            try:
                return await self._asked_once(address, what, body, answer)
            except (TemporaryError, Unclear):
                await anyio.sleep(LOOK_EVERY_S)
        try:
            return await self._asked_once(address, what, body, answer)
        except BusError as error:
            raise CliError(f"{_shown(address)}: {error}", "run the same command again: it goes on") from error

    async def _asked_once(self, address: str, what: str, body: Any, answer: Any) -> Any:
        async with self._operator(address) as (bus, own):
            return await _ask(bus, f"$SYS.REQ.SERVER.{own.id}.{what}", body, answer)

    @asynccontextmanager
    async def _operator(self, address: str) -> AsyncGenerator[tuple[Bus, _Server]]:
        settings = directory.bus_settings(self._place, directory.named(identities.OPERATOR), (address,))
        async with connect(settings, wait=False) as bus:
            with anyio.move_on_after(CONNECT_S) as limit:
                await bus.connected()
            if limit.cancelled_caught:
                raise CliError(
                    f"the operator does not get in at {_shown(address)}: {bus.state.last_error}",
                    "is it running, with the configuration of this directory? Name servers with --nats",
                )
            yield bus, (await _ask(bus, "$SYS.REQ.USER.INFO", {}, _Info)).server


async def lets_in(settings: BusSettings) -> bool:
    """Whether a server lets somebody in.

    :raises CliError: if it says neither within 5 s
    """
    answered = anyio.Event()
    refused = False

    def note(state: BusState) -> None:
        # noted at once: the end of the connection, which follows, is told as an error of its own
        nonlocal refused
        refused = refused or REFUSED in state.last_error.lower()
        if refused or state.connected:
            answered.set()

    async with connect(settings, on_state=note, wait=False) as bus:
        with anyio.move_on_after(CONNECT_S):
            await answered.wait()
        if not answered.is_set():
            raise CliError(f"{settings.shown_servers} does not answer: {bus.state.last_error}")
    return not refused


async def certificate_of(settings: BusSettings) -> bytes:
    """The certificate (DER) that a server shows now; it greets in plain text, then TLS begins.

    :raises CliError: if it cannot be had
    """
    async with _by_hand(settings) as secured:
        found = secured.extra(TLSAttribute.peer_certificate_binary, None)
    if found is None:
        raise CliError(f"{settings.shown_servers} shows no certificate")
    return found


async def believes(settings: BusSettings) -> bool | None:
    """Whether a server believes who made the certificate that it is shown; None if it does not say. With TLS
    1.3 the client is through before the server looks at its certificate: what comes next tells.

    :raises CliError: if it does not answer, or we do not believe its own
    """
    try:
        async with _by_hand(settings) as secured:
            with anyio.move_on_after(ALERT_WITHIN_S):
                await secured.receive(GREETING_BYTES)
            await secured.send(b"CONNECT {}\r\nPING\r\n")
            with anyio.fail_after(CONNECT_S):
                # that we have no key is said by who believes the certificate
                return REFUSED.encode() in (await secured.receive(GREETING_BYTES)).lower()
    except ssl.SSLError:
        return False
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError):
        return None


@asynccontextmanager
async def _by_hand(settings: BusSettings) -> AsyncGenerator[TLSStream]:
    """A connection on which nothing was said but the server's greeting, which is plain; then TLS begins.

    :raises CliError: if it cannot be made
    """
    parts = urlsplit(settings.servers[0])
    context = ssl.create_default_context(cafile=settings.tls_ca_file)
    context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file)
    async with AsyncExitStack() as stack:
        try:
            with anyio.fail_after(CONNECT_S):
                plain = await anyio.connect_tcp(parts.hostname or "", parts.port or DEFAULT_PORT)
                await stack.enter_async_context(plain)
                await plain.receive(GREETING_BYTES)
                secured = await TLSStream.wrap(plain, hostname=parts.hostname or "", ssl_context=context)
        except (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            raise CliError(f"{settings.shown_servers} shows no certificate: {type(error).__name__}: {error}") from error
        yield secured


async def _ask(bus: Bus, subject: str, body: Any, answer: Any) -> Any:
    reply = await bus.request(subject, msgspec.json.encode(body))
    try:
        return msgspec.json.decode(reply.payload, type=answer)
    except msgspec.DecodeError as error:
        raise CliError(f"the server's answer to {subject} cannot be read: {error}") from error


def _shown(address: str) -> str:
    return without_secrets(address)
