"""Who is let in over HTTP, for how long, and how many at once.

The protocol is uvicorn's; around it stands what it has no bound for: a client that says nothing, not even in
the TLS handshake, one that sends a byte now and then, one that does not read, and too many of them.
"""

import asyncio
import contextlib
import functools
import logging
import socket
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, cast

from h11 import SEND_BODY

from podyard.runtime.uvicorn_parts import Config, H11Protocol, ServerState

log: Final = logging.getLogger("podyard.runtime")

SILENT_S: Final = 5.0
"""How long a client may take for the TLS handshake."""
REST_S: Final = 5.0
"""How long a client may take for the rest of a body that is answered already, and read by nobody."""
LARGEST_HEAD: Final = 16 * 1024
"""Bytes of a request's line and headers."""
CLOSING_TURNS: Final = 20
"""How many turns of the event loop asyncio gets at the end to close sockets; it needs a few."""
PAUSE_S: Final = 0.1
"""After an accept that failed: no file descriptor is free, and asking at once would keep a core busy."""

# why somebody was let go, as counted
SILENT: Final = "silent"
SLOW: Final = "slow"
CROWDED: Final = "crowded"
MALFORMED: Final = "malformed"
WRONG_CERTIFICATE: Final = "wrong_certificate"


class Bounds(NamedTuple):
    """What the clients of a port may take."""

    silent_s: float = 5.0
    """How long a client may take for its request, and from one request to the next; probes take
    milliseconds."""
    answer_s: float = 30.0
    """How long an answer may take, and take to be read: above what makes one by far."""
    most: int = 100
    """Connections at once. Who comes then takes the place of who has been without a request longest."""


USUAL: Final = Bounds()
"""For what services show of themselves."""


class Configured(Config):
    """uvicorn's settings for one application. What it logs anybody could have logged as often as he likes."""

    def __init__(self, application: Any, bounds: Bounds | None = None) -> None:
        """:param bounds: `USUAL` by default"""
        bounds = bounds or USUAL
        self.bounds = bounds
        super().__init__(
            application,
            ws="none",
            interface="asgi3",
            log_config=None,
            log_level=logging.CRITICAL,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=int(bounds.silent_s),
            h11_max_incomplete_event_size=LARGEST_HEAD,
        )

    def load(self) -> None:
        """What the protocol needs of it: uvicorn's own also loads what a server would."""
        self.loaded_app = self.app
        self.ws_protocol_class = None
        self.loaded = True


class Connection(H11Protocol):
    """One client's."""

    def __init__(
        self,
        config: Configured,
        state: ServerState,
        client: socket.socket,
        *,
        secure: bool,
        count: Callable[[str], None],
    ) -> None:
        """:param count: told why the client was let go"""
        super().__init__(config, state, {"secure": secure, "certificate": None, "connection": self})
        self._bounds = config.bounds
        self._count = count
        self._timer: asyncio.TimerHandle | None = None
        self._asked = 0
        """Requests so far."""
        self.gone = asyncio.Event()
        self.client_socket = client
        self.has_begun = False
        """Whether its visit was let in: it may be cancelled before."""
        self.is_made = False

    @property
    def answers(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison] - None before the first

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there, and has shown its certificate if it has one."""
        # uvloop's is none by its type
        super().connection_made(cast("asyncio.Transport", transport))
        self.is_made = True
        self.app_state["certificate"] = transport.get_extra_info("peercert") or None
        self._let_go_in(self._bounds.silent_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
        self.gone.set()

    def handle_events(self) -> None:
        """Take what came; a request that is whole has more time than one that is not."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._asked += 1
            self._let_go_in(self._bounds.answer_s)

    def on_response_complete(self) -> None:
        """The answer is written; what of it nobody has read yet keeps the time that it has."""
        if self.conn.their_state is SEND_BODY:
            self._let_go_in(min(REST_S, self._bounds.silent_s))
        elif not self.transport.get_write_buffer_size():
            self._let_go_in(self._bounds.silent_s)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What came is no request, or not the body of the one before it, which may be answered by now."""
        self._count(MALFORMED)
        if self.answers:
            self.cycle.disconnected = True
        try:
            super().send_400_response(msg)
        except Exception:  # h11 allows no second answer
            self.abort()

    def allow(self, seconds: float | None) -> None:
        """How long what is being answered may take from now on, in place of the bound of the port; None: as
        long as it likes, and whoever answers sees to it that it is read."""
        if seconds is not None:
            self._let_go_in(seconds)
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def let_go(self) -> None:
        """It does not read what it is answered."""
        self._count(SLOW)
        self.abort()

    def abort(self) -> None:
        """Let go at once."""
        if self.is_made:
            self.transport.abort()

    def forget(self) -> None:
        """Its visit is over: nothing leads back to it any more. So what it read and wrote, and its TLS
        buffers, end with it, and not when the garbage collector looks next."""
        self.app_state.clear()
        self.scope = self.cycle = None  # type: ignore[assignment]  # as uvicorn begins, though its types say otherwise

    def _let_go_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._overdue)

    def _overdue(self) -> None:
        if self.answers or self.transport.get_write_buffer_size():
            self.let_go()
        else:
            if not self._asked:
                self._count(SILENT)
            self.transport.close()


_turned_away: Final[ContextVar[Callable[[ssl.SSLError], None]]] = ContextVar("turned_away")
"""Told in the callbacks of a connection why its handshake failed."""


class Alerting(ssl.SSLObject):
    """Lets a client know why its certificate is refused: asyncio drops the alert that OpenSSL has ready,
    unless the handshake seems to wait for more."""

    def do_handshake(self) -> None:
        """Shake hands; who is turned away does not get in, whatever he says after that."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLSyscallError):
            raise
        except ssl.SSLError as error:
            tell = _turned_away.get(None)
            if tell is None:  # uvloop, which sends the alert itself, may call from outside the visit
                raise
            tell(error)
            raise ssl.SSLWantReadError("turned away") from error


