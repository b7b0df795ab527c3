"""What takes long to start, started once for many tests; another one after a test that failed on it.

labs = Lasting(lambda: stand(directories.mktemp("lab")))   # in a fixture of the package: await labs.end()
async with labs.lent(request) as lab:                      # in a fixture of each test
    yield lab

A conftest that lends imports the hook `pytest_runtest_makereport`, so that a fixture knows that its test
failed, and calls `in_one_loop` in `pytest_collection_modifyitems`, so that what lasts is attended to whatever
test runs.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

import pytest
import pytest_asyncio

from tests.support.holding import held

T = TypeVar("T")
_FAILED: Final = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember it if a phase of the test failed."""
    report = yield
    item.stash[_FAILED] = failed(item) or report.failed
    return report


def failed(item: pytest.Item) -> bool:
    """Whether the test has failed so far."""
    return item.stash.get(_FAILED, False)


def in_one_loop(items: Iterable[pytest.Item], folder: Path) -> None:
    """Let all asynchronous tests of a folder run in the session's event loop: others stand still
    meanwhile."""
    for item in items:
        if folder in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


class Lasting(Generic[T]):
    """Keeps one of it. Its owner ends it."""

    def __init__(self, start: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._start = start
        self._stack = AsyncExitStack()
        self._kept: T | None = None
        self._spoilt = False

    @asynccontextmanager
    async def lent(self, request: pytest.FixtureRequest) -> AsyncGenerator[T]:
        """The one that there is, or a new one.

        Nobody gets it again if the test fails, or the block, which prepares it and clears up.
        """
        if self._spoilt:
            await self.end()
        if self._kept is None:
            self._kept = await self._stack.enter_async_context(held(self._start()))
        self._spoilt = True
        yield self._kept
        self._spoilt = failed(request.node)

    async def end(self) -> None:
        """End the one that there is."""
        stack, self._stack = self._stack, AsyncExitStack()
        self._kept, self._spoilt = None, False
        await stack.aclose()
