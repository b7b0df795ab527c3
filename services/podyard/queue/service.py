"""The queue as a service: an informer that is always warm, and terms as leader whenever the lease is had."""

import gc
from typing import Final

import anyio

from podyard.cluster.changes import Change
from podyard.cluster.informer import Informer, base_subjects
from podyard.cluster.view import ClusterView
from podyard.configuration import files
from podyard.framework.event_registry import followed_by
from podyard.proto import subjects
from podyard.queue import assembly, earlier
from podyard.queue.instruments import Instruments
from podyard.queue.settings import QueueSettings
from podyard.queue.term import Term
from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell.boundary import Boundary

VIEW_CHECK = "view"


COLLECT_EVERY: Final = (100_000, 50, 50)
"""Thresholds of the garbage collector. What the queue keeps it keeps for long, and little of it is cyclic: a full collection with ten
thousand pods in the queue holds all pops up for a tenth of a second."""


class _Stage:
    """Hands what the informer says to the term that is on, if one is."""

    def __init__(self, service: Service[QueueSettings]) -> None:
        self._service = service
        self.term: Term | None = None
        service.health.set_ready(VIEW_CHECK, False, "listing the cluster")

    def on_changes(self, changes: list[Change]) -> None:
        """The view has changed."""
        if self.term is not None:
            self.term.on_changes(changes)

    def on_listed(self, reason: str) -> None:
        """The view was listed (again)."""
        if self.term is not None:
            self.term.on_listed(reason)

    def on_contact(self, fresh: bool) -> None:
        """The server is heard, or not."""
        self._service.health.set_ready(VIEW_CHECK, fresh, "" if fresh else "nothing heard of the cluster for 2 s")


class _Following:
    """A view that is always warm, and terms whenever the lease is had; until a core has raised."""

    def __init__(
        self, service: Service[QueueSettings], instruments: Instruments, boundary: Boundary, known: int
    ) -> None:
        """:param known: the highest epoch of which schedulers told"""
        configuration = files.of(service.process)
        extenders = bool(configuration.extenders)
        self._service = service
        self._instruments = instruments
        self._boundary = boundary
        self._settings = service.settings.completed(configuration)
        self._profiles = tuple(files.profiles(configuration, service.process).values())
        self._registered = assembly.registries(self._profiles, extenders=extenders, own_hints=self._settings.own_hints)
        watched = [subjects.objects(resource) for resource in followed_by(self._profiles, extenders=extenders)]
        self._stage, self._view = _Stage(service), ClusterView()
        self._informer = Informer(
            service.bus,
            self._view,
            base_subjects(*watched),
            service=service.name,
            on_changes=self._stage.on_changes,
            on_listed=self._stage.on_listed,
            on_contact=self._stage.on_contact,
            aside=boundary.aside,
        )
        self._tasks = anyio.create_task_group()
        self.known = known

    async def run(self) -> None:
        """Until cancelled, or until a core has raised."""
        lease = self._service.lease(ttl_s=self._service.settings.lease_ttl_s)
        async with self._tasks as tasks:
            tasks.start_soon(self._informer.run)
            await self._informer.synced()
            gc.collect()
            gc.freeze()  # what was listed lives long: full collections need not walk it
            while True:
                await lease.lead(self._lead)

    async def _lead(self, epoch: int) -> None:
        service = self._service
        found = await earlier.read(service.bus, service.log)
        epoch = earlier.epoch_above(epoch, found, self._view.placements.values(), self.known)
        term = Term(
            service,
            self._settings,
            self._informer,
            self._view,
            self._profiles,
            self._registered,
            self._instruments,
            self._boundary,
            epoch,
            found,
            ended=self._tasks.cancel_scope.cancel,
        )
        self._stage.term = term
        try:
            await term.run()
        finally:
            self._stage.term = None
            self.known = max(self.known, term.outranked_by)


async def main(service: Service[QueueSettings]) -> None:
    """Follow the cluster, stand for election, lead when elected; with another core and view after one that raised."""
    gc.set_threshold(*COLLECT_EVERY)
    instruments, boundary = Instruments(service.metrics), Boundary(service)
    known = 0
    while True:
        following = _Following(service, instruments, boundary, known)
        await following.run()
        known = following.known
        await boundary.pause()


SERVICE = ServiceDefinition(
    name="queue",
    settings_type=QueueSettings,
    main=main,
    check=files.check,
    description="Keeps pending pods, hands them to schedulers, and retries them when an event may help",
)
