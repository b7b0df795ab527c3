"""The census taker's shell: follows CLUSTER whole, stores censuses, deletes again what came back."""

from collections.abc import Sequence
from typing import Final

import anyio.to_thread

from podyard.bus import Ack, BusError, Conflict, Delivery, Outgoing, WatchSpec
from podyard.bus import census as packing
from podyard.cluster import intents
from podyard.cluster.intents import Author
from podyard.cluster.keys import ObjectKey
from podyard.proto import headers, streams, subjects
from podyard.proto.codec import MessageError
from podyard.runtime.service import Service
from podyard.shell import writes
from podyard.shell.boundary import Boundary
from podyard.shell.driver import Driver
from podyard.workloads.core.census import (
    Ask,
    Back,
    CensusTaker,
    Clear,
    Cleared,
    Effect,
    Ended,
    Found,
    Listed,
    Listing,
    Message,
    Relist,
    Roll,
    Seen,
    Take,
    Taken,
    Tick,
)
from podyard.workloads.instruments import Instruments
from podyard.workloads.settings import WorkloadsSettings

ALL: Final = (">",)
WHO: Final = Author("workloads", "it had been deleted, and came back when the server was killed")


class Census:
    """Of one term. The sink of its own watch; owned by one event loop."""

    def __init__(self, service: Service[WorkloadsSettings], instruments: Instruments, boundary: Boundary) -> None:
        self._bus = service.bus
        self._log = service.log
        self._now = service.clock.now
        self._instruments = instruments
        self._roll = Roll()
        spec = WatchSpec(stream=streams.CLUSTER.name, list_subjects=ALL, follow_subjects=ALL)
        self._watch = service.bus.watch(spec, self, on_came_back=self._came_back)
        core = CensusTaker(self._roll, service.bus.settings.marker_ttl_s)
        self._driver: Driver[Message, Effect, Ask] = Driver(
            core,
            now=self._now,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=lambda message: None,
            answer=self._answer,
            tick=Tick(),
            wake_at=lambda: core.wake_at,
        )

    async def run(self) -> None:
        """Take censuses until cancelled, or until the core has raised."""
        async with self._driver as tasks:
            tasks.start_soon(self._watch.run)

    # ---- the watch

    def listing(self, target: int, reason: str) -> None:
        """A listing begins."""
        self._roll.begin(target)
        self._driver.step(Listing())

    def deliver(self, delivery: Delivery) -> None:
        """A message of the stream."""
        if delivery.subject == subjects.CENSUS:
            self._roll.note_other(delivery.sequence)
            self._driver.step(Seen(delivery.sequence, _position(delivery)))
        elif self._roll.note(delivery.subject, delivery.sequence, expires=headers.TTL in delivery.headers):
            self._driver.step(Ended())

    def synced(self, position: int) -> None:
        """The listing is complete."""
        self._driver.step(Listed(self._watch.held, position, self._watch.replicas))

    def advanced(self, position: int) -> None:
        """The roll is whole so far."""
        self._roll.passed(position)

    def contact(self, fresh: bool) -> None:
        """`/readyz` knows it from another reader."""

    def _came_back(self, delivery: Delivery) -> None:
        self._roll.note_other(delivery.sequence)
        self._instruments.came_back()
        self._driver.step(Found(Back(delivery.subject, delivery.sequence)))

    # ---- what the core wants

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Relist):
                self._watch.relist(effect.reason)
            else:
                self._driver.ask(effect)

    async def _answer(self, ask: Ask) -> Message:
        return await self._take(ask) if isinstance(ask, Take) else await self._clear(ask)

    async def _take(self, take: Take) -> Taken:
        """Packing takes a fifth of a second of a million sequences: not of the event loop's."""
        payload = await anyio.to_thread.run_sync(packing.encode, take.position, take.living, self._now())
        try:
            await self._bus.publish(Outgoing(subjects.CENSUS, payload, expect=take.expect))
        except Conflict as error:
            self._log.info("another census was faster", reason=str(error))
            return Taken(False)
        except BusError as error:
            self._log.warning("a census could not be stored", bytes=len(payload), reason=str(error))
            return Taken(False)
        self._instruments.census(len(payload))
        return Taken(True)

    async def _clear(self, clear: Clear) -> Cleared:
        left: list[Back] = []
        markers: list[Outgoing] = []
        for back in clear.messages:
            try:
                found = await self._bus.get(streams.CLUSTER.name, back.subject)
            except BusError as error:
                self._log.info("what came back cannot be read yet", subject=back.subject, reason=str(error))
                left.append(back)
                continue
            if found is not None and found.sequence == back.sequence:
                markers.append(_marker(found))
        for marker, answer in zip(markers, await self._bus.publish_many(markers), strict=True):
            if isinstance(answer, Ack):
                self._log.warning("came back with the server, and is deleted again", subject=marker.subject)
            elif not isinstance(answer, Conflict):  # then somebody has written it
                self._log.warning("what came back cannot be deleted", subject=marker.subject, reason=str(answer))
                left.append(Back(marker.subject, marker.expect or 0))
        return Cleared(clear.listing, tuple(left))


def _position(delivery: Delivery) -> int:
    try:
        return packing.decode(delivery.payload).position
    except MessageError:
        return 0


def _marker(found: Delivery) -> Outgoing:
    """A marker in the place of an object, or a fact."""
    try:
        key = ObjectKey(*subjects.parse_object(found.subject))
    except ValueError:
        return Outgoing(found.subject, b"", expect=found.sequence, deleted=True, expires=True)
    return writes.message_of(key, intents.Remove(), intents.stored_of(found), WHO)
