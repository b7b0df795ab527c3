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


async def main(service: Service[QueueSettings]) -> None:
    """Follow the cluster, stand for election, lead when elected."""
    gc.set_threshold(*COLLECT_EVERY)
    configuration = files.of(service.process)
    settings = service.settings.completed(configuration)
    profiles = tuple(files.profiles(configuration, service.process).values())
    extenders = bool(configuration.extenders)
    registered = assembly.registries(profiles, extenders=extenders, own_hints=settings.own_hints)
    watched = [subjects.objects(resource) for resource in followed_by(profiles, extenders=extenders)]
    instruments = Instruments(service.metrics)
    stage, view = _Stage(service), ClusterView()
    informer = Informer(
        service.bus,
        view,
        base_subjects(*watched),
        service=service.name,
        on_changes=stage.on_changes,
        on_listed=stage.on_listed,
        on_contact=stage.on_contact,
    )

    known = 0
    """The highest epoch of which schedulers told."""

    async def lead(epoch: int) -> None:
        nonlocal known
        found = await earlier.read(service.bus, service.log)
        epoch = earlier.epoch_above(epoch, found, view.placements.values(), known)
        term = Term(service, settings, informer, view, profiles, registered, instruments, epoch, found)
        stage.term = term
        try:
            await term.run()
        finally:
            stage.term = None
            known = max(known, term.outranked_by)

    lease = service.lease(ttl_s=service.settings.lease_ttl_s)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.synced()
        gc.collect()
        gc.freeze()  # what was listed lives long: full collections need not walk it
        while True:
            await lease.lead(lead)


SERVICE = ServiceDefinition(
    name="queue",
    settings_type=QueueSettings,
    main=main,
    check=files.check,
    description="Keeps pending pods, hands them to schedulers, and retries them when an event may help",
)
