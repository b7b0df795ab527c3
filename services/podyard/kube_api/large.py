"""Large bodies: how much of them is held at once, and threads that work on them, so that others do not wait.

What is done in a thread is pure: it takes and makes documents, and knows nothing of the store.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from podyard.kube_api.core import errors

T = TypeVar("T")

LARGE: Final = 16 * 1024
"""Bytes from which on a thread works on a body: so much JSON is read and tracked in a millisecond, so much
protobuf in seven. Most bodies are below it."""
THREADS: Final = 2
"""At once. They take turns with the event loop, as one interpreter runs one of them at a time."""
HELD_BYTES: Final = 32 * 1024 * 1024
"""Of bodies that are being worked on or wait for the api, all together: ten of the largest. What is made of
one takes some times as much."""


class LargeWork:
    """Owned by the service's event loop."""

    def __init__(self, most_bytes: int = HELD_BYTES) -> None:
        """:param most_bytes: of bodies, held at once"""
        self._most_bytes = most_bytes
        self._threads = anyio.CapacityLimiter(THREADS)
        self.held = 0
        """Bytes of bodies now."""

    @contextmanager
    def holding(self) -> Generator[Callable[[int], None]]:
        """A request that has a body, as long as the block runs; the block says how many bytes came.

        What it is given raises an `ApiError`, 429, when all requests together hold too much.
        """
        held = 0

        def more(count: int) -> None:
            nonlocal held
            if self.held + count > self._most_bytes:
                raise errors.too_many_requests("the bodies of those that are being answered are too large together")
            held += count
            self.held += count

        try:
            yield more
        finally:
            self.held -= held

    async def do(self, size: int, work: Callable[[], T]) -> T:
        """What `work` returns or raises; for something large it is done in a thread.

        :param size: bytes of what it works on
        """
        if size < LARGE:
            return work()
        return await anyio.to_thread.run_sync(work, limiter=self._threads)
