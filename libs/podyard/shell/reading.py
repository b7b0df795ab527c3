"""Reading the cluster: an informer, what `/readyz` says of it, and what the garbage collector is told.

There is one sentence for a cluster of which nothing is heard, whoever reads it.
"""

import gc
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change
from podyard.runtime.health import Health
from podyard.shell.informer import Followed, Informer, View, ignore
from podyard.shell.set_aside import SetAside

CHECK: Final = "view"
LISTING: Final = "listing the cluster"
SILENT: Final = "nothing heard of the cluster for 2 s"

COLLECT_EVERY: Final = (100_000, 50, 50)
"""Thresholds of the garbage collector where what is read is kept for long, and little of it is cyclic. With
Python's own (700, 10, 10) collections cost the binder a third of its CPU time per pod, and the scheduler one
every second cycle; a full one with ten thousand pods in the queue holds all pops up for a tenth of a
second."""


class Reading:
    """One view, for as long as `run` runs. Owned by one event loop."""

    def __init__(
        self,
        bus: Bus,
        view: View,
        followed: Followed,
        health: Health,
        *,
        service: str,
        on_changes: Callable[[Sequence[Change]], None] = ignore,
        on_listed: Callable[[str], None] = ignore,
        on_contact: Callable[[bool], None] = ignore,
        on_unreadable: Callable[[Delivery, str], None] = ignore,
        aside: SetAside | None = None,
        together: bool = False,
        lasting: bool = False,
    ) -> None:
        """
        :param service: whose dead letters the unreadable versions become
        :param on_changes: called with what a delivery or a listing changed, as a core is to be told of it
        :param on_listed: called after each complete listing, after its changes, with the reason for it
        :param on_contact: called when nothing is heard of the stream any more (False), and when it is again
        :param on_unreadable: as of the informer
        :param aside: what is set aside, from one term to the next
        :param together: as of the informer
        :param lasting: what is read fills much of the process, and stays: the garbage collector looks at it
            seldom, and at what the first listing found never again
        """
        self._health = health
        self._on_listed = on_listed
        self._on_contact = on_contact
        self._lasting = lasting
        self._listed = False
        self.informer = Informer(
            bus,
            view,
            followed,
            service=service,
            on_changes=on_changes,
            on_listed=self._complete,
            on_contact=self._contact,
            on_unreadable=on_unreadable,
            aside=aside,
            together=together,
        )

    async def run(self) -> NoReturn:
        """Feed the view for ever; cancel to end it."""
        self._health.set_ready(CHECK, False, LISTING)
        if self._lasting:
            gc.set_threshold(*COLLECT_EVERY)
        try:
            await self.informer.run()
        finally:
            self._health.remove(CHECK)

    def _complete(self, reason: str) -> None:
        self._on_listed(reason)
        if self._lasting and not self._listed:
            gc.collect()
            gc.freeze()
        self._listed = True

    def _contact(self, fresh: bool) -> None:
        self._health.set_ready(CHECK, fresh, "" if fresh else SILENT)
        self._on_contact(fresh)
