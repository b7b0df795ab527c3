"""One term of scheduling: a core with its view and its links, until it is cancelled or the core has
raised."""

import time
from collections.abc import Mapping
from typing import Final

from podyard.bus import Delivery, Request, Subscription, finish_all
from podyard.cluster.view import ClusterView
from podyard.configuration.model import Configuration
from podyard.extenders import ExtenderClients, described
from podyard.framework.event_registry import followed_by
from podyard.framework.profile import Profile
from podyard.proto import codec, subjects
from podyard.runtime.service import Service
from podyard.scheduler import attempt_records
from podyard.scheduler.bind_link import BindLink
from podyard.scheduler.core.effects import AskExtenders, Declined, Reply
from podyard.scheduler.core.messages import BindAnswered, Changed, ExtendersAnswered, Message
from podyard.scheduler.core.scheduler import Scheduler
from podyard.scheduler.debug import Shown
from podyard.scheduler.engine import Engine
from podyard.scheduler.instruments import Instruments
from podyard.scheduler.preemption_link import PreemptionLink
from podyard.scheduler.questions import Questions
from podyard.scheduler.queue_link import QueueLink
from podyard.scheduler.settings import SchedulerSettings
from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.debugging import debugging_of
from podyard.shell.event_recorder import Recorder
from podyard.shell.informer import base_subjects
from podyard.shell.reading import Reading
from podyard.shell.records import Records

END_WITHIN_S: Final = 2.0
"""How long the end of a term may take."""


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
        clients: ExtenderClients,
        events: Recorder,
    ) -> None:
        """:param session: unique to this term"""
        settings = service.settings
        self._service = service
        self._clients = clients
        self._events = events
        self._view = ClusterView()
        self._core = Scheduler(
            profiles,
            self._view,
            session,
            stopwatch=time.perf_counter,
            extenders=described(configuration.extenders),
            detailed=settings.spans_by_plugin and service.spans.enabled,
        )
        self._records = Records(
            service.bus, log=service.log, lost=instruments.lost_records.inc, tries=attempt_records.TRIES
        )
        self._engine = Engine(
            self._core,
            now=service.clock.now,
            boundary=boundary,
            cause=self._cause,
            ask=self._ask,
            keep=lambda record: self._records.put(attempt_records.outgoing(record)),
            tell=events.record,
            reply=self._reply,
            spans=service.spans,
            instruments=instruments,
            slice_s=settings.slice_s,
            most_under_way=settings.most_under_way,
        )
        watched = followed_by(profiles.values(), extenders=bool(configuration.extenders))
        subjects_read = base_subjects(*map(subjects.objects, watched))
        self._reading = Reading(
            service.bus,
            self._view,
            subjects_read,
            service.health,
            service=service.name,
            on_changes=self._engine.on_changes,
            on_listed=self._engine.on_listed,
            aside=boundary.aside,
            together=True,
            lasting=True,
        )
        self._questions = Questions(self._engine.step, boundary.refusal, self._reading.informer)
        self._debugging = debugging_of(service, Shown(self._core, self._view, subjects_read), boundary.aside)
        bus, engine, health, log = service.bus, self._engine, service.health, service.log
        digests = {name: profile.digest for name, profile in profiles.items()}
        self._queue = QueueLink(
            bus, engine, digests, settings, session=session, health=health, instruments=instruments, log=log
        )
        self._binder = BindLink(bus, engine, health=health, instruments=instruments, log=log)
        self._preemptions = PreemptionLink(
            bus,
            engine,
            self._queue,
            self._view,
            now=service.clock.now,
            spans=service.spans,
            instruments=instruments,
            events=events,
            log=log,
        )

    async def run(self) -> None:
        """Follow the cluster, then schedule; returns when the core has raised. The session ends with the
        term, and the queue hands the pods out again: at once after an ordered end. A core that raised leaves
        its session to die: the pod that it raised on may be among those that go back, and backs off."""
        informer = self._reading.informer
        opened: list[Subscription] = []
        try:
            async with self._engine.driver as tasks:
                tasks.start_soon(self._reading.run)
                tasks.start_soon(self._debugging.run)
                tasks.start_soon(self._engine.counting.run)
                await informer.synced()
                tasks.start_soon(self._engine.work, informer)
                tasks.start_soon(self._queue.send_results)
                tasks.start_soon(self._queue.heartbeat)
                tasks.start_soon(self._binder.run, self._service.settings.bind_requests)
                tasks.start_soon(self._records.run)
                tasks.start_soon(self._events.run)
                tasks.start_soon(self._preemptions.run)
                tasks.start_soon(self._queue.pop)
                opened.append(await self._questions.serve(self._service.endpoints))
        finally:
            self._questions.end()
            if not self._engine.driver.raised:
                await self._queue.leave()
            await finish_all(opened, END_WITHIN_S)
            await self._events.flush()

    async def _ask(self, ask: AskExtenders) -> ExtendersAnswered:
        """The core's table stands still meanwhile: extenders are told of it as it is."""
        return ExtendersAnswered(ask.ticket, await self._clients.ask(ask.calls, self._core.nodes))

    def _reply(self, effect: Reply | Declined) -> None:
        self._questions.answer(effect)

    def _cause(self, message: Message) -> Cause | None:
        if self._core.rehearsing is not None:
            return self._questions.cause(self._core.rehearsing)
        attempted = self._core.attempting
        if attempted is not None:
            subject = subjects.object_(subjects.PODS, attempted.namespace, attempted.name)
            return Cause(Delivery(subject, b"", self._view.version_of(subject)))
        if isinstance(message, Changed):
            return causes.of(message.changes, self._view.version_of)
        if isinstance(message, BindAnswered):
            return Cause(Request(subjects.BINDER_BIND, codec.encode(message.reply)))
        return None
