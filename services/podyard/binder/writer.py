"""Carries out what the core wants written and read, and says what came of it in the core's words. Decides
nothing."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

import anyio

from podyard.binder.core.effects import (
    Applied,
    BindingsRead,
    Conflicted,
    FenceFound,
    Inspect,
    Inspected,
    Message,
    ReadBindings,
    ReadFence,
    Send,
    Stored,
    Unclear,
    Write,
)
from podyard.bus import Bus, Delivery, Outgoing
from podyard.bus.errors import BusError, Conflict
from podyard.proto import codec, headers, placement_reading, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.placement import Fence

log: Final = logging.getLogger("podyard.binder")

READS_AT_ONCE: Final = 64
RETRY_S: Final = 0.2


class Writer:
    """The binder's hand on the bus."""

    def __init__(self, bus: Bus, commit_timeout_s: float, on_trouble: Callable[[str], None]) -> None:
        """:param on_trouble: told why the last send had no clear answer; with an empty text once one has"""
        self._bus = bus
        self._commit_timeout_s = commit_timeout_s
        self._on_trouble = on_trouble

    async def answer(self, ask: Send | ReadFence | Inspect | ReadBindings) -> Message:
        """Carry out what the core asks."""
        match ask:
            case Send():
                return await self.send(ask)
            case ReadFence():
                return await self.read_fence(ask)
            case Inspect():
                return await self.inspect(ask)
            case ReadBindings():
                return await self.read_bindings(ask)

    async def send(self, send: Send) -> Applied | Conflicted | Unclear:
        """Publish all or nothing. Whatever is neither an acknowledgement nor a number is unclear."""
        await anyio.sleep(send.delay_s)
        messages = [_outgoing(write) for write in send.writes]
        try:
            if len(messages) == 1:
                ack = await self._bus.publish(messages[0], timeout_s=self._commit_timeout_s)
            else:
                ack = await self._bus.publish_batch(messages, batch_id=send.batch_id, timeout_s=self._commit_timeout_s)
        except Conflict as error:
            self._on_trouble("")
            return Conflicted(send.batch_id, error.last_sequence)
        except BusError as error:
            log.warning("send %s is unclear: %s", send.batch_id, error)
            self._on_trouble(str(error))
            return Unclear(send.batch_id, str(error))
        self._on_trouble("")
        return Applied(send.batch_id, ack.sequence)

    async def read_fence(self, read: ReadFence) -> FenceFound:
        """What the fence holds; waits until it can be read."""
        await anyio.sleep(read.delay_s)
        return fence_of(await self._get(subjects.FENCE))

    async def inspect(self, inspect: Inspect) -> Inspected:
        """What the fence and some subjects hold."""
        found = await self._get_many([subjects.FENCE, *inspect.subjects])
        fence = fence_of(found.pop(subjects.FENCE, None))
        return Inspected(inspect.batch_id, fence, {subject: stored_of(one) for subject, one in found.items()})

    async def read_bindings(self, read: ReadBindings) -> BindingsRead:
        """What the bindings of some pods hold."""
        await anyio.sleep(read.delay_s)
        uids = {subjects.binding(pod.namespace, pod.name, pod.uid): pod.uid for pod in read.pods}
        found = await self._get_many(list(uids))
        return BindingsRead(
            {uid: stored_of(found[subject]) if subject in found else None for subject, uid in uids.items()}
        )

    async def _get_many(self, wanted: Sequence[str]) -> dict[str, Delivery]:
        found: dict[str, Delivery] = {}
        waiting = iter(wanted)

        async def worker() -> None:
            for subject in waiting:
                delivery = await self._get(subject)
                if delivery is not None:
                    found[subject] = delivery

        async with anyio.create_task_group() as tasks:
            for _ in range(min(READS_AT_ONCE, len(wanted))):
                tasks.start_soon(worker)
        return found

    async def _get(self, subject: str) -> Delivery | None:
        while True:
            try:
                return await self._bus.get(streams.CLUSTER.name, subject)
            except BusError as error:
                log.warning("%s cannot be read: %s; trying again", subject, error)
                await anyio.sleep(RETRY_S)


def _outgoing(write: Write) -> Outgoing:
    return Outgoing(write.subject, write.payload, write.expect, expires=write.expires)


def fence_of(delivery: Delivery | None) -> FenceFound:
    """What is stored of the fence; None: nothing."""
    if delivery is None:
        return FenceFound(None, 0)
    try:
        return FenceFound(codec.decode(Fence, delivery.payload), delivery.sequence)
    except MessageError as error:
        return FenceFound(None, delivery.sequence, str(error))


def stored_of(delivery: Delivery) -> Stored:
    """What is stored of a placement."""
    expiring = headers.TTL in delivery.headers
    try:
        placement = placement_reading.decode(delivery.subject, delivery.payload)
    except MessageError as error:
        return Stored(delivery.sequence, None, expiring, str(error))
    return Stored(delivery.sequence, placement, expiring)
