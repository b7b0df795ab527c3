"""The configuration of a cluster: three servers of one trust boundary, one of them killed."""

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from podyard.bus import Bus, EmbeddedServer, Outgoing, connect, embedded_server
from podyard.bus.errors import BusError
from podyard.cli.security import directory, identities, mirrors
from podyard.runtime import ports
from tests.contract.security.visitors import AGENTS
from tests.support.waiting import eventually

NAMES = ("nats-1", "nats-2", "nats-3")
WITHIN_S = 30.0


def settings(security: Path, name: str, routes: dict[str, int]) -> dict[str, Any]:
    """What `podyard security init` wrote for a server, with the places of this machine: all of them have one
    address here."""
    written = json.loads(
        (security / "server" / f"cluster-{name}.conf").read_text().replace("/etc/nats", str(security / "server"))
    )
    for ours in ("port", "http"):
        del written[ours]
    del written["jetstream"]["store_dir"]
    others = [f"nats://127.0.0.1:{port}" for other, port in routes.items() if other != name]
    written["cluster"] |= {"host": "127.0.0.1", "port": routes[name], "routes": others}
    return written


@pytest.mark.timeout(180)
async def test_three_servers_keep_the_boundary_over_the_loss_of_one(tmp_path: Path):
    security = tmp_path / "security"
    directory.create(security, identities.all_identities(AGENTS), cluster=NAMES)
    routes = dict(zip(NAMES, ports.free_ports(3), strict=True))
    async with AsyncExitStack() as stack:
        servers: dict[str, EmbeddedServer] = {}
        for name in NAMES:
            started = embedded_server(tmp_path / name, settings=settings(security, name, routes))
            servers[name] = await stack.enter_async_context(started)
        urls = tuple(server.url for server in servers.values())
        with anyio.fail_after(60):
            await mirrors.bootstrap(security, urls, replicas=3)
        agent = directory.bus_settings(security, directory.named("agent-rack1", AGENTS), urls)
        async with connect(agent) as bus:
            await published(bus, "cluster.podstatus.node-1.default.web.u1")
            await mirrored(bus, "cluster.podstatus.node-1.default.web.u1")
            with pytest.raises(BusError):
                await bus.publish(Outgoing("cluster.podstatus.node-2.default.web.u1", b"{}"), timeout_s=1)
            assert await bus.get("CLUSTER", "cluster.podstatus.node-2.default.web.u1") is None
            await servers[NAMES[0]].kill()
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
