"""The door to the bus: `connect` and what a connection can do."""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.abc import TaskGroup

from podyard.bus import _heads
from podyard.bus._api import Api
from podyard.bus._inbox import Inbox
from podyard.bus._link import BusState, Link, StateListener
from podyard.bus.dead_letters import DeadLetters, not_said
from podyard.bus.delivery import Delivery
from podyard.bus.errors import BusError, Busy, PermanentError, RemoteError, TemporaryError
from podyard.bus.outgoing import Ack, Outgoing
from podyard.bus.publisher import Publisher
from podyard.bus.requests import Reply, Request
from podyard.bus.services import Callback, Endpoint, Handler, Listener, Subscription
from podyard.bus.settings import BusSettings
from podyard.bus.watch import Watch, WatchSink, WatchSpec
from podyard.proto import headers

log: Final = logging.getLogger("podyard.bus")


class Bus:
    """One connection. Made by `connect`; every time-out is in seconds, None means the settings'
    `request_timeout_s`.

    Calls that need NATS wait for a lost connection to come back, within their time-out.
    """

    def __init__(self, settings: BusSettings, tasks: TaskGroup, now: Callable[[], float]) -> None:
        """:param now: seconds since 1970, UTC: when a message became a dead letter"""
        self.settings = settings
        self._tasks = tasks
        self._link = Link(settings)
        self._inbox = Inbox(self._link)
        self._api = Api(self._inbox, settings.request_timeout_s, settings.jetstream_prefix)
        self._publisher = Publisher(self._link, self._inbox)
        self._dead = DeadLetters(self._publisher, now)
        self._endpoints: list[Endpoint] = []
        self._link.on_leaving(lambda: any(endpoint.busy for endpoint in self._endpoints))
        self.dropped = 0
        """Messages of `send` that found no connection."""

    # --- state

    @property
    def state(self) -> BusState:
        """How the connection stands."""
        return self._link.state

    @property
    def api(self) -> Api:
        """Raw JetStream requests, for `bootstrap` and operators' tools."""
        return self._api

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` (synchronous) with the state now and at every change; returns what ends that."""
        return self._link.on_state(listener)

    async def connected(self) -> None:
        """Wait until there is a connection."""
        await self._link.connected()

    # --- streams

    async def publish(self, message: Outgoing, *, timeout_s: float | None = None) -> Ack:
        """Store one message.

        :raises Conflict: its `expect` is not the subject's last sequence
        :raises Unclear: no answer; it may have been stored
        :raises TemporaryError: nothing was stored (`Unavailable`, `NoResponders`, `StreamFull`)
        :raises PermanentError: refused (`TooLarge`, `Refused`)
        """
        return await self._publisher.publish(message, timeout_s=timeout_s)

    async def publish_many(
        self, messages: Sequence[Outgoing], *, timeout_s: float | None = None
    ) -> list[Ack | BusError]:
        """Store messages that do not depend on each other, up to `publish_window` under way at once, sent in
        their order.

        :param timeout_s: for each message, from when it is sent
        :return: for each message, in their order, its acknowledgement or what `publish` would have raised
        """
        return await self._publisher.publish_many(messages, timeout_s=timeout_s)

    async def publish_batch(
        self, messages: Sequence[Outgoing], *, batch_id: str | None = None, timeout_s: float | None = None
    ) -> Ack:
        """Store 1 to 1,000 messages of one stream, all or none, without another between them; no subject
        twice.

        :param batch_id: at most 64 characters, never used before; None makes one
        :return: acknowledgement of the last message; the one before it has one sequence less, and so on
        :raises Conflict: some `expect` failed; `last_sequence` is that subject's, which one is not said
        :raises BatchUnclear: refused without a number (10164, 10176)
        :raises Unclear: no answer; all or nothing of it was stored, or will be
        :raises TemporaryError: nothing was stored
        """
        return await self._publisher.publish_batch(messages, batch_id=batch_id, timeout_s=timeout_s)

    async def get(self, stream: str, subject: str) -> Delivery | None:
        """The last message of a subject, None if there is none. May be stale: good only for a later
        compare-and-set.

        :raises TemporaryError: NATS or the stream is not available
        """
        return await self._api.last_message(stream, subject)

    async def last_sequence(self, stream: str) -> int:
        """The stream's last sequence, 0 if it never had a message.

        :raises NotFound: if there is no such stream
        """
        return (await self._api.stream_info(stream)).state.last_seq

    async def purge(self, stream: str, subject: str) -> None:
        """Remove all messages of a subject (wildcards allowed); not possible in CLUSTER."""
        await self._api.purge(stream, subject)

    def watch(
        self,
        spec: WatchSpec,
        sink: WatchSink,
        *,
        on_came_back: Callable[[Delivery], None] = lambda delivery: None,
        on_read: Callable[[], None] | None = None,
    ) -> Watch:
        """A reader of a stream; `await watch.run()` in a task group.

        :param on_came_back: told of each message that a listing passes over, since it had been deleted
        :param on_read: told when the sink has all deliveries that were read at one go, before anybody else
            runs
        """
        return Watch(self._link, self._api, self._dead, spec, sink, on_came_back, on_read)

    # --- core messages, requests and services

    def send(self, subject: str, payload: bytes, *, trace: str = "") -> None:
        """Send without waiting and without a promise: dropped, and counted in `dropped`, if it cannot be sent
        now, or at all."""
        try:
            self._link.publish(subject, payload, head=_trace_head(trace))
        except TemporaryError:
            self.dropped += 1
        except PermanentError as error:
            self.dropped += 1
            log.warning("a message was not sent: %s", error)

    async def request(self, subject: str, payload: bytes, *, timeout_s: float | None = None, trace: str = "") -> Reply:
        """Ask a service and wait for its answer.

        :raises NoResponders: nobody serves `subject` now
        :raises Unclear: no answer within the time-out (`RequestTimeout`), or the connection was lost; it may
            have been done
        :raises Busy: the service has too much to do; it did nothing
        :raises RemoteError: the service refused, with its reason
        """
        timeout_s = timeout_s or self.settings.request_timeout_s
        answer = await self._inbox.request(subject, payload, _trace_head(trace), timeout_s)
        lines = _heads.parse(answer.head)
        reason = lines.get(headers.ERROR)
        if reason is None:
            return Reply(answer.payload, lines)
        retry_after = lines.get(headers.RETRY_AFTER)
        if retry_after is not None:
            raise Busy(subject, reason, delay_s=float(retry_after))
        raise RemoteError(reason, subject=subject)

    async def serve(
        self, subject: str, handler: Handler, *, queue_group: str = "", max_inflight: int = 256
    ) -> Subscription:
        """Answer requests on `subject` until closed; each runs as a task of this bus.

        A handler that returns None leaves the answer to another one. What it raises is answered:
        `RemoteError` as its reason, `TemporaryError` as busy, `codec.MessageError` as its text (and the
        request becomes a dead letter); anything else is logged, and the service goes on.

        :param queue_group: with a name, each request goes to one of the group's members
        :param max_inflight: requests in hand at once; four times as many wait, more are refused as busy
        """
        endpoint = Endpoint(self._link, self._tasks, self._dead, handler, max_inflight)
        subscription = Subscription(await self._link.subscribe(subject, endpoint.on_message, queue=queue_group))
        self._endpoints.append(endpoint)
        return subscription

    async def subscribe(self, subject: str, callback: Callback, *, queue_group: str = "") -> Subscription:
        """Hand core messages (and copies of what is published into streams) to
        `callback(subject, payload, trace)`.

        It is synchronous. A `codec.MessageError` that it raises makes a dead letter; other exceptions are
        logged.
        """
        listener = Listener(self._dead, self.settings.service_name, callback)
        return Subscription(await self._link.subscribe(subject, listener.on_message, queue=queue_group))

    # --- dead letters

    def dead_letter_soon(self, service: str, message: Delivery | Request, reason: str) -> None:
        """Keep a message that could not be used in `dead.<service>`, in the background, once; from
        synchronous code."""
        self._dead.put(service, message, reason)

    # --- life

    async def start(self, *, wait: bool) -> None:
        """Begin to connect; called by `connect`."""
        await self._inbox.open()
        for task in (self._link.supervise, self._dead.run):
            self._tasks.start_soon(task)
        if wait:
            await self.connected()

    async def stop(self) -> None:
        """Send what waits, let messages in hand finish, close; called by `connect`."""
        self._link.closing = True
        with anyio.move_on_after(self.settings.drain_timeout_s):
            for endpoint in self._endpoints:
                await endpoint.finish()
        await self._dead.flush(self.settings.drain_timeout_s if self.state.connected else 0.0)
        await self._link.drain()


@asynccontextmanager
async def connect(
    settings: BusSettings | None = None,
    *,
    now: Callable[[], float] = not_said,
    on_state: StateListener | None = None,
    wait: bool = True,
) -> AsyncGenerator[Bus]:
    """A connection, kept for as long as the block runs.

    A missing NATS is waited for, for ever; `on_state` hears of it meanwhile.

    :param now: seconds since 1970, UTC: when a message became a dead letter; left out, dead letters do not
        say it
    :param wait: False enters the block at once; calls then wait for the connection within their time-out
    :raises SettingsError: if the settings cannot be right
    """
    settings = settings or BusSettings()
    settings.check()
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        bus = Bus(settings, tasks, now)
        if on_state is not None:
            bus.on_state(on_state)
        try:
            await bus.start(wait=wait)
            yield bus
        except Exception as error:  # raised below, so that callers see it as it is and not in a group
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await bus.stop()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _trace_head(trace: str) -> bytes:
    """A header block with nothing but the trace."""
    return _heads.build({headers.TRACEPARENT: trace}) if trace else b""
