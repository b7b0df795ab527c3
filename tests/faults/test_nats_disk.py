"""A disk that is full, and one that does not say that it has written: nothing is acknowledged that is lost
later.

nats-server 2.15.1 treats both alike: the first write that fails freezes the stream on that server until it is
started again; /healthz says so. Alone it acknowledges nothing meanwhile; of three another one leads after 6
s.
"""

import time
from pathlib import Path
from typing import Final

import pytest

from podyard.bus import connect, ensure_streams
from podyard.proto import streams
from tests.faults import disks, servers
from tests.faults.acknowledged import Load

STREAM: Final = streams.CLUSTER.name
GOES_ON_S: Final = 15.0
ENOUGH: Final = 50
REFUSED: Final = 12
"""Writes in vain until a fault counts as seen."""

DISK_MEBIBYTES: Final = 4


async def test_a_full_disk_acknowledges_nothing_and_loses_nothing(tmp_path: Path) -> None:
    log = {"log_file": str(tmp_path / "nats-server.log")}
    with disks.small_disk(tmp_path / "disk", mebibytes=DISK_MEBIBYTES) as disk:
        async with servers.one_server(disk, settings=log) as nats, connect(nats.settings("watcher")) as bus:
            await ensure_streams(bus)
            [name] = nats.by_name
            async with connect(nats.settings("load")) as writing, Load([writing], size=2000).running() as load:
                await load.more(ENOUGH)
                taken = disks.fill(disk)
                await load.in_vain(REFUSED)
                stopped = len(load.answers)
                await load.in_vain(REFUSED)
                assert len(load.answers) == stopped, "there is no room, and writes are acknowledged"
                assert "no space left on device" in await nats.health(name)
                taken.unlink()
                await nats[name].stop()
                await nats[name].start()
                await nats.healthy(name)
                await load.more(ENOUGH)
            await load.check(bus)


@pytest.mark.whole_faults
async def test_an_fsync_that_fails_on_the_only_server_is_never_acknowledged(tmp_path: Path) -> None:
    always = {"sync_interval": "always"}
    async with servers.one_server(tmp_path, jetstream=always) as nats, connect(nats.settings("watcher")) as bus:
        await ensure_streams(bus)
        [name] = nats.by_name
        async with connect(nats.settings("load")) as writing, Load([writing]).running() as load:
            await load.more(ENOUGH)
            async with disks.failing_fsync(nats[name]):
                stopped = len(load.answers)
                await load.in_vain(REFUSED)
                assert len(load.answers) <= stopped, "no fsync succeeds, and writes are acknowledged"
            assert "input/output error" in await nats.health(name)
            await nats[name].kill()
            await nats[name].start()
            await nats.healthy(name)
            await load.more(ENOUGH)
        await load.check(bus)


@pytest.mark.whole_faults
@pytest.mark.timeout(300)
async def test_another_of_three_takes_over_from_the_one_whose_fsync_fails(tmp_path: Path) -> None:
    async with servers.three_servers(tmp_path) as nats, connect(nats.settings("watcher")) as bus:
        await ensure_streams(bus, replicas=3)
        async with connect(nats.settings("load")) as writing, Load([writing]).running() as load:
            await load.more(ENOUGH)
            leader = await nats.leader(bus, STREAM)
            began_at = time.monotonic()
            async with disks.failing_fsync(nats[leader]):
                await load.more(ENOUGH)
                successor = await nats.leader(bus, STREAM, but=leader)
                assert "input/output error" in await nats.health(leader)
                await load.more(ENOUGH)
            gap_s = load.gap_s(began_at)
            print(f"fsync failed on {leader}, {successor} took over: {gap_s:.1f} s without an acknowledged write")
            assert gap_s < GOES_ON_S
            await nats[leader].kill()
            await nats[leader].start()
            await nats.healthy(leader)
        for name in nats.by_name:
            await nats.let_lead(bus, STREAM, name)
            await load.check(bus)
