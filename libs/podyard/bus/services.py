"""Request and reply, and plain subjects: the server's side of `request` and `send`."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import anyio
from anyio.abc import TaskGroup

from podyard.bus import _heads
from podyard.bus._link import Link, LinkSubscription
from podyard.bus.dead_letters import DeadLetters
from podyard.bus.errors import BusError, RemoteError, TemporaryError
from podyard.bus.requests import Request, request_of
from podyard.proto import headers
from podyard.proto.codec import MessageError

log: Final = logging.getLogger("podyard.bus")

Handler = Callable[[Request], Awaitable[bytes | None]]
"""Answers a request; None: it is another one's to answer, and gets no answer from here."""
Later = Callable[[], Awaitable[bytes | None]]
"""What there is to wait for."""


class Prompt:
    """A handler that mostly has the answer at once: then no task is made for the request, which costs as much
    as a small answer."""

    def __init__(self, begin: Callable[[Request], bytes | Later]) -> None:
        """:param begin: the answer, or what waits for it"""
        self.begin = begin

    async def __call__(self, request: Request) -> bytes | None:
        """As any handler."""
        found = self.begin(request)
        return found if isinstance(found, bytes) else await found()


Callback = Callable[[str, bytes, str], None]

BACKLOG: Final = 4
"""Requests that may wait, in multiples of those in hand; above it they are refused as busy rather than
kept."""

MOST_BYTES: Final = 64 << 20
"""Payloads in hand and waiting together; above it requests are refused, too, unless nothing is in hand. Few
are larger than 100 KB; but as many of the largest as may wait by number would be gigabytes."""


class Subscription:
    """Something listened to; `close()` ends it."""

    def __init__(self, inner: LinkSubscription) -> None:
        self._inner = inner
        self.subject = inner.subject

    async def close(self) -> None:
        """Take no more messages. What is in hand finishes."""
        await self._inner.close()

    async def finish(self) -> None:
        """The same once what is on its way here has come: whoever asked before the server knew of the end
        gets an answer, and whoever asks later is told that nobody listens. Takes one round trip, two seconds
        at most."""
        await self._inner.finish()


async def finish_all(subscriptions: Iterable[Subscription], within_s: float) -> None:
    """Finish them all at once, also in what is cancelled; close at the end of the time what has not
    finished."""
    with anyio.move_on_after(within_s, shield=True):
        async with anyio.create_task_group() as tasks:
            for subscription in subscriptions:
                tasks.start_soon(subscription.finish)


class Endpoint:
    """One service endpoint: at most `max_inflight` requests in hand, each a task of the bus' group; a few
    wait, the rest is refused.

    Invariant: `_bytes` is the sum of the payloads in hand and waiting.
    """

    def __init__(self, link: Link, tasks: TaskGroup, dead: DeadLetters, handler: Handler, max_inflight: int) -> None:
        self._link = link
        self._tasks = tasks
        self._dead = dead
        self._handler = handler
        self._begin = handler.begin if isinstance(handler, Prompt) else None
        self._max_inflight = max_inflight
        self._in_hand = 0
        self._waiting: deque[Request] = deque()
        self._bytes = 0
        self._idle = anyio.Event()
        self._finishing = False

    @property
    def busy(self) -> bool:
        """Whether requests are in hand."""
        return self._in_hand > 0

    async def finish(self) -> None:
        """Take no more and wait until what is in hand is answered."""
        self._finishing = True
        while self._in_hand:
            self._idle = anyio.Event()
            await self._idle.wait()

    def on_message(self, subject: str, reply: str, payload: bytes, head: bytes) -> None:
        """Take a request, or refuse it."""
        request = request_of(subject, reply, payload, head)
        if self._finishing:
            self._reply(request, b"", _refusal("the service is shutting down", retry_s=0.2))
        elif self._in_hand and self._bytes + len(payload) > MOST_BYTES:
            self._reply(request, b"", _refusal(f"requests of {self._bytes >> 20} MiB are in hand", retry_s=0.2))
        elif self._in_hand < self._max_inflight:
            self._take(request)
        elif len(self._waiting) < self._max_inflight * BACKLOG:
            self._bytes += len(payload)
            self._waiting.append(request)
        else:
            self._reply(request, b"", _refusal(f"{self._in_hand} requests are in hand", retry_s=0.2))

    def _take(self, request: Request) -> None:
        later: Later | None = None
        if self._begin is not None:
            try:
                found = self._begin(request)
            except Exception as error:  # boundary: as in `_answer`
                self._reply(request, b"", self._refused(request, error))
                return
            if isinstance(found, bytes):
                self._reply(request, found, b"")
                return
            later = found
        self._in_hand += 1
        self._bytes += len(request.payload)
        self._tasks.start_soon(self._work, request, later)

    async def _work(self, request: Request, later: Later | None) -> None:
        """:param later: waits for the answer to this request, which was handled already"""
        try:
            while True:
                await self._answer(request, later)
                later = None
                self._bytes -= len(request.payload)
                if not self._waiting:
                    return
                request = self._waiting.popleft()
        finally:
            self._in_hand -= 1
            if not self._in_hand:
                self._idle.set()

    async def _answer(self, request: Request, later: Later | None) -> None:
        try:
            payload, head = await (self._handler(request) if later is None else later()), b""
        except Exception as error:  # boundary: a handler's bug is answered and logged, and the service goes on
            payload, head = b"", self._refused(request, error)
        if payload is not None:
            self._reply(request, payload, head)

    def _refused(self, request: Request, error: Exception) -> bytes:
        """What is answered when a handler raised."""
        if isinstance(error, MessageError):
            self._dead.put(self._link.settings.service_name, request, str(error))
            return _refusal(str(error))
        if isinstance(error, RemoteError):
            return _refusal(error.reason)
        if isinstance(error, TemporaryError):
            return _refusal(str(error), retry_s=error.delay_s)
        log.exception("the handler of %s failed", request.subject, exc_info=error)
        return _refusal(f"the service failed on it ({type(error).__name__}); its log says more")

    def _reply(self, request: Request, payload: bytes, head: bytes) -> None:
        if not request.reply:
            return
        try:
            self._link.publish(request.reply, payload, head=head)
        except BusError as error:
            log.info("the answer to %s could not be sent: %s", request.subject, error)


class Listener:
    """Hands core messages to a synchronous callback; what it cannot read becomes a dead letter."""

    def __init__(self, dead: DeadLetters, service: str, callback: Callback) -> None:
        self._dead = dead
        self._service = service
        self._callback = callback

    def on_message(self, subject: str, reply: str, payload: bytes, head: bytes) -> None:
        """Hand over one message."""
        trace = _heads.parse(head).get(headers.TRACEPARENT, "") if head else ""
        try:
            self._callback(subject, payload, trace)
        except MessageError as error:
            self._dead.put(self._service, request_of(subject, reply, payload, head), str(error))


def _refusal(reason: str, *, retry_s: float | None = None) -> bytes:
    lines = {headers.ERROR: " ".join(reason.split()) or "no reason given"}
    if retry_s is not None:
        lines[headers.RETRY_AFTER] = f"{retry_s:g}"
    return _heads.build(lines)
