"""The end of a connection, which nats-py waits for in several tasks."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from podyard.bus._link import Link
from podyard.bus.settings import BusSettings

SETTINGS = BusSettings(drain_timeout_s=0.05)


def ending_by(end: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> Link:
    link = Link(SETTINGS)
    monkeypatch.setattr(link._client, "drain", end)  # pyright: ignore[reportPrivateUsage]
    return link


async def test_what_another_task_cancelled_does_not_cancel_who_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = asyncio.get_running_loop().create_future()
    closed.cancel()

    async def end() -> None:
        await closed

    await ending_by(end, monkeypatch).drain()


async def test_a_transport_that_breaks_at_the_end_is_no_fault_of_who_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def end() -> None:
        raise BrokenPipeError

    await ending_by(end, monkeypatch).drain()


async def test_an_end_that_does_not_come_is_waited_for_so_long_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with anyio.fail_after(5):
        await ending_by(anyio.sleep_forever, monkeypatch).drain()


async def test_who_is_cancelled_while_it_ends_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    went_on = False
    with anyio.CancelScope() as scope:
        scope.cancel()
        await ending_by(anyio.sleep_forever, monkeypatch).drain()
        went_on = True
    assert not went_on
