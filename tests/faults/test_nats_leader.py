"""Three servers; the one that leads CLUSTER is killed or paused under load: writing goes on within 15 s,
nothing is lost."""

import time
from typing import Final

import pytest

from podyard.bus import Bus, connect
from podyard.proto import streams
from tests.faults import acknowledged
from tests.faults.acknowledged import Load
from tests.faults.servers import Harm, Servers, killed, paused

GOES_ON_S: Final = 15.0
"""NATS promises nothing; its election takes 6 s."""

ENOUGH: Final = 50
"""Acknowledged writes before and after each fault."""

STREAM: Final = streams.CLUSTER.name


async def test_writing_goes_on_when_the_leader_is_killed_or_paused_and_nothing_is_lost(cluster: Servers) -> None:
    await rounds(cluster, [killed, paused])


@pytest.mark.whole_faults
@pytest.mark.timeout(900)
async def test_twenty_leaders_killed_or_paused(cluster: Servers) -> None:
    await rounds(cluster, [killed, paused] * 10)


async def rounds(nats: Servers, harms: list[Harm]) -> None:
    """One leader after the other is harmed while writers write; each connects to all three servers."""
    async with (
        connect(nats.settings("watcher")) as bus,
        connect(nats.settings("load-1")) as first,
        connect(nats.settings("load-2")) as second,
    ):
        async with Load([first, second]).running() as load:
            gaps_s = [await _round(nats, bus, load, harm) for harm in harms]
        print(f"without an acknowledged write: {acknowledged.spread(gaps_s)}; {dict(load.outcomes)}")
        assert max(gaps_s) < GOES_ON_S
        for name in nats.by_name:
            await nats.let_lead(bus, STREAM, name)
            await load.check(bus)


async def _round(nats: Servers, bus: Bus, load: Load, harm: Harm) -> float:
    """Harm the leader, wait until writing goes on, undo it; the longest gap in seconds."""
    await load.more(ENOUGH)
    leader = await nats.leader(bus, STREAM)
    began_at = time.monotonic()
    undo = await harm(nats[leader])
    await load.more(ENOUGH)
    await undo()
    await nats.healthy(leader)
    return load.gap_s(began_at)
