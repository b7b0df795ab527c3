"""Listing and following streams of records: the bus' watch, as lists and callbacks."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.watch import WatchSpec

NOTHING: str = "_"
"""Last token of subjects on which nothing is ever stored."""


class _Sink:
    """A `WatchSink` that hands on deliveries and says when the listing is complete."""

    def __init__(
        self,
        deliver: Callable[[Delivery], None],
        *,
        live_only: bool = False,
        missed: Callable[[str], None] | None = None,
    ) -> None:
        self._deliver = deliver
        self._live_only = live_only
        self._missed = missed
        self._last = 0
        self.synced_once = anyio.Event()

    def listing(self, target: int, reason: str) -> None:
        """After a gap the listing begins again; what was handed on already is not repeated, unless the stream
        was made again."""
        if target < self._last:
            self._last = 0
        if self.synced_once.is_set() and self._missed is not None:
            self._missed(reason)

    def deliver(self, delivery: Delivery) -> None:
        """Hand on what is new."""
        if delivery.sequence <= self._last or (self._live_only and not self.synced_once.is_set()):
            return
        self._last = delivery.sequence
        self._deliver(delivery)

    def synced(self, position: int) -> None:
        """The listing is complete."""
        self.synced_once.set()

    def advanced(self, position: int) -> None:
        """Nothing for us."""

    def contact(self, fresh: bool) -> None:
        """The connection comes back by itself."""


async def listing(bus: Bus, stream: str, subjects: Sequence[str]) -> list[Delivery]:
    """What a stream holds now on `subjects`, in stream order.

    :raises NotFound: if there is no such stream
    """
    found: list[Delivery] = []
    async with _reading(bus, stream, subjects, subjects, _Sink(found.append)) as tasks:
        tasks.cancel_scope.cancel()
    return found


async def read(
    bus: Bus, stream: str, subjects: Sequence[str], deliver: Callable[[Delivery], None], *, listed: anyio.Event
) -> None:
    """Hand on what a stream holds on `subjects`, then what is stored there, until cancelled.

    :param listed: set once all was handed on that it held at the start
    :raises NotFound: if there is no such stream
    """
    async with _reading(bus, stream, subjects, subjects, _Sink(deliver)):
        listed.set()


async def last(bus: Bus, stream: str, subject: str) -> Delivery | None:
    """What lies on one subject now; None if nothing does. A direct read may come from a replica that lags,
    this does not.

    :raises NotFound: if there is no such stream
    """
    found = await listing(bus, stream, (subject,))
    return found[-1] if found else None


async def follow(
    bus: Bus,
    stream: str,
    subjects: Sequence[str],
    deliver: Callable[[Delivery], None],
    *,
    nothing: str,
    missed: Callable[[str], None],
    started: anyio.Event | None = None,
) -> None:
    """Hand on what is stored on `subjects` from now on, until cancelled.

    :param nothing: a subject of the stream on which nothing is stored, to have nothing listed
    :param missed: called with the reason when the reading was interrupted: what was stored meanwhile is not
        handed on
    :param started: set once everything that is stored later will be handed on
    :raises NotFound: if there is no such stream
    """
    sink = _Sink(deliver, live_only=True, missed=missed)
    async with _reading(bus, stream, (nothing,), subjects, sink):
        if started is not None:
            started.set()


@asynccontextmanager
async def _reading(
    bus: Bus, stream: str, listed: Sequence[str], followed: Sequence[str], sink: _Sink
) -> AsyncGenerator[TaskGroup]:
    """A watch whose first listing is complete; it follows until the task group is cancelled.

    :raises NotFound: if there is no such stream
    """
    await bus.last_sequence(stream)
    spec = WatchSpec(stream=stream, list_subjects=tuple(listed), follow_subjects=tuple(followed))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bus.watch(spec, sink).run)
        await sink.synced_once.wait()
        yield tasks
