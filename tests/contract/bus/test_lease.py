"""Leases on the real server, with a TTL of one to three seconds."""

import asyncio
import time

import anyio
import pytest

from podyard.bus import Ack, Bus, EmbeddedServer, Lease, Outgoing, Unclear, ensure_streams
from podyard.proto import codec, operations
from podyard.proto.streams import LeaseTimes
from podyard.runtime.leases import LeaseSettings
from tests.support.buses import ConnectBus
from tests.support.waiting import eventually


class Candidate:
    """A candidate that runs, and what it was told."""

    def __init__(self, bus: Bus, instance: str, session: str, ttl_s: int = 2, times: LeaseTimes | None = None) -> None:
        self.trouble: list[str] = []
        times = times or LeaseSettings(lease_ttl_s=ttl_s).lease_times()
        self.lease = Lease(bus, "queue", instance, session, times, on_trouble=self.trouble.append)
        self.told: list[str] = []
        self.acquired = asyncio.Event()
        self.lost = asyncio.Event()
        self.task = asyncio.create_task(self.lease.run(self._on_acquired, self._on_lost))

    def _on_acquired(self, epoch: int) -> None:
        self.told.append(f"acquired {epoch}")
        self.acquired.set()

    def _on_lost(self, reason: str) -> None:
        self.told.append(f"lost: {reason}")
        self.lost.set()

    async def until_acquired(self) -> None:
        async with asyncio.timeout(10):
            await self.acquired.wait()

    async def until_lost(self) -> None:
        async with asyncio.timeout(10):
            await self.lost.wait()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def stored(bus: Bus) -> operations.Lease | None:
    found = await bus.get("LEASES", "leases.queue")
    return None if found is None or found.deleted else codec.decode(operations.Lease, found.payload)


async def beyond(bus: Bus, sequence: int) -> bool:
    """Whether the lease was written again."""
    return await bus.last_sequence("LEASES") > sequence


async def test_one_leads_and_the_other_waits_for_its_release(bus: Bus, connect_bus: ConnectBus):
    first = Candidate(bus, "queue-1", "s1", ttl_s=10)
    await first.until_acquired()
    assert first.lease.held
    second = Candidate(await connect_bus("second"), "queue-2", "s2", ttl_s=10)

    async def told() -> operations.Lease | None:
        lease = await stored(bus)
        return lease if lease is not None and lease.epoch == first.lease.epoch else None

    lease = await eventually("the lease as stored", told)
    assert lease is not None
    assert (lease.holder, lease.session) == ("queue-1", "s1")
    assert not second.acquired.is_set()

    began_at = time.monotonic()
    await first.end()
    await second.until_acquired()
    # the server may tell of the release before it is stored: then it is seen with the next look, a second
    # later
    assert time.monotonic() - began_at < 2.0, "a clean release is taken over at once, not after 10 s"
    assert second.lease.epoch > first.lease.epoch
    assert not first.lease.held
    await second.end()


async def test_a_dead_holders_lease_expires(bus: Bus):
    foreign = operations.Lease(holder="queue-9", session="dead", epoch=1)
    ack = await bus.publish(Outgoing("leases.queue", codec.encode(foreign), expect=0, ttl_s=1))
    candidate = Candidate(bus, "queue-1", "s1")
    await candidate.until_acquired()
    assert candidate.lease.epoch > ack.sequence
    await candidate.end()


async def test_the_same_instance_takes_over_without_waiting(bus: Bus):
    """A restart: the old process is gone, its lease would live on for an hour."""
    before = operations.Lease(holder="queue-1", session="before", epoch=1)
    ack = await bus.publish(Outgoing("leases.queue", codec.encode(before), expect=0, ttl_s=3600))
    candidate = Candidate(bus, "queue-1", "after")
    async with asyncio.timeout(1):
        await candidate.acquired.wait()
    assert candidate.lease.epoch > ack.sequence
    await candidate.end()


