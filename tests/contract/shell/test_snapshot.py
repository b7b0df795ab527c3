"""A listing of the cluster: how long it may last, and that it leaves nothing behind when it is over."""

import gc
import time
import weakref
from typing import Final

import anyio
import pytest

from podyard.bus import Bus
from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change
from podyard.cluster.documents import DocumentView
from podyard.cluster.intents import Author
from podyard.cluster.keys import ObjectKey
from podyard.proto import subjects
from podyard.shell import writes
from podyard.shell.informer import Informer
from podyard.shell.snapshot import listed_into, snapshot
from tests.support.objects import pod

SILENCE_S: Final = 0.05


async def test_a_listing_that_is_over_is_forgotten(bus: Bus) -> None:
    seen: list[weakref.ref[object]] = []
    for _ in range(3):
        seen.append(weakref.ref(await snapshot(bus)))
        await anyio.sleep(0.05)  # what was cancelled comes to its end
    gc.collect()
    assert [one() for one in seen] == [None] * 3


class Slow(DocumentView):
    """Takes its time for each delivery."""

    def apply(self, delivery: Delivery) -> list[Change]:
        until = time.monotonic() + SILENCE_S / 2
        while time.monotonic() < until:
            pass
        return super().apply(delivery)


async def test_a_long_listing_goes_on_as_long_as_something_comes(bus: Bus) -> None:
    pods = [ObjectKey("pods", "default", f"p{number}") for number in range(12)]
    for key in pods:
        await writes.create(bus, key, pod(key.name), Author("test"))
    view = Slow()
    await listed_into(bus, view, (subjects.OBJECTS_WITHOUT_FACTS,), silence_s=SILENCE_S)
    assert {*view.keys("pods")} == {*pods}


async def test_a_listing_of_which_nothing_comes_ends(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Informer, "run", lambda self: anyio.sleep_forever())
    with pytest.raises(TimeoutError, match=r"nothing came for 0\.05 s"):
        await snapshot(bus, silence_s=SILENCE_S)


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
