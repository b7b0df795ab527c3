"""One term of scheduling: a core with its view and its links, until it is cancelled or the core has raised."""

import gc
import time
from collections.abc import Mapping

import anyio

from podyard.bus import Delivery, Request
from podyard.cluster.changes import Change
from podyard.cluster.informer import Informer, base_subjects
from podyard.cluster.view import ClusterView
from podyard.configuration.model import Configuration
from podyard.extenders import ExtenderClients, described
from podyard.framework.event_registry import followed_by
from podyard.framework.profile import Profile
from podyard.proto import codec, subjects
from podyard.runtime.service import Service
from podyard.scheduler.bind_link import BindLink
from podyard.scheduler.core.messages import BindAnswered, Changed, Message
from podyard.scheduler.core.scheduler import Scheduler
from podyard.scheduler.engine import Engine
from podyard.scheduler.extender_link import ExtenderLink
from podyard.scheduler.instruments import Instruments
from podyard.scheduler.preemption_link import PreemptionLink
from podyard.scheduler.queue_link import QueueLink
from podyard.scheduler.record_link import RecordLink
from podyard.scheduler.settings import SchedulerSettings
from podyard.shell import causes
from podyard.shell.boundary import Boundary

VIEW_CHECK = "view"


class Term:
    """All of it is made new for each: what a term before it assumed ends with its session."""

    def __init__(
        self,
        service: Service[SchedulerSettings],
        configuration: Configuration,
        profiles: Mapping[str, Profile],
        instruments: Instruments,
        boundary: Boundary,
        session: str,
    ) -> None:
        """:param session: unique to this term"""
        settings = service.settings
        self._service = service
        self._boundary = boundary
        self._view = ClusterView()
        self._core = Scheduler(
            profiles,
            self._view,
            session,
            stopwatch=time.perf_counter,
            extenders=described(configuration.extenders),
        )
        self._engine = Engine(
            self._core,
            now=service.clock.now,
            failed=self._failed,
            spans=service.spans,
            instruments=instruments,
            slice_s=settings.slice_s,
            most_under_way=settings.most_under_way,
        )
        watched = followed_by(profiles.values(), extenders=bool(configuration.extenders))
        self._informer = Informer(
            service.bus,
            self._view,
            base_subjects(*map(subjects.objects, watched)),
            service=service.name,
            on_changes=self._on_changes,
            on_listed=self._engine.on_listed,
            on_contact=self._on_contact,
            aside=boundary.aside,
        )
        self._tasks = anyio.create_task_group()
        bus, engine, health, log = service.bus, self._engine, service.health, service.log
        digests = {name: profile.digest for name, profile in profiles.items()}
        self._queue = QueueLink(
            bus, engine, digests, settings, session=session, health=health, instruments=instruments, log=log
        )
        self._binder = BindLink(bus, engine, health=health, instruments=instruments, log=log)
        self._records = RecordLink(bus, engine, instruments=instruments, log=log)
        self._preemptions = PreemptionLink(
            bus,
            engine,
            self._queue,
            self._view,
            now=service.clock.now,
            spans=service.spans,
            instruments=instruments,
            log=log,
        )

    async def run(self, clients: ExtenderClients) -> None:
        """Follow the cluster, then schedule; returns when the core has raised."""
        self._service.health.set_ready(VIEW_CHECK, False, "listing the cluster")
        async with self._tasks as tasks:
            tasks.start_soon(self._informer.run)
            await self._informer.synced()
            gc.collect()
            gc.freeze()  # what was listed lives long: full collections need not walk it
            tasks.start_soon(self._engine.work, self._informer)
            tasks.start_soon(self._queue.send_results)
            tasks.start_soon(self._queue.heartbeat)
            tasks.start_soon(self._binder.run, self._service.settings.bind_requests)
            tasks.start_soon(self._records.run)
            tasks.start_soon(self._preemptions.run)
            tasks.start_soon(ExtenderLink(self._engine, clients, self._core.nodes).run)
            tasks.start_soon(self._queue.pop)

    def _on_contact(self, fresh: bool) -> None:
        self._service.health.set_ready(VIEW_CHECK, fresh, "" if fresh else "nothing heard of the cluster for 2 s")

    def _on_changes(self, changes: list[Change]) -> None:
        self._engine.on_changes(causes.told(changes, self._informer.delivery))

    def _failed(self, message: Message, error: Exception) -> None:
        """The core raised: the term ends, and its session with it. The queue hands the pods out again."""
        self._boundary.raised(self._cause(message), error)
        self._tasks.cancel_scope.cancel()

    def _cause(self, message: Message) -> causes.Cause:
        attempted = self._core.attempting
        if attempted is not None:
            subject = subjects.object_(subjects.PODS, attempted.namespace, attempted.name)
            return causes.Cause(Delivery(subject, b"", self._view.version_of(subject)))
        found = None
        if isinstance(message, Changed):
            found = causes.of(message.changes, self._informer.delivery, self._view.version_of)
        elif isinstance(message, BindAnswered):
            found = causes.Cause(Request(subjects.BINDER_BIND, codec.encode(message.reply)))
        return found or causes.unknown(type(message).__name__)
