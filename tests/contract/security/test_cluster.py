"""The configuration of a cluster: three servers of one trust boundary, one of them killed."""

from pathlib import Path

import pytest

from podyard.bus import Bus, Outgoing, connect
from podyard.bus.errors import BusError
from podyard.cli.security import directory
from tests.contract.security.servers import NAMES, cluster
from tests.contract.security.visitors import AGENTS
from tests.support.waiting import eventually

WITHIN_S = 30.0


@pytest.mark.timeout(180)
async def test_three_servers_keep_the_boundary_over_the_loss_of_one(tmp_path: Path):
    async with cluster(tmp_path) as here:
        agent = directory.bus_settings(here.security, directory.named("agent-rack1", AGENTS), here.urls)
        async with connect(agent) as bus:
            await published(bus, "cluster.podstatus.node-1.default.web.u1")
            await mirrored(bus, "cluster.podstatus.node-1.default.web.u1")
            with pytest.raises(BusError):
                await bus.publish(Outgoing("cluster.podstatus.node-2.default.web.u1", b"{}"), timeout_s=1)
            assert await bus.get("CLUSTER", "cluster.podstatus.node-2.default.web.u1") is None
            await here.servers[NAMES[0]].kill()
            await published(bus, "cluster.podstatus.node-1.default.web.u2")
            await mirrored(bus, "cluster.podstatus.node-1.default.web.u2")


async def published(bus: Bus, subject: str) -> None:
    async def stored() -> bool:
        try:
            await bus.publish(Outgoing(subject, b"{}"), timeout_s=2)
        except BusError:
            return False
        return True

    await eventually(f"{subject} is stored", stored, WITHIN_S)


async def mirrored(bus: Bus, subject: str) -> None:
    async def there() -> bool:
        try:
            return await bus.get("CLUSTER", subject) is not None
        except BusError:
            return False

    await eventually(f"{subject} is mirrored", there, WITHIN_S)
