"""Each of three servers loses a part of its store, or all of it, and has it again if it is started as
operators are told to.

Alone on the machine: where heartbeats are late another leader is chosen meanwhile (docs/guarantees.md, what
is not promised).
"""

from typing import Final

import pytest

from podyard.bus import connect
from tests.faults import disks, servers
from tests.faults.acknowledged import Load
from tests.faults.servers import NAMES, Servers
from tests.faults.stores import ENOUGH, STREAM, cut, emptied, stores_harmed

pytestmark = [pytest.mark.whole_faults, pytest.mark.timeout(600)]

SHARES: Final = (0.0, 0.02, 0.3, 1.0)
"""Of the newest block, that are cut: one byte, the last message, many, all."""


async def test_each_of_three_servers_loses_more_or_less_of_its_newest_block(cluster: Servers) -> None:
    await stores_harmed(cluster, [cut(share) for share in SHARES for _ in servers.NAMES])


async def test_each_of_three_servers_begins_with_an_empty_store(cluster: Servers) -> None:
    await stores_harmed(cluster, [emptied for _ in servers.NAMES])


async def test_a_server_that_noted_more_than_it_has_lacks_it_until_it_begins_with_an_empty_store(
    cluster: Servers,
) -> None:
    """It asks the others for what came after its note alone (nats-server 2.15.1, filestore.go: the last
    sequence of a prior state counts). Nothing but what each server holds tells of it."""
    harmed = NAMES[0]
    server = cluster[harmed]
    async with connect(cluster.settings("watcher")) as bus, connect(cluster.settings("load")) as writing:
        async with Load([writing]).running() as load:
            await load.more(ENOUGH)
            await server.stop()
            await server.start()
            await cluster.healthy(harmed)
            await load.more(ENOUGH)
            await server.kill()
            assert disks.cut_newest_block(server, STREAM, share=1.0) > 0
            await server.start()
            await cluster.healthy(harmed)
            await load.more(ENOUGH)
        others = cluster.others(harmed)
        lacking = await cluster.at_the_end(harmed, STREAM)
        whole = await cluster.holds(others[0], STREAM)
        assert whole is not None
        assert lacking.first_sequence > whole.first_sequence
        assert lacking.messages < whole.messages
        for name in others:
            await cluster.let_lead(bus, STREAM, name)
            await load.check(bus)
        await server.kill()
        emptied(server)
        await server.start()
        await cluster.caught_up(harmed, STREAM)
        await cluster.let_lead(bus, STREAM, harmed)
        await load.check(bus)
