"""The servers of a cluster are replaced one after the other under load, by another configuration: no pod is
lost, bound twice, or kept waiting."""

from pathlib import Path

import pytest

from podyard.proto import streams
from tests.faults import servers
from tests.faults.rolling import replaced_one_by_one
from tests.faults.stage import EVERYTHING, staged

MOST = 4321
"""Connections: a setting of the new configuration that can be asked for."""


@pytest.mark.whole_faults
@pytest.mark.timeout(400)
async def test_one_server_after_the_other_gets_another_configuration_under_load(tmp_path: Path) -> None:
    async with servers.three_servers(tmp_path / "nats") as nats:
        ports = [server.port for server in nats.by_name.values()]
        assert [await nats.variable(name, "max_connections") for name in nats.by_name] != [MOST] * len(ports)
        async with staged(
            tmp_path, EVERYTHING, servers=ports, replicas=len(ports), lease_ttl_s=streams.LEASE_TTL_S
        ) as stage:
            starts = [process.starts for process in stage.processes.values()]
            await replaced_one_by_one(nats, stage, {"max_connections": MOST})
            assert [await nats.variable(name, "max_connections") for name in nats.by_name] == [MOST] * len(ports)
            assert [process.starts for process in stage.processes.values()] == starts
