"""What a service holds, compared with a fresh listing of the stream while the service goes on.

Both are compared at one position: nothing that either reads lies between them. The listing costs the server
and this process what a restart costs, and memory for a second view; there is one at a time.
"""

from typing import Final, Protocol

import anyio
import anyio.to_thread

from podyard.bus.connection import Bus
from podyard.cluster import comparing
from podyard.cluster.comparing import Contents, Differences, Held
from podyard.cluster.view import ClusterView
from podyard.shell.informer import Followed, Informer
from podyard.shell.set_aside import SetAside
from podyard.shell.snapshot import running

LISTED_WITHIN_S: Final = 120.0
MET_WITHIN_S: Final = 30.0
"""How long is waited for a moment at which both have read the same."""
LOOK_EVERY_S: Final = 0.02


class Holder(Protocol):
    """A service, as far as it is compared."""

    @property
    def view(self) -> ClusterView | None:
        """What it reads into; None: it reads nothing now."""
        ...

    @property
    def followed(self) -> Followed:
        """Which subjects it reads."""
        ...

    def held(self, view: Contents) -> Held | None:
        """What it holds with this view; None: it is in the middle of something, ask again."""
        ...


class NotComparedError(Exception):
    """Why there is nothing to be said, as a sentence."""


async def differences(bus: Bus, holder: Holder, *, service: str, aside: SetAside | None = None) -> Differences:
    """In what `holder` differs from the stream.

    :param service: whose dead letters unreadable versions become
    :param aside: what the service's own reading sets aside
    :raises NotComparedError: if it holds nothing, or the two do not meet in time
    """
    if holder.view is None:
        raise NotComparedError("it reads nothing now: it stands by, or is starting")
    fresh = ClusterView()
    informer = Informer(bus, fresh, holder.followed, service=service, aside=aside)
    both: tuple[Contents, Held] | None = None
    try:
        with anyio.fail_after(LISTED_WITHIN_S):
            async with running(informer):
                both = await _met(fresh, holder)
    except TimeoutError:
        raise NotComparedError(f"the stream was not listed within {LISTED_WITHIN_S:g} s") from None
    if both is None:
        raise NotComparedError(f"the cluster changes too fast: both never had read the same for {MET_WITHIN_S:g} s")
    return await anyio.to_thread.run_sync(comparing.compare, *both)


async def _met(fresh: ClusterView, holder: Holder) -> tuple[Contents, Held] | None:
    """Both sides of one position; None if there was no such moment in time."""
    with anyio.move_on_after(MET_WITHIN_S):
        while True:
            view = holder.view
            if view is not None and have_read_the_same(fresh, view):
                held = holder.held(comparing.contents(view))
                if held is not None:
                    return comparing.contents(fresh), held
            await anyio.sleep(LOOK_EVERY_S)
    return None


def have_read_the_same(one: ClusterView, other: ClusterView) -> bool:
    """Whether neither has read anything that the other has not got to."""
    return max(one.folded, other.folded) <= min(one.position, other.position)
