"""The connection itself: made, watched, made again; the subscriptions that outlive it.

nats-py reconnects on its own, but gives up for good in some cases (an `-ERR` closes it), and its read loop may end silently. So
a supervisor watches the client through messages to itself and replaces it; subscriptions belong to the link, not to the client.
No callback here may raise: an exception on nats-py's read loop ends that loop while the client calls itself connected.
"""

import logging
import random
import ssl
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

import anyio
import msgspec
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from podyard.bus.errors import TooLarge, Unavailable
from podyard.bus.settings import BusSettings

log: Final = logging.getLogger("podyard.bus")

MISSED_ECHOES: Final = 4
"""Echoes in a row that may be missing before the client is replaced. Counted, not timed: a process that was paused is not dead."""

STUCK_TICKS: Final = 15
"""Watchdog ticks without a connection before the client is replaced, in case its reconnect loop has died."""

LOG_EVERY_S: Final = 10.0


class BusState(msgspec.Struct, frozen=True, kw_only=True):
    """How the connection stands, since when (seconds since 1970, UTC) and the last thing that went wrong with it."""

    connected: bool
    since: float
    last_error: str = ""
    connects: int = 0
    """How often a connection was made; a change tells that one was lost in between."""


StateListener = Callable[[BusState], None]


class LinkSubscription:
    """A subject listened to across reconnects and client replacements."""

    def __init__(
        self,
        link: "Link",
        subject: str,
        queue: str,
        callback: Callable[[Msg], None],
        on_slow: Callable[[], None] | None,
        limits: tuple[int, int],
    ) -> None:
        self.subject = subject
        self.queue = queue
        self._link = link
        self._callback = callback
        self._on_slow = on_slow
        self._limits = limits
        self._current: NatsSubscription | None = None
        self._closed = False

    async def attach(self, client: Client) -> None:
        """Subscribe on a new client."""
        self._current = await client.subscribe(  # pyright: ignore[reportUnknownMemberType]  # its `future` is untyped
            self.subject,
            queue=self.queue,
            cb=self._on_message,
            pending_msgs_limit=self._limits[0],
            pending_bytes_limit=self._limits[1],
        )

    def is_for(self, subscription: object) -> bool:
        """Whether nats-py means this one."""
        return self._current is subscription

    def slow(self) -> None:
        """A message was dropped because this side did not keep up."""
        if self._on_slow is not None:
            self._on_slow()
        else:
            log.warning("a message on %s was dropped: its reader does not keep up", self.subject)

    async def close(self) -> None:
        """Stop listening; messages already received and not yet handed over are dropped."""
        if self._closed:
            return
        self._closed = True
        self._link.forget(self)
        current, self._current = self._current, None
        if current is None:
            return
        try:
            await current.unsubscribe()
        except nats_errors.Error:
            log.debug("unsubscribing %s: the connection is gone already", self.subject)

    async def _on_message(self, message: Msg) -> None:
        if self._closed:
            return
        try:
            self._callback(message)
        except Exception:  # boundary: nats-py would only hand it to its error callback
            log.exception("the callback of %s failed on a message", self.subject)


