"""The HTTP servers of a process: a thread with an event loop of its own, so that a stalled service still
answers.

Two ports: plain HTTP, on the loopback unless asked otherwise, and HTTPS where a secure port is set.
"""

import asyncio
import contextlib
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

import prometheus_client
import structlog

from podyard.bus import key_files
from podyard.runtime import clock, connections, web
from podyard.runtime.connections import Configured, Door
from podyard.runtime.health import Health
from podyard.runtime.identities import Access
from podyard.runtime.pages import Pages
from podyard.runtime.settings import HttpSettings, HttpsSettings, ServiceSettings, SettingsError

CERTIFICATES_CHECK: Final = "certificates"
LOOK_EVERY_S: Final = 5.0
"""How often it is looked whether files of the secure port have changed."""
END_S: Final = 2.0
"""How long the thread may take to end; it is left alone then."""
BACKLOG: Final = 128
"""Connections that the kernel holds until they are accepted."""
REASONS: Final = (
    web.NO_IDENTITY,
    web.WRONG_TOKEN,
    web.WRONG_CERTIFICATE,
    web.NOT_ALLOWED,
    connections.SILENT,
    connections.SLOW,
    connections.CROWDED,
    connections.MALFORMED,
)


class CannotListenError(OSError):
    """A port cannot be had; says which, why, and what to do."""

    def __init__(self, host: str, port: int, setting: str, error: OSError) -> None:
        self.host = host
        self.port = port
        super().__init__(
            f"{host}:{port} cannot be listened on: {os.strerror(error.errno) if error.errno else error}; "
            f"set {setting} to another one, or end what has it"
        )


class HttpEndpoint:
    """What one process serves over HTTP; a context manager."""

    def __init__(
        self,
        settings: ServiceSettings,
        health: Health,
        registry: prometheus_client.CollectorRegistry,
        pages: Pages,
        log: structlog.stdlib.BoundLogger,
    ) -> None:
        """:raises SettingsError: with everything that keeps it from being served"""
        self._log = log
        self._plain = settings.http
        self._secure = settings.secure
        problems = list(_beyond_loopback(settings.http))
        self._keys: Keys | None = None
        if settings.secure.port:
            try:
                self._keys = Keys(settings.secure, health.trouble(CERTIFICATES_CHECK), log)
            except SettingsError as error:
                problems += error.problems
        elif settings.secure.key_paths:
            log.warning("secure.port is 0: nothing is served over HTTPS, and the files given for it serve nothing")
        if problems:
            raise SettingsError(tuple(problems))
        self._refusals = web.Refusals(registry, REASONS)
        door = None
        if self._keys is not None:
            keys = self._keys
            door = web.Door(Access(settings.secure.users, settings.secure.groups), lambda: keys.material.tokens)
        self._config = Configured(web.application(health, registry, pages, door=door, count=self._refusals.count))
        self._listeners: list[tuple[socket.socket, bool]] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: asyncio.Task[None] | None = None
        self.address = ""
        """`host:port` of plain HTTP; empty when it is off."""
        self.secure_address = ""
        """`host:port` of HTTPS."""

    def __enter__(self) -> Self:
        """:raises CannotListenError: if a port is taken"""
        try:
            if self._plain.port >= 0:
                self.address = self._listen(self._plain.host, self._plain.port, "http.port", secure=False)
            if self._keys is not None:
                self.secure_address = self._listen(
                    self._secure.bind_address, self._secure.port, "secure.port", secure=True
                )
        except CannotListenError:
            self._close_listeners()
            raise
        if self._listeners:
            started = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(started,), name="http", daemon=True)
            self._thread.start()
            started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._end)
            self._thread.join(END_S)
        self._close_listeners()

    def _listen(self, host: str, port: int, setting: str, *, secure: bool) -> str:
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            both = host == "::" and socket.has_dualstack_ipv6()
            listener = socket.create_server(address, family=family, backlog=BACKLOG, dualstack_ipv6=both)
        except OSError as error:
            raise CannotListenError(host, port, setting, error) from error
        listener.setblocking(False)
        self._listeners.append((listener, secure))
        name, number = listener.getsockname()[:2]
        return f"[{name}]:{number}" if ":" in name else f"{name}:{number}"

    def _close_listeners(self) -> None:
        for listener, _ in self._listeners:
            listener.close()

    # --- in the thread

    def _run(self, started: threading.Event) -> None:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            self._loop = runner.get_loop()
            try:
                runner.run(self._serve(started))
            except asyncio.CancelledError:
                pass
            finally:
                started.set()

    def _end(self) -> None:
        if self._serving is not None:
            self._serving.cancel()

    async def _serve(self, started: threading.Event) -> None:
        self._serving = asyncio.current_task()
        doors: list[Door] = []
        async with asyncio.TaskGroup() as tasks:
            for listener, secure in self._listeners:
                context = self._keys.context if secure and self._keys is not None else None
                doors.append(Door(listener, self._config, self._refusals.count, context))
                tasks.create_task(doors[-1].admit())
            if self._keys is not None:
                tasks.create_task(self._keys.keep_fresh(doors[-1].ask_anew))
            started.set()


def _beyond_loopback(settings: HttpSettings) -> list[str]:
    if settings.port < 0 or settings.insecure or _is_loopback(settings.host):
        return []
    problem = (
        f"http.host {settings.host}: plain HTTP is served on the loopback only, since nobody says who he is; "
        "set secure.port for HTTPS, or http.insecure if the network is to be trusted"
    )
    return [problem]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Keys:
    """What the secure port goes by, read again when a file changes or the certificate ends."""

    def __init__(self, settings: HttpsSettings, tell: Callable[[str], None], log: structlog.stdlib.BoundLogger) -> None:
        """:raises SettingsError: with everything that is wrong"""
        # loaded where it is needed: it takes 60 ms
        from podyard.runtime import certificates

        self._certificates = certificates
        self._settings = settings
        self._tell = tell
        self._log = log
        self._seen = key_files.seen(settings.key_paths)
        self.material = certificates.load(settings, clock.now())
        self._told = ""
        tell("")
        if not settings.client_ca_file and not settings.token_auth_file:
            log.warning("over HTTPS nobody may read more than health: no client CA and no token file are given")

    def context(self) -> ssl.SSLContext:
        """For the next client."""
        return self.material.context

    async def keep_fresh(self, changed: Callable[[], None]) -> None:
        """Look for ever; what is wrong is told, and what was good before serves on.

        :param changed: called after something was read anew
        """
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                if await web.apart(self._look, "certificates"):
                    changed()
            except Exception as error:  # whatever it is: who is served goes on being served
                self._say(f"they cannot be looked at: {error}")

    def _look(self) -> bool:
        seen = key_files.seen(self._settings.key_paths)
        if seen == self._seen and clock.now() < self.material.renew_at and not self._told:
            return False
        try:
            self.material = self._certificates.load(self._settings, clock.now())
        except SettingsError as error:
            self._say(f"what was read before serves on: {error}")
            return False
        self._seen = seen
        self._say("")
        self._log.info("certificates and tokens were read anew")
        return True

    def _say(self, trouble: str) -> None:
        self._tell(trouble)
        if trouble and trouble != self._told:
            self._log.error("certificates and tokens cannot be read anew", reason=trouble)
        self._told = trouble
