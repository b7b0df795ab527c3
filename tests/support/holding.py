"""Context managers for fixtures: pytest-asyncio enters and leaves those in two tasks, cancel scopes want
one."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")
Hold = Callable[[AbstractAsyncContextManager[T]], Awaitable[T]]


@asynccontextmanager
async def held(manager: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
    """`manager`, entered and left in one task of its own."""
    end = asyncio.Event()
    entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    async def keep() -> None:
        try:
            async with manager as value:
                entered.set_result(value)
                await end.wait()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)

    keeper = asyncio.create_task(keep())
    try:
        yield await entered
    finally:
        end.set()
        await keeper


@asynccontextmanager
async def holding() -> AsyncGenerator[Hold[Any]]:
    """Gives `hold`. `await hold(manager)` enters a manager until the end of the block; the last one is left
    first."""
    async with AsyncExitStack() as stack:

        async def hold(manager: AbstractAsyncContextManager[T]) -> T:
            return await stack.enter_async_context(held(manager))

        yield hold
