"""One stack for tests of services, one cluster for tests of NATS; another one after a test that failed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from podyard.bus import connect, ensure_streams
from tests.e2e.stage import jetstream
from tests.faults.servers import Servers, three_servers
from tests.faults.stage import Stage, staged
from tests.support import lasting
from tests.support.lasting import Lasting, in_one_loop

pytest_runtest_makereport = lasting.pytest_runtest_makereport


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    in_one_loop(items, Path(__file__).parent)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def stages(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lasting[Stage]]:
    """Where tests get their stack from."""
    found = Lasting(lambda: staged(tmp_path_factory.mktemp("stage")))
    yield found
    await found.end()


@pytest_asyncio.fixture(loop_scope="session")
async def stage(stages: Lasting[Stage], request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """A stack that works."""
    async with stages.lent(request) as found:
        await found.revive()
        found.test = request.node.nodeid
        yield found


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def clusters(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lasting[Servers]]:
    """Where tests get their three servers from."""
    found = Lasting(lambda: three_servers(tmp_path_factory.mktemp("servers")))
    yield found
    await found.end()


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(clusters: Lasting[Servers], request: pytest.FixtureRequest) -> AsyncIterator[Servers]:
    """Three servers that run, with empty streams of three replicas."""
    async with clusters.lent(request) as nats:
        for name, server in nats.by_name.items():
            if not server.pid:
                await server.start()
            await nats.healthy(name)
        async with connect(nats.settings("preparing")) as bus:
            for stream in (await jetstream(bus, "STREAM.NAMES"))["streams"] or ():
                await jetstream(bus, f"STREAM.DELETE.{stream}")
            await ensure_streams(bus, replicas=len(nats.by_name))
        yield nats
