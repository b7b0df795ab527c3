"""Each of three servers loses a part of its store, or all of it, and has it again.

Alone on the machine: where heartbeats are late, a server that has lost a part does not have it again, or
takes what was acknowledged with it on all three (docs/guarantees.md, what is not promised).
"""

from typing import Final

import pytest

from tests.faults import servers
from tests.faults.servers import Servers
from tests.faults.stores import cut, emptied, stores_harmed

pytestmark = [pytest.mark.whole_faults, pytest.mark.timeout(600)]

SHARES: Final = (0.0, 0.02, 0.3, 1.0)
"""Of the newest block, that are cut: one byte, the last message, many, all."""


async def test_each_of_three_servers_loses_more_or_less_of_its_newest_block(cluster: Servers) -> None:
    await stores_harmed(cluster, [cut(share) for share in SHARES for _ in servers.NAMES])


async def test_each_of_three_servers_begins_with_an_empty_store(cluster: Servers) -> None:
    await stores_harmed(cluster, [emptied for _ in servers.NAMES])
