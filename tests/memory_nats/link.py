"""A client's connection to the server in memory, in the place of `_link.Link`; and `connect`, in the place of
`connection.connect`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, NoReturn

import anyio
from anyio.abc import TaskGroup

from podyard.bus._api import Api
from podyard.bus._client import Receiver
from podyard.bus._inbox import Inbox
from podyard.bus._link import SUBSCRIBED_S, Link, LinkSubscription, Sendable
from podyard.bus.connection import Bus
from podyard.bus.dead_letters import DeadLetters, not_said
from podyard.bus.errors import Unavailable
from podyard.bus.publisher import Publisher
from podyard.bus.services import Endpoint
from podyard.bus.settings import BusSettings
from podyard.proto.streams import MAX_PAYLOAD_BYTES
from tests.memory_nats.server import LoopWire, MemoryServer, Wire


class MemorySubscription(LinkSubscription):
    """A subject listened to, across losses of the connection."""

    def __init__(self, link: "MemoryLink", subject: str, queue: str, receiver: Receiver) -> None:
        super().__init__(link, subject, queue, receiver)
        self._memory_link = link
        self._closed = False
        self._number = 0
        """On the server; 0: not there."""

    def subscribe(self, connection: int) -> None:
        """At the server: be listened to."""
        if not self._closed:
            self._number = self._memory_link.server.subscribe(connection, self.subject, self.queue, self._deliver)

    def _deliver(self, subject: str, reply: str, payload: bytes, head: bytes) -> None:
        """At the server: a message for it."""
        connection = self._memory_link.connection

        def arrive() -> None:
            if connection == self._memory_link.connection:
                self._memory_link.arrived(Arrived(self, subject, reply, payload, head))

        self._memory_link.wire.down(subject, arrive, self.subject)

    def take(self, message: "Arrived") -> None:
        """Hand a message to the receiver."""
        if not self._closed:
            self._receiver(message.subject, message.reply, message.payload, message.head)

    async def finish(self) -> None:
        """As `LinkSubscription.finish`."""
        link, handled = self._memory_link, anyio.Event()
        connection = link.connection

        def arrive() -> None:
            link.server.unsubscribe(connection, self._number)
            link.wire.down("", handled.set, self.subject)

        link.forget(self)
        try:
            if link.state.connected:
                link.wire.up("", arrive)
                with anyio.move_on_after(SUBSCRIBED_S):
                    await handled.wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop listening, at once on this side."""
        self._closed = True
        link = self._memory_link
        link.forget(self)
        connection = link.connection
        link.wire.up("", lambda: link.server.unsubscribe(connection, self._number))


class Arrived(NamedTuple):
    """A message that has come, and who listens to it."""

    listening: MemorySubscription
    subject: str
    reply: str
    payload: bytes
    head: bytes


class MemoryLink(Link):
    """One connection. `cut` and `restore` model its loss and return."""

    def __init__(self, settings: BusSettings, server: MemoryServer, wire: Wire) -> None:
        super().__init__(settings)
        self.server = server
        self.wire = wire
        self.connection = 0
        """The server's number for it; another one after each loss."""
        self.reads_together = False
        """All that has come when this side gets to read is read at one go, as from a socket; else each
        message by itself."""
        self._listening: list[MemorySubscription] = []
        self._arrived: list[Arrived] = []
        """What is not read yet."""

    def arrived(self, message: Arrived) -> None:
        """A message of this connection has come."""
        self._arrived.append(message)
        if not self.reads_together:
            self._read()
        elif len(self._arrived) == 1:
            asyncio.get_running_loop().call_soon(self._read)

    def _read(self) -> None:
        arrived, self._arrived = self._arrived, []
        for before, message in zip([None, *arrived], arrived, strict=False):
            if before is not None and before.listening is not message.listening:
                self._read_ends()
            message.listening.take(message)
        self._read_ends()

    def publish(self, subject: str, payload: bytes, reply: str = "", head: bytes = b"", *, begun: bool = False) -> None:
        """As `Link.publish`; it is never `Busy`."""
        if not self.state.connected:
            raise Unavailable(f"no connection to NATS: {self.state.last_error}")
        self.check(subject, len(head) + len(payload))
        self.wire.up(subject, lambda: self.server.publish(subject, payload, reply, head))

    def publish_all(self, messages: Sequence[Sendable]) -> None:
        """As `Link.publish_all`."""
        for subject, payload, _, head in messages:
            self.check(subject, len(head) + len(payload))
        for subject, payload, reply, head in messages:
            self.publish(subject, payload, reply, head)

    @property
    def max_payload(self) -> int:
        """As `Link.max_payload`."""
        return MAX_PAYLOAD_BYTES

    async def subscribe(self, subject: str, receiver: Receiver, *, queue: str = "") -> LinkSubscription:
        """As `Link.subscribe`: when it returns, the server knows of it, if it can be reached."""
        subscription = MemorySubscription(self, subject, queue, receiver)
        self._listening.append(subscription)
        if self.state.connected:
            handled, connection = anyio.Event(), self.connection

            def arrive() -> None:
                subscription.subscribe(connection)
                self.wire.down("", handled.set)

            self.wire.up("", arrive)
            try:
                with anyio.move_on_after(SUBSCRIBED_S):
                    await handled.wait()
            except BaseException:  # cancelled: nobody else could close it
                await subscription.close()
                raise
        return subscription

    def forget(self, subscription: LinkSubscription) -> None:
        """No longer subscribe it after a loss."""
        self._listening = [one for one in self._listening if one is not subscription]

    def cut(self, reason: str) -> None:
        """The connection is lost; what was on its way to this side is lost with it."""
        self.server.disconnect(self.connection)
        self.connection = 0
        self._arrived.clear()
        self._lost(reason)

    def restore(self) -> None:
        """A new connection, everything subscribed again."""
        connection = self.connection = self.server.connect()
        for subscription in self._listening:
            self.wire.up("", lambda one=subscription: one.subscribe(connection))
        self._made()

    async def supervise(self) -> NoReturn:
        """Connect."""
        self.restore()
        await anyio.sleep_forever()
        raise AssertionError  # never reached

    async def drain(self) -> None:
        """Close."""
        self.server.disconnect(self.connection)


class MemoryBus(Bus):
    """A `Bus` on a server in memory."""

    def __init__(
        self, settings: BusSettings, tasks: TaskGroup, server: MemoryServer, wire: Wire, now: Callable[[], float]
    ) -> None:
        self.settings = settings
        self.link = MemoryLink(settings, server, wire)
        self._tasks = tasks
        self._link = self.link
        self._inbox = Inbox(self._link)
        self._api = Api(self._inbox, settings.request_timeout_s, settings.jetstream_prefix)
        self._publisher = Publisher(self._link, self._inbox)
        self._dead = DeadLetters(self._publisher, now)
        self._endpoints: list[Endpoint] = []
        self.dropped = 0


@asynccontextmanager
async def connect(
    server: MemoryServer,
    settings: BusSettings | None = None,
    *,
    wire: Wire | None = None,
    now: Callable[[], float] = not_said,
) -> AsyncGenerator[MemoryBus]:
    """A connection to `server`, kept for as long as the block runs; `wire` is the way there, at once unless
    given."""
    async with anyio.create_task_group() as tasks:
        bus = MemoryBus(settings or BusSettings(), tasks, server, wire or LoopWire(), now)
        try:
            await bus.start(wait=True)
            yield bus
        finally:
            with anyio.CancelScope(shield=True):
                await bus.stop()
            tasks.cancel_scope.cancel()
