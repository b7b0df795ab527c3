"""Events as they are stored, and attempts: what this instance reads of their two streams, and when events
end."""

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import anyio

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.errors import NotFound
from podyard.kube_api.core import event_rules
from podyard.kube_api.core.event_store import EventStore
from podyard.kube_api.core.event_telling import FailedAttempt, Teller
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.operations import K8sEvent
from podyard.shell import stream_reading

AGAIN_S: Final = 2.0
"""Between two looks for a stream that is missing."""
LOOK_S: Final = 5.0
"""Between two looks for events that have ended: watchers are told of an end so much later."""
AT_ONCE: Final = 500
"""Of what waits to be told, at each look: some 20 ms."""


class EventReading:
    """Reads for as long as `run` runs. Owned by the service's event loop."""

    def __init__(
        self,
        bus: Bus,
        store: EventStore,
        teller: Teller,
        attempted: Callable[[FailedAttempt], None],
        now: Callable[[], float],
    ) -> None:
        """
        :param attempted: told of every attempt, after `teller`
        :param now: seconds since 1970, UTC
        """
        self._bus = bus
        self._store = store
        self._teller = teller
        self._now = now
        self._position = 0
        self._waiting: list[tuple[int, int, anyio.Event]] = []
        self._listed = [anyio.Event(), anyio.Event()]
        self._attempted = attempted
        self._decode = codec.decoder(FailedAttempt).decode

    async def run(self) -> None:
        """Until cancelled."""
        sent, attempts = self._listed
        self._store.expire(self._now())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(self._read, streams.K8SEVENTS.name, subjects.ALL_K8SEVENTS, self._event, sent))
            tasks.start_soon(
                partial(self._read, streams.DECISIONS.name, subjects.ALL_DECISIONS, self._attempt, attempts)
            )
            while True:
                await anyio.sleep(LOOK_S)
                self._store.expire(self._now())
                self._teller.catch_up(AT_ONCE)

    async def listed(self) -> None:
        """Wait until all that there was at the start is known."""
        for one in self._listed:
            await one.wait()

    async def reached(self, sequence: int) -> None:
        """Wait until a message of the stream of events was read; bound it by a time-out."""
        if self._position < sequence:
            read = anyio.Event()
            heapq.heappush(self._waiting, (sequence, id(read), read))
            await read.wait()

    def cluster_listed(self, reason: str) -> None:
        """Everything of the cluster was listed."""
        del reason
        self._store.expire(self._now())
        self._teller.listed()

    async def _read(self, stream: str, subject: str, deliver: Callable[[Delivery], None], listed: anyio.Event) -> None:
        """A stream that is missing holds nothing."""
        wanted: Sequence[str] = (subject,)
        while True:
            try:
                await stream_reading.read(self._bus, stream, wanted, deliver, listed=listed)
            except NotFound:
                listed.set()
            await anyio.sleep(AGAIN_S)

    def _event(self, delivery: Delivery) -> None:
        try:
            event = codec.decode(K8sEvent, delivery.payload)
            if fault := event_rules.absurd(event):
                raise MessageError("K8sEvent", fault)
            self._teller.sent(delivery.subject, event, delivery.sequence, delivery.stored_at)
        finally:
            self._position = delivery.sequence
            while self._waiting and self._waiting[0][0] <= self._position:
                heapq.heappop(self._waiting)[2].set()

    def _attempt(self, delivery: Delivery) -> None:
        record = self._decode(delivery.payload)
        self._teller.attempted(record)
        self._attempted(record)
