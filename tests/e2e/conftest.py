"""`here`: the package's lab, empty, and a namespace in it that is the test's own."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from tests.e2e.labs import emptied, shared
from tests.e2e.stage import Stand
from tests.support import lasting
from tests.support.lasting import Lasting, failed, in_one_loop
from tests.support.otlp_sink import OtlpSink

LONGEST_NAME: Final = 63


pytest_runtest_makereport = lasting.pytest_runtest_makereport


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    in_one_loop(items, Path(__file__).parent)


@pytest.fixture(scope="package")
def sink() -> Iterator[OtlpSink]:
    """Where the package's lab sends its spans."""
    with OtlpSink() as receiver:
        yield receiver


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def labs(sink: OtlpSink, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lasting[Stand]]:
    """Where tests get their lab from."""
    found = Lasting(lambda: shared(tmp_path_factory.mktemp("lab"), sink))
    yield found
    await found.end()


@pytest_asyncio.fixture(loop_scope="session")
async def here(labs: Lasting[Stand], request: pytest.FixtureRequest) -> AsyncIterator[Stand]:
    """A lab without nodes, and a namespace in it for this test.

    What the test makes is removed at its end. If it fails, or if not everything goes, the next test gets
    another lab.
    """
    async with labs.lent(request) as lab:
        lab.seen.forget_records()
        mine = lab._replace(namespace=namespace_of(request.node.name))
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": mine.namespace}}
        await mine.do.apply([made], "a namespace of the test")
        yield mine
        if not failed(request.node):
            await emptied(mine)


def namespace_of(test: str) -> str:
    """The test's name as a namespace may be called."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower().removeprefix("test_"))
    return words[:LONGEST_NAME].strip("-")
