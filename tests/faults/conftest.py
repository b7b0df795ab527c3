"""One stack for all tests of services, another one after a test that failed."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.e2e.stage import held
from tests.faults.stage import Stage, staged


class Stages:
    """The stack that the next test gets."""

    def __init__(self, directories: pytest.TempPathFactory) -> None:
        self._directories = directories
        self._stack = AsyncExitStack()
        self._stage: Stage | None = None

    async def usable(self) -> Stage:
        """The stack that there is, or a new one."""
        if self._stage is None or self._stage.broken:
            await self.end()
            self._stage = await self._stack.enter_async_context(held(staged(self._directories.mktemp("stage"))))
        return self._stage

    async def end(self) -> None:
        """End the stack that there is."""
        self._stage = None
        await self._stack.aclose()
        self._stack = AsyncExitStack()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stages(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stages]:
    """Where tests get their stack from."""
    found = Stages(tmp_path_factory)
    yield found
    await found.end()


@pytest_asyncio.fixture(loop_scope="session")
async def stage(stages: Stages, request: pytest.FixtureRequest) -> Stage:
    """A stack that works; tests that use it say `pytest.mark.asyncio(loop_scope="session")`."""
    found = await stages.usable()
    found.test = request.node.nodeid
    return found
