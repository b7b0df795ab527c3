"""The queue as a service: a view that is always warm, and one term on it whenever the lease is had."""

import anyio

from podyard.cluster.view import ClusterView
from podyard.configuration import files
from podyard.framework.event_registry import followed_by
from podyard.proto import subjects
from podyard.queue import assembly, earlier
from podyard.queue.core import messages
from podyard.queue.core.messages import Message
from podyard.queue.core.queue import Queue
from podyard.queue.debug import Shown
from podyard.queue.instruments import Instruments
from podyard.queue.settings import QueueSettings, in_force
from podyard.queue.term import Term
from podyard.runtime.service import Service, ServiceDefinition
from podyard.shell.boundary import Boundary
from podyard.shell.debugging import debugging_of
from podyard.shell.informer import base_subjects
from podyard.shell.leading import Leading
from podyard.shell.reading import Reading


class _Following:
    """One view, and the terms on it, until a core has raised: then both are made anew."""

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
        self._view = ClusterView()
        watched = [subjects.objects(resource) for resource in followed_by(self._profiles, extenders=extenders)]
        followed = base_subjects(*watched)
        self._reading = Reading(
            service.bus,
            self._view,
            followed,
            service.health,
            service=service.name,
            on_changes=lambda changes: self._tell(messages.Changed(changes)),
            on_listed=lambda reason: self._tell(messages.Listed(reason)),
            aside=boundary.aside,
            together=True,
            lasting=True,
        )
        self._term: Term | None = None
        """The one that is on."""
        names = [profile.name for profile in self._profiles]
        shown = Shown(self._view, followed, names, self._core, service.instance)
        self._debugging = debugging_of(service, shown, boundary.aside)
        self._tasks = anyio.create_task_group()
        self.known = known

    async def run(self, leading: Leading) -> None:
        """Until cancelled, or until a core has raised."""
        async with self._tasks as tasks:
            tasks.start_soon(self._reading.run)
            tasks.start_soon(self._debugging.run)
            await self._reading.informer.synced()
            await leading.run(self._lead)

    def _core(self) -> Queue | None:
        """Of the term that is on."""
        return None if self._term is None else self._term.core

    async def _lead(self, epoch: int) -> None:
        found = await earlier.read(self._service.bus, self._service.log)
        epoch = earlier.epoch_above(epoch, found, self._view.placements.values(), self.known)
        self._term = term = Term(
            self._service,
            self._settings,
            self._view,
            self._reading,
            self._profiles,
            self._registered,
            self._instruments,
            self._boundary,
            epoch,
            found,
        )
        try:
            await term.run()
        finally:
            self._term = None
            self.known = max(self.known, term.outranked_by)
        if term.raised:
            self._tasks.cancel_scope.cancel()

    def _tell(self, message: Message) -> None:
        if self._term is not None:
            self._term.tell(message)


async def main(service: Service[QueueSettings]) -> None:
    """Follow the cluster, and lead whenever the lease is ours."""
    instruments, boundary = Instruments(service.metrics, service.spans), Boundary(service)
    settings = files.leading(service.settings, files.of(service.process), service.process)
    lease = service.lease(times=settings.lease_times())
    leading = Leading(lease, service.health, service.metrics, pause=boundary.pause)
    known = 0
    while True:
        following = _Following(service, instruments, boundary, known)
        await following.run(leading)
        known = following.known
        await boundary.pause()


SERVICE = ServiceDefinition(
    name="queue",
    settings_type=QueueSettings,
    main=main,
    check=files.check_leader,
    in_force=in_force,
    description="Keeps pending pods, hands them to schedulers, and retries them when an event may help",
)
