"""The connection itself: made, watched, made again; the subscriptions that outlive it.

nats-py reconnects on its own, but gives up for good in some cases (an `-ERR` closes it), and its read loop
may end silently. So a supervisor watches the client through messages to itself and replaces it; subscriptions
belong to the link, not to the client. No callback here may raise: an exception on nats-py's read loop ends
that loop while the client calls itself connected.
"""

import asyncio
import logging
import random
import re
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NoReturn, TypeAlias

import anyio
import msgspec
from nats import errors as nats_errors
from nats.aio.subscription import Subscription

from podyard.bus import key_files
from podyard.bus._client import DirectClient, Receiver
from podyard.bus.errors import Busy, SettingsError, SubjectTooLong, TooLarge, Unavailable
from podyard.bus.settings import BusSettings, without_secrets
from podyard.proto import subjects

log: Final = logging.getLogger("podyard.bus")

MISSED_ECHOES: Final = 4
"""Echoes in a row that may be missing before the client is replaced. Counted, not timed: a process that was
paused is not dead."""

STUCK_TICKS: Final = 15
"""Watchdog ticks without a connection before the client is replaced, in case its reconnect loop has died."""

LOG_EVERY_S: Final = 10.0

MARK: Final = "m"
"""First letter of messages to ourselves that mark how far the server has come."""

SUBSCRIBED_S: Final = 2
"""Seconds to wait for the server to say that it knows of a subscription: one round trip, when the server
lives."""

UNSENT_BYTES: Final = 64 * 1024 * 1024
"""What may wait for the socket, before publishing is refused: the server or the network has stopped
reading."""

NEW_KEYS: Final = "its key files were replaced"
QUIET_S: Final = 0.01
"""How often to look whether all that is under way is answered."""

NO_NEWS: Final = "returning true from eof_received() has no effect when using ssl"
"""What asyncio warns of whenever a TLS connection ends: nats-py upgrades a plain one, whose protocol does not
hear of that."""

_BLANK: Final = re.compile(r"\s")


class BusState(msgspec.Struct, frozen=True, kw_only=True):
    """How the connection stands, and the last thing that went wrong with it."""

    connected: bool
    last_error: str = ""
    connects: int = 0
    """How often a connection was made; a change tells that one was lost in between."""
    unreachable: int = 0
    """Tries in a row, one server each, that found nobody who listens there."""


Sendable: TypeAlias = tuple[str, bytes, str, bytes]
"""Subject, payload, where to reply (empty: nowhere) and header block (empty: none) of a message."""

StateListener = Callable[[BusState], None]


