"""Things that wait to be sent, from synchronous code to the tasks that send them."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class Outbox(Generic[T]):
    """First in, first out, without a limit: who fills it looks at `len`."""

    def __init__(self) -> None:
        self._waiting: deque[T] = deque()
        self._filled = anyio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[T]:
        return iter(self._waiting)

    def put(self, item: T) -> None:
        """Add one."""
        self._waiting.append(item)
        self._filled.set()

    async def take(self, limit: int) -> list[T]:
        """Wait for at least one, take up to `limit`, oldest first."""
        while not self._waiting:
            if self._filled.is_set():
                self._filled = anyio.Event()  # all takers wait on the same one
            await self._filled.wait()
        return [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]

    async def carry_out(self, width: int, act: Callable[[T], Awaitable[None]]) -> None:
        """Do `act` with each for ever, up to `width` at once, begun oldest first."""

        async def carry_on() -> None:
            while True:
                for item in await self.take(1):
                    await act(item)

        async with anyio.create_task_group() as tasks:
            for _ in range(width):
                tasks.start_soon(carry_on)