class Link:
    """One connection to NATS and what listens on it. Owned by the task that runs `supervise`."""

    def __init__(self, settings: BusSettings) -> None:
        self.settings = settings
        self.state = BusState(connected=False, since=time.time(), last_error="not connected yet")
        self._client = Client()
        self._subscriptions: list[LinkSubscription] = []
        self._listeners: list[StateListener] = []
        self._connected = anyio.Event()
        self._broken = anyio.Event()
        self.closing = False
        """Whether the end of the connection is wanted."""

        self._established = False
        self._echo_subject = ""
        self._echoes_sent = 0
        self._echoes_seen = 0
        self._logged: tuple[str, float] = ("", 0.0)

    # --- state

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every new state, and now. Returns what ends that."""
        self._listeners.append(listener)
        listener(self.state)
        return lambda: self._listeners.remove(listener)

    async def connected(self) -> None:
        """Wait until there is a connection."""
        while not self.state.connected:
            await self._connected.wait()

    async def ready(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` seconds for a connection.

        :raises Unavailable: if there is none by then
        """
        if self.state.connected:
            return
        with anyio.move_on_after(timeout_s):
            await self.connected()
        if not self.state.connected:
            raise Unavailable(f"no connection to NATS at {', '.join(self.settings.servers)}: {self.state.last_error}")

    # --- sending and listening

    async def publish(
        self, subject: str, payload: bytes, reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Hand a message to the connection. Does not suspend, so that a batch stays together.

        :raises Unavailable: if there is no connection; nothing was sent
        :raises TooLarge: if it is above the server's max_payload
        """
        try:
            await self._client.publish(subject, payload, reply, headers)
        except nats_errors.MaxPayloadError as error:
            raise TooLarge(subject, len(payload), self._client.max_payload) from error
        except (nats_errors.OutboundBufferLimitError, nats_errors.ConnectionClosedError) as error:
            raise Unavailable(f"no connection to NATS: {self.state.last_error}") from error
        except nats_errors.ConnectionDrainingError as error:
            raise Unavailable("the connection to NATS is being closed") from error

    async def subscribe(
        self,
        subject: str,
        callback: Callable[[Msg], None],
        *,
        queue: str = "",
        on_slow: Callable[[], None] | None = None,
        limits: tuple[int, int] | None = None,
    ) -> LinkSubscription:
        """Listen on `subject` until closed. `limits` = unread (messages, bytes); `on_slow` is told when one was dropped."""
        limits = limits or (self.settings.pending_messages, self.settings.pending_bytes)
        subscription = LinkSubscription(self, subject, queue, callback, on_slow, limits)
        self._subscriptions.append(subscription)
        if self._established:
            try:
                await subscription.attach(self._client)
            except nats_errors.ConnectionClosedError:
                log.debug("subscribing %s waits for the next connection", subject)
        return subscription

    def forget(self, subscription: LinkSubscription) -> None:
        """No longer subscribe it on new clients."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    # --- supervision

    async def supervise(self) -> NoReturn:
        """Keep a connection for ever: connect, watch, replace."""
        while True:
            client = self._client = Client()
            self._broken = anyio.Event()
            try:
                await self._establish(client)
                reason = await self._guard(client)
                if self.closing:
                    await anyio.sleep_forever()
                log.warning("the connection to NATS is made anew: %s", reason)
            except Exception as error:  # boundary: whatever a foreign server says, the service goes on trying
                self._failed(error)
            finally:
                self._established = False
                with anyio.CancelScope(shield=True):
                    await self._discard(client)
            self._lost("the connection was closed")
            await anyio.sleep(self._reconnect_wait_s())

    async def drain(self) -> None:
        """Let messages in hand finish, then close; at most `drain_timeout_s` seconds."""
        with anyio.move_on_after(self.settings.drain_timeout_s):
            try:
                await self._client.drain()
            except nats_errors.Error:
                log.debug("nothing to drain: the connection is gone")

    async def _establish(self, client: Client) -> None:
        settings = self.settings
        await client.connect(  # pyright: ignore[reportUnknownMemberType]  # nats-py leaves parts of its signature untyped
            list(settings.servers),
            name=settings.name,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnect,
            reconnected_cb=self._on_reconnect,
            closed_cb=self._on_closed,
            connect_timeout=settings.connect_timeout_s,  # type: ignore[arg-type]  # a float works
            reconnect_time_wait=self._reconnect_wait_s(),  # type: ignore[arg-type]
            max_reconnect_attempts=-1,
            ping_interval=settings.ping_interval_s,  # type: ignore[arg-type]
            drain_timeout=settings.drain_timeout_s,  # type: ignore[arg-type]
            inbox_prefix=settings.inbox,
            pending_size=0,  # never keep a publish for later: without a connection it must fail at once and clearly
            tls=_tls(settings),
            user_credentials=settings.user_credentials or None,
            nkeys_seed=settings.nkey_seed_file or None,
        )
        self._established = True
        for subscription in list(self._subscriptions):
            await subscription.attach(client)
        self._echo_subject = f"{client.new_inbox()}.echo"
        self._echoes_sent = self._echoes_seen = 0
        await client.subscribe(self._echo_subject, cb=self._on_echo)  # pyright: ignore[reportUnknownMemberType]
        self._made()

    async def _guard(self, client: Client) -> str:
        """Watch `client`; returns why it must be replaced."""
        stuck_ticks = 0
        while True:
            with anyio.move_on_after(self.settings.ping_interval_s):
                await self._broken.wait()
            if client.is_closed:
                return f"it was closed ({self.state.last_error})"
            stuck_ticks = 0 if client.is_connected else stuck_ticks + 1
            if stuck_ticks > STUCK_TICKS:
                return "reconnecting got nowhere"
            if client.is_connected:
                if self._echoes_sent - self._echoes_seen >= MISSED_ECHOES:
                    return f"{MISSED_ECHOES} messages to itself did not come back"
                self._echoes_sent += 1
                await self.publish(self._echo_subject, str(self._echoes_sent).encode())

    async def _discard(self, client: Client) -> None:
        with anyio.move_on_after(self.settings.drain_timeout_s):
            try:
                await client.close()
            except Exception as error:  # boundary: closing a broken client may fail in any way
                log.debug("closing the old connection: %s", error)

    def _reconnect_wait_s(self) -> float:
        return self.settings.reconnect_wait_s * random.uniform(0.75, 1.25)

    # --- callbacks of nats-py, on its read loop: they never raise

    async def _on_error(self, error: Exception) -> None:
        if isinstance(error, nats_errors.SlowConsumerError):
            for subscription in self._subscriptions:
                if subscription.is_for(error.sub):
                    subscription.slow()
            return
        self._failed(error)

    async def _on_disconnect(self) -> None:
        self._lost(self.state.last_error or "the server closed the connection")

    async def _on_reconnect(self) -> None:
        self._echoes_sent = self._echoes_seen = 0
        self._made()

    async def _on_closed(self) -> None:
        self._lost(self.state.last_error or "the connection was closed")
        self._broken.set()

    async def _on_echo(self, message: Msg) -> None:
        self._echoes_seen = max(self._echoes_seen, int(message.data))

    # --- state changes

    def _made(self) -> None:
        previous = self.state
        self._set(BusState(connected=True, since=time.time(), connects=previous.connects + 1))
        self._logged = ("", 0.0)
        log.info("connected to NATS (%s)", ", ".join(self.settings.servers))

    def _lost(self, reason: str) -> None:
        if not self.state.connected:
            return
        self._connected = anyio.Event()
        self._set(BusState(connected=False, since=time.time(), last_error=reason, connects=self.state.connects))
        log.log(logging.DEBUG if self.closing else logging.WARNING, "no connection to NATS: %s", reason)

    def _failed(self, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if self.state.connected:
            self.state = msgspec.structs.replace(self.state, last_error=text)
        else:
            self._set(msgspec.structs.replace(self.state, last_error=text))
        now = time.monotonic()
        if self._logged[0] != text or now - self._logged[1] > LOG_EVERY_S:
            self._logged = (text, now)
            log.warning("NATS: %s", text)

    def _set(self, state: BusState) -> None:
        self.state = state
        if state.connected:
            self._connected.set()
        for listener in list(self._listeners):
            try:
                listener(state)
            except Exception:  # boundary: this runs on nats-py's read loop
                log.exception("a listener of the connection's state failed")


def _tls(settings: BusSettings) -> Any:
    if not (settings.tls_ca_file or settings.tls_cert_file):
        return None
    context = ssl.create_default_context(cafile=settings.tls_ca_file or None)
    if settings.tls_cert_file:
        context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file or None)
    return context