async def test_renewing_keeps_it_beyond_its_ttl(bus: Bus, connect_bus: ConnectBus):
    holder = Candidate(bus, "queue-1", "s1", ttl_s=1)
    await holder.until_acquired()
    rival = Candidate(await connect_bus("rival"), "queue-2", "s2", ttl_s=1)
    sequences: set[int] = set()
    began_at = time.monotonic()
    while time.monotonic() - began_at < 2.5:
        assert holder.lease.held
        sequences.add(await bus.last_sequence("LEASES"))
        await asyncio.sleep(0.05)
    assert len(sequences) >= 5
    assert not rival.acquired.is_set()
    assert holder.told == [f"acquired {holder.lease.epoch}"]
    await rival.end()
    await holder.end()


async def test_a_candidate_that_cannot_try_says_so_until_it_can(bus: Bus):
    """Without that a service would call itself ready as a standby while nobody can lead."""
    await bus.request("$JS.API.STREAM.DELETE.LEASES", b"")
    candidate = Candidate(bus, "queue-1", "s1")
    await eventually("trouble", lambda: any(candidate.trouble))
    assert not candidate.lease.held
    await ensure_streams(bus)
    await candidate.until_acquired()
    assert candidate.trouble[-1] == ""
    await candidate.end()


async def test_a_holder_that_was_overwritten_steps_down(bus: Bus):
    holder = Candidate(bus, "queue-1", "s1", ttl_s=1)
    await holder.until_acquired()
    thief = operations.Lease(holder="queue-2", session="s2", epoch=99)
    await bus.publish(Outgoing("leases.queue", codec.encode(thief), ttl_s=2))
    await holder.until_lost()
    assert not holder.lease.held
    assert holder.told[1] == "lost: queue-2 has it, epoch 99"
    holder.acquired.clear()
    await holder.until_acquired()
    assert len(holder.told) == 3
    await holder.end()


async def test_a_holder_steps_down_before_its_lease_ends_when_nats_is_silent(bus: Bus, nats_server: EmbeddedServer):
    holder = Candidate(bus, "queue-1", "s1", ttl_s=2)
    await holder.until_acquired()
    nats_server.pause()
    paused_at = time.monotonic()
    try:
        await holder.until_lost()
        assert time.monotonic() - paused_at < 2.0, "it must step down before the server could give it to another"
        assert not holder.lease.held
        assert "could not be renewed" in holder.told[1]
    finally:
        nats_server.resume()
    holder.acquired.clear()
    await holder.until_acquired()
    await holder.end()


