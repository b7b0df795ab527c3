"""The cluster as it is now: one listing, no following. For the command line and for periodic work."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from podyard.bus.connection import Bus
from podyard.cluster.view import ClusterView
from podyard.shell.folds import Beside, Folds
from podyard.shell.informer import WITH_NOMINATIONS, Followed, Informer, View


async def snapshot(
    bus: Bus,
    listed: tuple[str, ...] = WITH_NOMINATIONS.listed,
    *beside: Beside,
    service: str = "snapshot",
    timeout_s: float | None = None,
) -> ClusterView:
    """Everything that `listed` subjects (wildcards that do not overlap) hold now, joined.

    :param beside: further folds of the same listing
    :param service: whose dead letters unreadable versions become
    :param timeout_s: None waits for NATS for ever
    :raises TimeoutError: the listing was not complete in time
    """
    view = ClusterView()
    await listed_into(bus, Folds(view, *beside), listed, service=service, timeout_s=timeout_s)
    return view


async def listed_into(
    bus: Bus, view: View, listed: tuple[str, ...], *, service: str = "snapshot", timeout_s: float | None = None
) -> None:
    """Fill a view with everything that `listed` subjects hold now, once.

    :param service: whose dead letters unreadable versions become
    :raises TimeoutError: the listing was not complete in time
    """
    informer = Informer(bus, view, Followed(listed, listed), service=service)
    with anyio.fail_after(timeout_s):
        async with running(informer):
            pass


@asynccontextmanager
async def running(informer: Informer) -> AsyncGenerator[None]:
    """The informer's listing is complete, and it follows for as long as the block runs."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.synced()
        yield
        tasks.cancel_scope.cancel()
