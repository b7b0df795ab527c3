"""What is stored survives: the loss of a block's end on one of three servers, restarts one after the other,
kills amid batches."""

import time
from pathlib import Path
from typing import Final

import pytest

from podyard.bus import connect, ensure_streams
from podyard.proto import streams
from tests.faults import acknowledged, servers
from tests.faults.acknowledged import Load
from tests.faults.servers import Servers
from tests.faults.stores import ENOUGH, cut, stores_harmed

STREAM: Final = streams.CLUSTER.name
GOES_ON_S: Final = 15.0
MOST_KILLS: Final = 60


async def test_a_server_that_lost_the_end_of_its_newest_block_gets_it_back(cluster: Servers) -> None:
    await stores_harmed(cluster, [cut(0.3)])


@pytest.mark.whole_faults
@pytest.mark.timeout(600)
async def test_three_servers_restarted_one_after_the_other_under_load(tmp_path: Path) -> None:
    async with servers.three_servers(tmp_path) as nats, connect(nats.settings("watcher")) as bus:
        await ensure_streams(bus, replicas=3)
        gaps_s: list[float] = []
        async with connect(nats.settings("load")) as writing, Load([writing]).running() as load:
            for name in servers.NAMES * 2:
                await load.more(ENOUGH)
                began_at = time.monotonic()
                await nats[name].stop()
                await load.more(ENOUGH)
                await nats[name].start()
                await nats.healthy(name)
                gaps_s.append(load.gap_s(began_at))
        print(f"restarts in order, without an acknowledged write: {acknowledged.spread(gaps_s)}; {dict(load.outcomes)}")
        assert max(gaps_s) < GOES_ON_S
        for name in nats.by_name:
            await nats.let_lead(bus, STREAM, name)
            await load.check(bus)


async def test_a_server_killed_amid_batches_keeps_whole_ones_and_all_that_it_acknowledged(tmp_path: Path) -> None:
    await killed_amid_batches(tmp_path, 4)


@pytest.mark.whole_faults
@pytest.mark.timeout(600)
async def test_forty_kills_amid_batches(tmp_path: Path) -> None:
    await killed_amid_batches(tmp_path, 40)


async def killed_amid_batches(directory: Path, kills: int) -> None:
    """One server, batches always under way, SIGKILL at any moment: so often, and until one has hit a
    write."""
    async with servers.one_server(directory) as nats, connect(nats.settings("watcher")) as bus:
        await ensure_streams(bus)
        [server] = nats.by_name.values()
        async with connect(nats.settings("load")) as writing:
            async with Load([writing], singles=2, chains=1, batches=6).running() as load:
                for number in range(MOST_KILLS):
                    await load.more(40 + number % 7)
                    await server.kill()
                    await server.start()
                    if number + 1 >= kills and load.failures:
                        break
            assert load.failures, "no kill hit a write"
        await load.check(bus)
