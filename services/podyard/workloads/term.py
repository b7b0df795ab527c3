"""One term: from getting the lease to losing it. Feeds the core and carries out what it wants.

Everything is listed anew: counts come from what is there, whatever the leader before had in mind.
"""

import random
import uuid
from collections.abc import Sequence
from typing import Final

from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change
from podyard.cluster.documents import DocumentView, whole_kind
from podyard.cluster.intents import Written
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.proto import subjects
from podyard.proto.operations import Reason
from podyard.runtime.service import Service
from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.causes import Cause
from podyard.shell.driver import Driver
from podyard.shell.event_recorder import Recorder
from podyard.shell.reading import Reading
from podyard.shell.writes import Result
from podyard.telemetry import traceparent
from podyard.workloads import events, sync_spans
from podyard.workloads.census import Census
from podyard.workloads.core import actions
from podyard.workloads.core.actions import Ask, Count, Create, Done, Effect, Failed, Message, Told, Work, Write
from podyard.workloads.core.controller import Workloads
from podyard.workloads.core.ownership import metadata_of
from podyard.workloads.core.templates import Maker
from podyard.workloads.instruments import Instruments
from podyard.workloads.node_life import NodeLife
from podyard.workloads.reading import FOLLOWED, ViewLookup, folds, regarded
from podyard.workloads.settings import WorkloadsSettings
from podyard.workloads.writer import Writer

WRITES_CHECK: Final = "writes"
"""Not ready while what was written last is not settled: no room in the stream, or NATS silent."""
FLOOR_S: Final = 0.001
"""What is due within so short a time is looked at together."""
UNREADABLE: Final = Reason("Unreadable")
"""Of the object's event when it, or what others say about it, cannot be read."""


class Term:
    """Owned by the task that runs `run`; callbacks of what it reads run on the same event loop."""

    def __init__(
        self, service: Service[WorkloadsSettings], instruments: Instruments, boundary: Boundary, recorder: Recorder
    ) -> None:
        self._service = service
        self._events = recorder
        self._now = service.clock.now
        self._instruments = instruments
        self._view, documents = ClusterView(), DocumentView(whole_kind)
        maker = Maker(ViewLookup(documents), lambda: str(uuid.uuid4()), random.Random())
        self._core = Workloads(self._view, documents, maker, ended_kept=service.settings.terminated_pod_gc_threshold)
        trouble = service.health.trouble(WRITES_CHECK)
        self._writer = Writer(service.bus, self._view, documents, trouble, self._on_written, self._now)
        self._node_life = NodeLife(service, instruments, boundary, recorder, self._view, self._write, self._cause_of)
        self._reading = Reading(
            service.bus,
            folds(self._view, documents),
            FOLLOWED,
            service.health,
            service=service.name,
            on_changes=self._on_changes,
            on_listed=self._on_listed,
            on_contact=self._node_life.contact,
            on_unreadable=self._on_unreadable,
            aside=boundary.aside,
        )
        self._census = Census(service, instruments, boundary)
        self._driver: Driver[Message, Effect, Ask] = Driver(
            self._core,
            now=self._now,
            carry_out=self._carry_out,
            boundary=boundary,
            cause=self._cause,
            answer=self._answer,
            tick=actions.Tick(),
            wake_at=lambda: self._core.wake_at,
            floor_s=FLOOR_S,
        )

    async def run(self) -> None:
        """Lead until cancelled, or until the core has raised."""
        try:
            async with self._driver as tasks:
                tasks.start_soon(self._watch_nodes)
                tasks.start_soon(self._reading.run)
                tasks.start_soon(self._take_censuses)
                tasks.start_soon(self._events.run)
        finally:
            self._service.health.remove(WRITES_CHECK)
            await self._events.flush()

    async def _take_censuses(self) -> None:
        """Its end is that of the term: its core has raised."""
        await self._census.run()
        self._driver.end()

    async def _watch_nodes(self) -> None:
        """Its end is that of the term: its core has raised."""
        await self._node_life.run()
        self._driver.end()

    def _on_changes(self, changes: Sequence[Change]) -> None:
        self._driver.step(actions.Changed(changes))
        self._node_life.changed(changes)

    def _on_listed(self, reason: str) -> None:
        del reason
        self._driver.step(actions.Listed())
        self._node_life.listed()

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Work():
                    self._instruments.work(effect)
                    self._driver.ask(effect)
                case Count():
                    self._instruments.counted(effect)
                    self._driver.ask(effect)
                case Failed():
                    self._report(effect)
                case Told():
                    self._tell(effect)

    def _cause(self, message: Message) -> Cause | None:
        return self._cause_of(message.changes) if isinstance(message, actions.Changed) else None

    def _cause_of(self, changes: Sequence[Change]) -> Cause | None:
        return causes.of(changes, self._view.version_of)

    async def _answer(self, ask: Ask) -> Done:
        return self._noted(await self._writer.count(ask)) if isinstance(ask, Count) else await self._write(ask)

    async def _write(self, work: Work) -> Done:
        spans, started = self._service.spans, self._now()
        trace = sync_spans.trace_of(spans, work)
        done = await self._writer.carry_out(work, trace)
        if trace:
            sync_spans.done(spans, work, done, trace, started, self._now())
        return self._noted(done, trace)

    def _noted(self, done: Done, trace: str = "") -> Done:
        if done.failures:
            self._instruments.failed(done.owner.resource, len(done.failures))
            self._service.log.warning(
                "could not be written",
                object=str(done.owner),
                failures=len(done.failures),
                first=done.failures[0],
                **traceparent.told(trace),
            )
        return done

    def _report(self, failed: Failed) -> None:
        """Tell the log, and whoever looks at the object's events."""
        self._instruments.failed(failed.owner.resource)
        self._service.log.warning(
            "cannot do its work", object=str(failed.owner), reason=failed.reason, detail=failed.detail
        )
        self._events.record(
            events.told(failed.owner, self._uid(failed.owner), failed.reason, failed.detail, self._now(), warning=True)
        )

    def _tell(self, told: Told) -> None:
        owner, warning = told.owner, told.warning
        self._events.record(
            events.told(owner, self._uid(owner), told.reason, told.message, self._now(), warning=warning)
        )

    def _on_written(self, work: Work, write: Write, result: Result) -> None:
        if isinstance(write, Create) and write.key.resource == subjects.PODS and isinstance(result, Written):
            return  # what is told most often, its object tells
        for event in events.of_write(work, write, result, self._uid(work.owner), self._now()):
            self._events.record(event)

    def _uid(self, key: ObjectKey) -> str:
        """Of the object in a place; empty if none is there."""
        found = self._view.objects(key.resource).get(key.namespaced_name)
        return "" if found is None else metadata_of(found).uid

    def _on_unreadable(self, delivery: Delivery, reason: str) -> None:
        """An object, or what others say about one, cannot be read: told on the object, where people look."""
        key = regarded(delivery.subject)
        if key is not None:
            message = f"{delivery.subject} (sequence {delivery.sequence}) cannot be read: {reason}"
            self._events.record(events.told(key, "", UNREADABLE, message, self._now(), warning=True))
