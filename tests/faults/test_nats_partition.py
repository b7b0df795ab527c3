"""Routes between three servers are cut, in one direction or both: whoever can be reached by a majority leads,
and nothing is lost."""

import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from podyard.bus import connect, ensure_streams
from podyard.proto import streams
from tests.faults import routes, servers
from tests.faults.acknowledged import Load

STREAM: Final = streams.CLUSTER.name
GOES_ON_S: Final = 15.0
DEAF_S: Final = 40.0
"""A leader that hears nobody, while everybody hears it, keeps the others from electing until it sees that it
has no quorum (10 s); then they elect. Seen: 24 s. Promised is only what a leader's death takes."""

ENOUGH: Final = 30


@pytest.mark.whole_faults
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "cut", ["out of the leader", "into the leader", "both ways", "from the leader to one follower"]
)
async def test_writing_goes_on_beside_a_partition_and_nothing_is_lost(tmp_path: Path, cut: str) -> None:
    async with AsyncExitStack() as stack:
        between = await stack.enter_async_context(routes.between(servers.NAMES))
        nats = await stack.enter_async_context(servers.three_servers(tmp_path, routes=between.urls))
        bus = await stack.enter_async_context(connect(nats.settings("watcher")))
        await ensure_streams(bus, replicas=3)
        leader = await nats.leader(bus, STREAM)
        others = nats.others(leader)
        # writers at the majority, whose server answers them whoever leads
        writing = await stack.enter_async_context(connect(nats.settings("load", at=others[1])))
        async with Load([writing]).running() as load:
            await load.more(ENOUGH)
            began_at = time.monotonic()
            for other in others[: 1 if "one follower" in cut else 2]:
                if cut != "into the leader":
                    between.hold(leader, other)
                if cut in ("into the leader", "both ways"):
                    between.hold(other, leader)
            await load.more(ENOUGH)
            between.heal()
            await load.more(ENOUGH)
            gap_s = load.gap_s(began_at)
            for name in nats.by_name:
                await nats.healthy(name)
        print(f"{cut}: {gap_s:.1f} s without an acknowledged write; {dict(load.outcomes)}")
        for name in nats.by_name:
            await nats.let_lead(bus, STREAM, name)
            await load.check(bus)
        assert gap_s > 1 or "one follower" in cut, "the leader was not cut off"
        assert gap_s < (DEAF_S if cut == "into the leader" else GOES_ON_S)