async def test_a_renewal_that_was_applied_but_not_answered_does_not_cost_the_lease(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    """The next renewal conflicts with one's own write, which is recognised."""
    publish, lost_answers = bus.publish, 2

    async def without_answer(message: Outgoing, *, timeout_s: float | None = None) -> Ack:
        nonlocal lost_answers
        ack = await publish(message, timeout_s=timeout_s)
        if message.expect and lost_answers:
            lost_answers -= 1
            raise Unclear(message.subject, "the answer was lost")
        return ack

    monkeypatch.setattr(bus, "publish", without_answer)
    holder = Candidate(bus, "queue-1", "s1", ttl_s=2)
    await holder.until_acquired()
    await eventually("three renewals", lambda: beyond(bus, holder.lease.epoch + 3))
    assert lost_answers == 0
    assert holder.lease.held
    assert len(holder.told) == 1, holder.told
    await holder.end()
    assert await stored(bus) is None


async def test_a_restarted_server_keeps_the_lease(bus: Bus, nats_server: EmbeddedServer):
    holder = Candidate(bus, "queue-1", "s1", ttl_s=5)
    await holder.until_acquired()
    await nats_server.kill()
    await nats_server.start()
    before = await bus.last_sequence("LEASES")
    await eventually("a renewal", lambda: beyond(bus, before))
    assert len(holder.told) == 1, holder.told
    await holder.end()


async def test_lead_ends_main_before_it_releases(bus: Bus):
    seen: list[operations.Lease | None] = []
    leading = asyncio.Event()

    async def main(epoch: int) -> None:
        leading.set()
        try:
            await asyncio.sleep(3600)
        finally:
            with anyio.CancelScope(shield=True):
                seen.append(await stored(bus))

    task = asyncio.create_task(Lease(bus, "queue", "queue-1", "s1").lead(main))
    await leading.wait()
    task.cancel()
    await asyncio.wait([task])
    assert [lease and lease.session for lease in seen] == ["s1"], "released while main still ran"
    assert await stored(bus) is None


async def test_lead_cancels_main_when_the_lease_is_lost_and_leads_again(bus: Bus):
    epochs: list[int] = []
    cancelled = 0
    once, twice = asyncio.Event(), asyncio.Event()

    async def main(epoch: int) -> None:
        nonlocal cancelled
        epochs.append(epoch)
        (once if len(epochs) == 1 else twice).set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled += 1
            raise

    lease = Lease(bus, "queue", "queue-1", "s1", LeaseSettings(lease_ttl_s=1).lease_times())
    task = asyncio.create_task(lease.lead(main))
    async with asyncio.timeout(10):
        await once.wait()
        thief = operations.Lease(holder="queue-2", session="s2", epoch=99)
        await bus.publish(Outgoing("leases.queue", codec.encode(thief), ttl_s=1))
        await twice.wait()
    assert cancelled == 1
    assert epochs[1] > epochs[0]
    task.cancel()
    await asyncio.wait([task])


async def test_lead_returns_with_main_and_releases(bus: Bus):
    async def main(epoch: int) -> None:
        return

    await Lease(bus, "queue", "queue-1", "s1").lead(main)
    assert await stored(bus) is None


async def test_lead_passes_on_what_main_raises(bus: Bus):
    async def main(epoch: int) -> None:
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        await Lease(bus, "queue", "queue-1", "s1").lead(main)
    assert await stored(bus) is None


async def test_a_main_that_does_not_end_with_the_lease_is_seen_by_how_long_ago_that_was(bus: Bus):
    leads, going_on = asyncio.Event(), asyncio.Event()

    async def main(epoch: int) -> None:
        leads.set()
        with anyio.CancelScope(shield=True):
            await going_on.wait()

    lease = Lease(bus, "queue", "queue-1", "s1", LeaseSettings(lease_ttl_s=1).lease_times())
    task = asyncio.create_task(lease.lead(main))
    async with asyncio.timeout(10):
        await leads.wait()
        assert -1 <= lease.overdue_s() < 0
        await bus.publish(
            Outgoing("leases.queue", codec.encode(operations.Lease(holder="other", session="s2", epoch=99)))
        )
        await eventually("it is overdue", lambda: lease.overdue_s() > 0)
    going_on.set()
    task.cancel()
    await asyncio.wait([task])


async def test_it_is_renewed_every_retry_period(bus: Bus):
    """client-go's RetryPeriod, here of a lease that would be renewed every ten seconds."""
    holder = Candidate(bus, "queue-1", "s1", times=LeaseTimes(30, 20.0, 0.2))
    await holder.until_acquired()
    before, began_at = await bus.last_sequence("LEASES"), time.monotonic()
    await eventually("five renewals", lambda: beyond(bus, before + 4))
    assert 0.5 < time.monotonic() - began_at < 5
    await holder.end()


async def test_who_cannot_renew_steps_down_at_the_renew_deadline_not_with_the_lease(bus: Bus):
    """client-go's RenewDeadline: the lease would go on for half a minute."""
    holder = Candidate(bus, "queue-1", "s1", times=LeaseTimes(30, 0.8, 0.3))
    await holder.until_acquired()
    began_at = time.monotonic()
    await bus.request("$JS.API.STREAM.DELETE.LEASES", b"")
    await holder.until_lost()
    assert time.monotonic() - began_at < 5
    assert not holder.lease.held
    await holder.end()
