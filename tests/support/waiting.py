"""Waiting for what a test expects, with a limit: nothing sleeps for luck."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

WITHIN_S: Final = 15.0
"""Limit of a wait in this process, on a busy machine."""

LOOK_EVERY_S: Final = 0.01

T = TypeVar("T")


async def eventually(
    what: str, probe: Callable[[], Awaitable[T | None]] | Callable[[], T | None], within_s: float = WITHIN_S
) -> T:
    """What `probe` gives, as soon as that is true. A probe may be a coroutine function or a plain one.

    :param what: what is waited for, in words
    :param within_s: seconds
    :raises AssertionError: with `what`, if it is not seen in time
    """
    with anyio.move_on_after(within_s):
        while True:
            answer = probe()
            found = await answer if inspect.isawaitable(answer) else answer
            if found:
                return found
            await anyio.sleep(LOOK_EVERY_S)
    raise AssertionError(f"not seen within {within_s:g} s: {what}")