class LinkSubscription:
    """A subject listened to across reconnects and client replacements."""

    def __init__(self, link: "Link", subject: str, queue: str, receiver: Receiver) -> None:
        self.subject = subject
        self.queue = queue
        self._link = link
        self._receiver = receiver
        self._attached: tuple[DirectClient, Subscription] | None = None

    async def attach(self, client: DirectClient) -> None:
        """Subscribe on a new client."""
        self._attached = client, await client.receive(self.subject, self.queue, self._receiver)

    async def pause(self) -> None:
        """Take nothing more from this connection; what has arrived is kept."""
        if self._attached is not None:
            try:
                await self._attached[1].unsubscribe()
            except nats_errors.Error:
                log.debug("unsubscribing %s: the connection is gone already", self.subject)

    async def finish(self) -> None:
        """Stop listening once all has come that the server had sent before it knew of that; at once if
        cancelled."""
        try:
            await self.pause()
            await self._link.until_handled()
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop listening, at once on this side."""
        self._link.forget(self)
        attached, self._attached = self._attached, None
        if attached is None:
            return
        client, subscription = attached
        client.forget(subscription)
        try:
            await subscription.unsubscribe()
        except nats_errors.Error:
            log.debug("unsubscribing %s: the connection is gone already", self.subject)


class Link:
    """One connection to NATS and what listens on it. Owned by the task that runs `supervise`."""

    def __init__(self, settings: BusSettings) -> None:
        self.settings = settings
        self.state = BusState(connected=False, last_error="not connected yet")
        self._after_read: Callable[[], None] | None = None
        self._client = DirectClient(self._read_ends)
        self._subscriptions: list[LinkSubscription] = []
        self._listeners: list[StateListener] = []
        self._under_way: list[Callable[[], bool]] = []
        self._keys: key_files.Seen = ()
        """As they stood when the connection was made."""
        self._refused_keys: key_files.Seen = ()
        """New ones that were told to be of no use."""
        self._changing_keys = False
        self._connected = anyio.Event()
        self._broken = anyio.Event()
        self.closing = False
        """Whether the end of the connection is wanted."""

        self._established = False
        self._echo_subject = ""
        self._echoes_sent = 0
        self._echoes_seen = 0
        self._marks_sent = 0
        self._marks: dict[bytes, anyio.Event] = {}
        self._logged: tuple[str, float] = ("", 0.0)

    # --- state

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every new state, and now. Returns what ends that."""
        self._listeners.append(listener)
        listener(self.state)
        return lambda: self._listeners.remove(listener)

    def on_leaving(self, under_way: Callable[[], bool]) -> None:
        """A connection that is left for new keys is kept while `under_way` says so, for some seconds."""
        self._under_way.append(under_way)

    def after_read(self, call: Callable[[], None]) -> None:
        """For a receiver that is being given a message: make this call once the receiver has all messages
        that were read at one go, before another receiver is given one and before anybody else runs."""
        self._after_read = call

    def _read_ends(self) -> None:
        call = self._after_read
        if call is not None:
            self._after_read = None
            try:
                call()
            except Exception:  # boundary: an exception on the read loop would end it
                log.exception("what follows a read failed")

    @property
    def open(self) -> bool:
        """Whether there is a connection on which something new may begin."""
        return self.state.connected and not self._changing_keys

    async def connected(self) -> None:
        """Wait until there is a connection."""
        while not self.open:
            await self._connected.wait()

    async def ready(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` seconds for a connection.

        :raises Unavailable: if there is none by then
        """
        if self.open:
            return
        with anyio.move_on_after(timeout_s):
            await self.connected()
        if not self.open:
            raise Unavailable(f"no connection to NATS at {self.settings.shown_servers}: {self.state.last_error}")

    # --- sending and listening

    def publish(self, subject: str, payload: bytes, reply: str = "", head: bytes = b"", *, begun: bool = False) -> None:
        """Hand a message to the connection, at once; messages keep their order.

        :param head: a header block as of `_heads.build`, empty for none
        :param begun: others that belong to it are sent already: it is never `Busy`
        :raises Unavailable: if there is no connection; nothing was sent
        :raises Busy: if the connection does not take what was sent before
        :raises TooLarge, SubjectTooLong, ValueError: as `check`
        """
        client = self._connected_client()
        self.check(subject, len(head) + len(payload))
        if not begun:
            _look_for_room(client, subject)
        client.put(_command(subject, payload, reply, head))

    def publish_all(self, messages: Sequence[Sendable]) -> None:
        """Hand over messages that belong together: all of them, or none. One is `Busy` for all; raises as
        `publish` does."""
        most = self.max_payload
        for subject, payload, _, head in messages:
            _check(subject, len(head) + len(payload), most)
        client = self._connected_client()
        _look_for_room(client, messages[0][0])
        client.put_all([_command(*message) for message in messages])

    def _connected_client(self) -> DirectClient:
        client = self._client
        if not self._established or not client.is_connected:
            raise Unavailable(f"no connection to NATS: {self.state.last_error}")
        return client

    @property
    def max_payload(self) -> int:
        """Bytes of headers and payload that the server takes in one message."""
        return self._client.max_payload

    def check(self, subject: str, size: int) -> None:
        """Whether the server would take a message.

        :param size: bytes of headers and payload
        :raises TooLarge: if it is above the server's max_payload
        :raises SubjectTooLong: if the server would close the connection for it
        :raises ValueError: if `subject` is empty or has blanks
        """
        _check(subject, size, self.max_payload)

    async def subscribe(self, subject: str, receiver: Receiver, *, queue: str = "") -> LinkSubscription:
        """Listen on `subject` until closed; with `queue`, one of the group's members gets each message.

        When it returns, the server knows of it, if there is a connection: who is told of it then gets an
        answer. Cancelled before that it is closed again: nobody else could.
        """
        subscription = LinkSubscription(self, subject, queue, receiver)
        self._subscriptions.append(subscription)
        try:
            await self._subscribe(subscription)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await subscription.close()
            raise
        return subscription

    async def _subscribe(self, subscription: LinkSubscription) -> None:
        if not self._established:
            return
        try:
            await subscription.attach(self._client)
        except nats_errors.ConnectionClosedError:
            log.debug("subscribing %s waits for the next connection", subscription.subject)
        else:
            await self.until_handled()

    async def until_handled(self) -> None:
        """Wait until the server has handled what was sent: a message to ourselves comes back. (nats-py's
        flush does not tell: its PING overtakes what is buffered.)"""
        if not self._echo_subject or not self._client.is_connected:
            return
        self._marks_sent += 1
        mark, event = f"{MARK}{self._marks_sent}".encode(), anyio.Event()
        self._marks[mark] = event
        try:
            self.publish(self._echo_subject, mark)
            with anyio.move_on_after(SUBSCRIBED_S):
                await event.wait()
        finally:
            del self._marks[mark]

    def forget(self, subscription: LinkSubscription) -> None:
        """No longer subscribe it on new clients."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    # --- supervision

    async def supervise(self) -> NoReturn:
        """Keep a connection for ever: connect, watch, replace."""
        while True:
            client = self._client = DirectClient(self._read_ends)
            self._broken, reason = anyio.Event(), ""
            try:
                await self._establish(client)
                reason = await self._guard(client)
                if self.closing:
                    await anyio.sleep_forever()
                level = logging.INFO if reason == NEW_KEYS else logging.WARNING
                log.log(level, "the connection to NATS is made anew: %s", reason)
            except Exception as error:  # boundary: whatever a foreign server says, the service goes on trying
                self._failed(error)
            finally:
                self._established = False
                with anyio.CancelScope(shield=True):
                    await self._end(client.close)
            self._lost(reason or "the connection was closed")
            self._changing_keys = False
            if reason != NEW_KEYS:
                await anyio.sleep(self._reconnect_wait_s())

    async def drain(self) -> None:
        """Let messages in hand finish, then close; at most `drain_timeout_s` seconds."""
        await self._end(self._client.drain)

    async def _end(self, end: Callable[[], Awaitable[None]]) -> None:
        """Wait for the end of a client of nats-py, `drain_timeout_s` seconds at most.

        Several tasks of nats-py may wait for the end of one transport. If one of those tasks is cancelled,
        what they all wait for is cancelled: a `CancelledError` reaches this task, which nobody has cancelled.
        """
        with anyio.move_on_after(self.settings.drain_timeout_s):
            try:
                await end()
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                log.debug("the connection was ended by somebody else")
            except Exception as error:  # boundary: ending a broken client may fail in any way
                log.debug("ending a connection: %s", error)

    async def _establish(self, client: DirectClient) -> None:
        settings = self.settings
        self._keys = key_files.seen(settings.key_paths)
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
            pending_size=0,  # nothing is kept for later: without a connection a publish must fail at once and clearly
            tls=_tls(settings),
            user_credentials=settings.user_credentials or None,
            nkeys_seed=settings.nkey_seed_file or None,
        )
        self._established = True
        for subscription in list(self._subscriptions):
            await subscription.attach(client)
        self._echo_subject = f"{client.new_inbox()}.echo"
        self._echoes_sent = self._echoes_seen = 0
        await client.receive(self._echo_subject, "", self._on_echo)
        self._made()

    async def _guard(self, client: DirectClient) -> str:
        """Watch `client`; returns why it must be replaced."""
        stuck_ticks = 0
        while True:
            with anyio.move_on_after(self.settings.ping_interval_s):
                await self._broken.wait()
            if client.is_closed:
                return f"it was closed ({self.state.last_error})"
            if self._has_new_keys():
                await self._leave(client)
                return NEW_KEYS
            stuck_ticks = 0 if client.is_connected else stuck_ticks + 1
            if stuck_ticks > STUCK_TICKS:
                return "reconnecting got nowhere"
            if client.is_connected:
                if self._echoes_sent - self._echoes_seen >= MISSED_ECHOES:
                    return f"{MISSED_ECHOES} messages to itself did not come back"
                self._echoes_sent += 1
                self.publish(self._echo_subject, str(self._echoes_sent).encode())

    def _has_new_keys(self) -> bool:
        """Whether the key files were replaced by others that can be used. Some of them may be there already,
        others not yet: that shows at the next look."""
        now = key_files.seen(self.settings.key_paths)
        if now in (self._keys, self._refused_keys):
            return False
        try:
            self.settings.check()
            _tls(self.settings)
        except (SettingsError, OSError) as error:
            self._refused_keys = now
            log.warning("the new key files are not used: %s: %s", type(error).__name__, error)
            return False
        return True

    async def _leave(self, client: DirectClient) -> None:
        """Let what is under way be answered, at most `drain_timeout_s` seconds; what is new waits for the
        next connection. Requests go to other members of their group."""
        if not client.is_connected:
            return
        self._changing_keys = True
        self._close_gate()
        for subscription in [one for one in self._subscriptions if one.queue]:
            await subscription.pause()
        await self.until_handled()
        with anyio.move_on_after(self.settings.drain_timeout_s):
            while any(under_way() for under_way in self._under_way):  # noqa: ASYNC110  # seldom; an event would cost each answer
                await anyio.sleep(QUIET_S)
            await self.until_handled()

    def _reconnect_wait_s(self) -> float:
        return self.settings.reconnect_wait_s * random.uniform(0.75, 1.25)

    # --- callbacks of nats-py, on its read loop: they never raise

    async def _on_error(self, error: Exception) -> None:
        if self._changing_keys:
            log.debug("leaving the connection: %s", error)  # what the server still had to say when TLS ended
        else:
            self._failed(error)

    async def _on_disconnect(self) -> None:
        self._lost(NEW_KEYS if self._changing_keys else self.state.last_error or "the server closed the connection")

    async def _on_reconnect(self) -> None:
        self._echoes_sent = self._echoes_seen = 0
        self._made()

    async def _on_closed(self) -> None:
        self._lost(self.state.last_error or "the connection was closed")
        self._broken.set()

    def _on_echo(self, subject: str, reply: str, payload: bytes, head: bytes) -> None:
        mark = self._marks.get(payload)
        if mark is not None:
            mark.set()
        elif not payload.startswith(MARK.encode()):
            self._echoes_seen = max(self._echoes_seen, int(payload))

    # --- state changes

    def _made(self) -> None:
        previous = self.state
        self._set(BusState(connected=True, connects=previous.connects + 1))
        self._logged = ("", 0.0)
        log.info("connected to NATS (%s)", self.settings.shown_servers)

    def _lost(self, reason: str) -> None:
        if not self.state.connected:
            return
        self._close_gate()
        self._set(BusState(connected=False, last_error=reason, connects=self.state.connects))
        wanted = self.closing or self._changing_keys
        log.log(logging.DEBUG if wanted else logging.WARNING, "no connection to NATS: %s", reason)

    def _close_gate(self) -> None:
        """From now on `connected` waits. Who waits already waits for the same event."""
        if self._connected.is_set():
            self._connected = anyio.Event()

    def _failed(self, error: Exception) -> None:
        text = without_secrets(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        if self.state.connected:
            self.state = msgspec.structs.replace(self.state, last_error=text)
        else:
            tries = self.state.unreachable + 1 if _is_unreachable(error) else 0
            self._set(msgspec.structs.replace(self.state, last_error=text, unreachable=tries))
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


def _is_unreachable(error: Exception) -> bool:
    """Whether nobody listens there: no such port, host or name. An `OSError` of no narrower class is what
    asyncio makes of several addresses of one name that all failed, and of a network without a route."""
    return isinstance(error, ConnectionRefusedError | socket.gaierror) or type(error) is OSError


def _tls(settings: BusSettings) -> Any:
    if not (settings.tls_ca_file or settings.tls_cert_file):
        return None
    logging.getLogger("asyncio").addFilter(_is_news)
    context = ssl.create_default_context(cafile=settings.tls_ca_file or None)
    if settings.tls_cert_file:
        context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file or None)
    return context


def _is_news(record: logging.LogRecord) -> bool:
    return record.msg != NO_NEWS


def _check(subject: str, size: int, most: int) -> None:
    """As `Link.check`, of a server that takes at most so many bytes."""
    if not subject or _BLANK.search(subject) is not None:
        raise ValueError(f"{subject[:100]!r} cannot be a subject")
    if len(subject) > subjects.LONGEST:
        raise SubjectTooLong(subject, subjects.LONGEST)
    if size > most:
        raise TooLarge(subject, size, most)


def _look_for_room(client: DirectClient, subject: str) -> None:
    if client.unsent_bytes > UNSENT_BYTES:
        raise Busy(subject, "the connection does not take what was sent before")


def _command(subject: str, payload: bytes, reply: str, head: bytes) -> bytes:
    """The protocol line of a message, and the message."""
    if head:
        size = len(head) + len(payload)
        return b"HPUB %b %b %d %d\r\n%b%b\r\n" % (subject.encode(), reply.encode(), len(head), size, head, payload)
    return b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), reply.encode(), len(payload), payload)
