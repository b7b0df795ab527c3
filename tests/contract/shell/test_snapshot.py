"""A listing of the cluster leaves nothing behind when it is over."""

import gc
import weakref

import anyio
import pytest

from podyard.bus import Bus
from podyard.shell.snapshot import snapshot


async def test_a_listing_that_is_over_is_forgotten(bus: Bus) -> None:
    seen: list[weakref.ref[object]] = []
    for _ in range(3):
        seen.append(weakref.ref(await snapshot(bus)))
        await anyio.sleep(0.05)  # what was cancelled comes to its end
    gc.collect()
    assert [one() for one in seen] == [None] * 3


async def test_a_subscription_that_nobody_gets_is_closed(bus: Bus) -> None:
    class Receiver:
        def take(self, *_: object) -> None: ...

    receiver = Receiver()
    gone = weakref.ref(receiver)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await bus._link.subscribe("nobody.waits", receiver.take)
    assert scope.cancelled_caught
    del receiver
    await anyio.sleep(0.05)
    gc.collect()
    if gone() is not None:
        pytest.fail("the cancelled subscription still holds its receiver")