class Door:
    """One listening socket, and who came in through it. Owned by the HTTP thread's loop."""

    def __init__(
        self,
        listener: socket.socket,
        config: Configured,
        count: Callable[[str], None],
        context: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """
        :param listener: does not block
        :param context: for TLS, asked for each client; None: plain
        """
        self._listener = listener
        self._config = config
        self._count = count
        self._context = context
        self._state = ServerState()
        self._inside: dict[asyncio.Task[None], Connection] = {}
        """The longest first."""
        self._told = ""
        """Why nobody could be let in, lately."""

    async def admit(self) -> None:
        """Let clients in until cancelled; then all of them are let go."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._listener, self._accept)
        try:
            await asyncio.Event().wait()
        finally:
            loop.remove_reader(self._listener)
            self._listener.close()
            await self._let_all_go()

    def _accept(self) -> None:
        """Somebody knocks. By hand: what asyncio's `sock_accept` has got is lost if it is cancelled then."""
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # he has gone again
            return
        except OSError as error:
            self._pause(error.strerror or str(error))
            return
        self._told = ""
        self._enter(client)

    def _pause(self, reason: str) -> None:
        if reason != self._told:
            self._told = reason
            log.warning("clients cannot be let in: %s", reason)
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listener)
        loop.call_later(PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        if self._listener.fileno() >= 0:
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    async def _let_all_go(self) -> None:
        clients = [connection.client_socket for connection in self._inside.values()]
        for visit in self._inside:
            visit.cancel()
        await asyncio.gather(*self._inside, return_exceptions=True)
        for _ in range(CLOSING_TURNS):
            if all(client.fileno() < 0 for client in clients):
                return
            await asyncio.sleep(0)

    def ask_anew(self) -> None:
        """Everybody comes again before he asks the next time: what he showed may not count any more."""
        for connection in list(self._inside.values()):
            if connection.is_made and not connection.transport.is_closing():
                try:
                    connection.shutdown()
                except Exception:  # in whatever state it is: he comes again, too
                    connection.abort()

    def _enter(self, client: socket.socket) -> None:
        if len(self._inside) >= self._config.bounds.most and not self._make_room():
            client.close()
            return
        connection = Connection(self._config, self._state, client, secure=self._context is not None, count=self._count)
        visit = asyncio.create_task(self._visit(connection))
        self._inside[visit] = connection
        visit.add_done_callback(functools.partial(self._leave, connection))

    def _make_room(self) -> bool:
        self._count(CROWDED)
        for visit, connection in self._inside.items():
            if not connection.answers:
                visit.cancel()
                del self._inside[visit]
                return True
        return False

    def _leave(self, connection: Connection, visit: asyncio.Task[None]) -> None:
        self._inside.pop(visit, None)
        if not connection.has_begun:
            connection.client_socket.close()
        if not visit.cancelled() and (error := visit.exception()) is not None:
            log.error("a connection failed", exc_info=error)

    async def _visit(self, connection: Connection) -> None:
        connection.has_begun = True  # asyncio closes its socket
        client = connection.client_socket
        loop = asyncio.get_running_loop()
        visit = asyncio.current_task()
        assert visit is not None

        def turned_away(error: ssl.SSLError) -> None:
            if isinstance(error, ssl.SSLCertVerificationError):
                self._count(WRONG_CERTIFICATE)
            loop.call_soon(visit.cancel)  # once the alert is sent

        told = _turned_away.set(turned_away)
        tls: dict[str, Any] = {}
        if self._context is not None:
            context = self._context()
            context.sslobject_class = Alerting
            tls = {"ssl": context, "ssl_handshake_timeout": SILENT_S, "ssl_shutdown_timeout": SILENT_S}
        try:
            client.setblocking(False)
            # head and body are written apart: without it the body waits 40 ms for the head to be acknowledged
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.connect_accepted_socket(lambda: connection, client, **tls)
            await connection.gone.wait()
        except ConnectionAbortedError:  # the handshake took too long
            self._count(SILENT)
        except OSError as error:  # the client went, or speaks no TLS
            log.debug("a client was not let in: %s", error)
        finally:
            connection.abort()
            with contextlib.suppress(OSError):  # a handshake that has not begun would go on without us
                client.shutdown(socket.SHUT_RDWR)
            _turned_away.reset(told)  # else the context of the visit holds the visit
            connection.forget()
