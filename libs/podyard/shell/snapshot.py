"""The cluster as it is now: one listing, no following. For the command line and for periodic work."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.shell.folds import Beside, Folds
from podyard.shell.informer import WITH_NOMINATIONS, Followed, Informer, View


async def snapshot(
    bus: Bus,
    listed: tuple[str, ...] = WITH_NOMINATIONS.listed,
    *beside: Beside,
    service: str = "snapshot",
    silence_s: float | None = None,
) -> ClusterView:
    """Everything that `listed` subjects (wildcards that do not overlap) hold now, joined.

    :param beside: further folds of the same listing
    :param service: whose dead letters unreadable versions become
    :param silence_s: how long nothing may come; None waits for NATS for ever. A large cluster takes its time
    :raises TimeoutError: nothing came for so long, and the listing was not complete
    """
    view = ClusterView()
    await listed_into(bus, Folds(view, *beside), listed, service=service, silence_s=silence_s)
    return view


async def listed_into(
    bus: Bus, view: View, listed: tuple[str, ...], *, service: str = "snapshot", silence_s: float | None = None
) -> None:
    """Fill a view with everything that `listed` subjects hold now, once.

    :param service: whose dead letters unreadable versions become
    :param silence_s: as of `snapshot`, which also says what is raised
    """
    told = _Told(view)
    informer = Informer(bus, told, Followed(listed, listed), service=service)
    complete = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        complete = await _complete(informer, told, silence_s)
        tasks.cancel_scope.cancel()
    if not complete:
        raise TimeoutError(f"nothing came for {silence_s} s")


class _Told(Folds):
    """Counts what a view is told."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self.deliveries = 0

    def apply(self, delivery: Delivery) -> list[Change]:
        self.deliveries += 1
        return super().apply(delivery)


async def _complete(informer: Informer, told: _Told, silence_s: float | None) -> bool:
    """Wait for the end of the listing.

    :return: False: nothing came for `silence_s`, and the listing is not complete
    """
    before = -1
    while told.deliveries > before:
        before = told.deliveries
        with anyio.move_on_after(silence_s):
            await informer.synced()
            return True
    return False


@asynccontextmanager
async def running(informer: Informer) -> AsyncGenerator[None]:
    """The informer's listing is complete, and it follows for as long as the block runs."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.synced()
        yield
        tasks.cancel_scope.cancel()
