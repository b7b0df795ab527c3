"""Who leads a service: a lease with a time to live, by compare-and-set
(docs/rules.md, lease-is-an-optimisation).

The lease is one message on `leases.<service>` that the server removes after its TTL. It is claimed on "no
message" or on the marker of a clean release, renewed every retry period on the holder's own last version, and
given up

- when a renewal's compare-and-set fails: somebody else has it;
- at (when the last good renewal was *sent* + renew deadline) by the monotonic clock, answer or not.

A process started again under the same instance name takes over what it held before, without waiting. Nobody
trusts a read to know who leads: reading only says when to try.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

import anyio

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.errors import BusError, Conflict, Unclear
from podyard.bus.outgoing import Outgoing
from podyard.proto import codec, operations, streams, subjects
from podyard.proto.streams import LEASE_TIMES, LeaseTimes

log: Final = logging.getLogger("podyard.bus")

TRIES_PER_TTL: Final = 3
"""Share of the TTL after which a try counts as unanswered."""

LOOKS_PER_TTL: Final = 10
"""How often a standby looks at least for an expired lease, of which the server tells nobody."""

RELEASE_WITHIN_S: Final = 2.0
RELEASED_TTL_S: Final = 1
RETRY_S: Final = 0.1


def _ignore_trouble(reason: str) -> None:
    del reason


class Lease:
    """One candidate for leading `service`. Owned by the task that runs `run` or `lead`.

    :param instance: stable name of this process' place, taken up again after a restart
    :param session: this process start, never used twice
    :param times: its duration at least 1 s; above the time NATS needs to elect a leader, in a cluster
    :param take_over: whether the first claim is made whoever holds the lease: he finds another's in the place
        of his own when he renews it
    :param on_trouble: told why it could not try to get the lease, so that nobody may lead; with an empty text
        once it could
    """

    def __init__(
        self,
        bus: Bus,
        service: str,
        instance: str,
        session: str,
        times: LeaseTimes = LEASE_TIMES,
        on_trouble: Callable[[str], None] = _ignore_trouble,
        *,
        take_over: bool = False,
    ) -> None:
        self.service = service
        self.instance = instance
        self.session = session
        self.epoch = 0
        """Grows with every holder: the stream sequence of its claim, so it cannot repeat while the stream
        LEASES lives. Who moves a fence takes at least the fence's epoch + 1, should that stream have been
        made again. 0 before the first claim."""

        self._bus = bus
        self._takes_over = take_over
        self._on_trouble = on_trouble
        self._subject = subjects.lease(service)
        self._times = times
        self._ttl_s = times.duration_s
        self._sequence = 0
        """Of this holder's last write; 0 = not held."""

        self._sent_at = 0.0
        """When that write was sent, by the monotonic clock."""

    @property
    def held(self) -> bool:
        """Whether it may still act as the leader. Asks the clock, so that a process that was paused knows it
        at once."""
        return self._sequence > 0 and time.monotonic() < self._steps_down_at()

    def overdue_s(self) -> float:
        """Seconds since it ended, had it not been renewed again; below 0: it has not. Any thread may ask."""
        return time.monotonic() - self._sent_at - self._ttl_s

    async def run(self, on_acquired: Callable[[int], None], on_lost: Callable[[str], None]) -> NoReturn:
        """Stand for election for ever: `on_acquired(epoch)` when it leads, `on_lost(reason)` when not any
        more.

        Both are synchronous. When cancelled it releases the lease; stop leading before.
        """
        try:
            while True:
                await self._acquire()
                on_acquired(self.epoch)
                reason = await self._keep()
                on_lost(reason)
        finally:
            await self._release()

    async def lead(self, main: Callable[[int], Awaitable[None]]) -> None:
        """Run `main(epoch)` whenever it leads; cancelled when the lease is lost, awaited before the lease is
        released.

        Returns when `main` returns. What `main` raises comes out as it is.
        """
        while True:
            await self._acquire()
            leading = _Leading(main, self.epoch)
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(leading.run, tasks.cancel_scope)
                    await self._keep()
                    tasks.cancel_scope.cancel()
            finally:
                await self._release()
            if leading.failure is not None:
                raise leading.failure
            if leading.returned:
                return

    # --- getting it

    async def _acquire(self) -> None:
        """Wait for a chance and take it."""
        changed = _Changed()
        subscription = await self._bus.subscribe(self._subject, changed.on_message)
        try:
            while True:
                changed.event = anyio.Event()
                try:
                    acquired = await self._try()
                except BusError as error:
                    log.debug("lease of %s: %s", self.service, error)
                    self._on_trouble(f"cannot try to get the lease: {error}")
                else:
                    self._on_trouble("")
                    if acquired:
                        return
                with anyio.move_on_after(min(self._times.retry_period_s, self._ttl_s / LOOKS_PER_TTL)):
                    await changed.event.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await subscription.close()

    async def _try(self) -> bool:
        """Look, and claim if nobody else seems to hold it."""
        found = await self._bus.get(streams.LEASES.name, self._subject)
        expect, epoch = 0, 1
        if found is not None:
            expect, epoch = found.sequence, found.sequence + 1
            holder = _read(found)
            if holder is not None and holder.holder != self.instance and not self._takes_over:
                return False
        sent_at = time.monotonic()
        try:
            ack = await self._bus.publish(self._message(expect, epoch), timeout_s=self._ttl_s / TRIES_PER_TTL)
        except Conflict:
            return False
        self._takes_over = False
        self.epoch = ack.sequence
        self._sequence, self._sent_at = ack.sequence, sent_at
        log.info("leads %s as %s, epoch %d", self.service, self.instance, self.epoch)
        return True

    def _message(self, expect: int, epoch: int) -> Outgoing:
        lease = operations.Lease(holder=self.instance, session=self.session, epoch=epoch)
        return Outgoing(self._subject, codec.encode(lease), expect=expect, ttl_s=self._ttl_s)

    # --- keeping it

    def _steps_down_at(self) -> float:
        return self._sent_at + self._times.renew_deadline_s

    async def _keep(self) -> str:
        """Renew until it is lost; returns why."""
        reason = ""
        wait_s = 0.0  # the first renewal tells readers the epoch, which the claim could not know
        with anyio.CancelScope(deadline=self._deadline()) as limit:
            while not reason:
                await anyio.sleep(wait_s)
                reason = await self._renew()
                limit.deadline = self._deadline()
                wait_s = max(RETRY_S, self._sent_at + self._times.retry_period_s - time.monotonic())
        if not reason:
            reason = f"it could not be renewed within {self._times.renew_deadline_s:g} s"
        self._sequence = 0
        log.warning("leads %s no more: %s", self.service, reason)
        return reason

    def _deadline(self) -> float:
        return anyio.current_time() + self._steps_down_at() - time.monotonic()

    async def _renew(self) -> str:
        """One renewal; returns why the lease is lost, or an empty string (renewed, or to be tried again)."""
        sent_at = time.monotonic()
        try:
            message = self._message(self._sequence, self.epoch)
            ack = await self._bus.publish(message, timeout_s=self._ttl_s / TRIES_PER_TTL)
        except (Conflict, Unclear):
            return await self._settle()
        except BusError as error:
            log.info("lease of %s: %s", self.service, error)
            return ""
        self._sequence, self._sent_at = ack.sequence, sent_at
        return ""

    async def _settle(self) -> str:
        """After an unclear renewal or a conflict, which may be with this session's own earlier unclear write:
        read what is there.

        A stale read does no harm: the next renewal's compare-and-set decides.
        """
        try:
            found = await self._bus.get(streams.LEASES.name, self._subject)
        except BusError as error:
            log.info("lease of %s: %s", self.service, error)
            return ""
        holder = None if found is None else _read(found)
        if found is None or holder is None:
            return "it expired"
        if holder.session != self.session:
            return f"{holder.holder} has it, epoch {holder.epoch}"
        # Its own earlier write was applied. The time still counts from the last renewal that was answered.
        self._sequence = max(self._sequence, found.sequence)
        return ""

    async def _release(self) -> None:
        """Give it up if held, so that a standby takes over at once."""
        sequence, self._sequence = self._sequence, 0
        with anyio.move_on_after(RELEASE_WITHIN_S, shield=True):
            try:
                while sequence:
                    sequence = await self._released(sequence)
            except BusError as error:
                log.info("lease of %s could not be released, it will expire: %s", self.service, error)

    async def _released(self, sequence: int) -> int:
        """One attempt; returns the sequence to try again with: a renewal that was cut short may have been
        applied. 0 = done."""
        marker = Outgoing(self._subject, b"", expect=sequence, ttl_s=RELEASED_TTL_S, deleted=True)
        try:
            await self._bus.publish(marker, timeout_s=RELEASE_WITHIN_S)
        except Conflict:
            found = await self._bus.get(streams.LEASES.name, self._subject)
            holder = None if found is None else _read(found)
            mine = found is not None and holder is not None and holder.session == self.session
            return found.sequence if found is not None and mine else 0
        return 0


class _Changed:
    """Whether something was written to the lease: its messages pass by as core messages too."""

    def __init__(self) -> None:
        self.event = anyio.Event()

    def on_message(self, subject: str, payload: bytes, trace: str) -> None:
        del subject, payload, trace
        self.event.set()


class _Leading:
    """`main` while leading, and how it ended."""

    def __init__(self, main: Callable[[int], Awaitable[None]], epoch: int) -> None:
        self._main = main
        self._epoch = epoch
        self.returned = False
        self.failure: Exception | None = None

    async def run(self, scope: anyio.CancelScope) -> None:
        try:
            await self._main(self._epoch)
            self.returned = True
        except Exception as error:  # raised again by `lead`, as it is and not in a group
            self.failure = error
        scope.cancel()


def _read(delivery: Delivery) -> operations.Lease | None:
    """The lease in a stored message; None for the marker of a release and for what is no lease."""
    if delivery.deleted:
        return None
    try:
        return codec.decode(operations.Lease, delivery.payload)
    except codec.MessageError as error:
        log.warning("what is on %s is no lease: %s", delivery.subject, error)
        return None
