"""One reign: from getting the lease to losing it. Feeds the core and carries out what it wants.

Everything is listed anew: counts come from what is there, whatever the leader before had in mind.
"""

import random
import uuid
from collections.abc import Sequence
from typing import Final

import anyio

from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change
from podyard.cluster.informer import Informer, with_placements
from podyard.cluster.keys import ObjectKey
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent
from podyard.runtime.service import Service
from podyard.shell import causes
from podyard.shell.boundary import Boundary
from podyard.shell.driver import Driver
from podyard.workloads.core import actions
from podyard.workloads.core.actions import Effect, Failed, Message, Work
from podyard.workloads.core.controller import POLL_S, Workloads
from podyard.workloads.core.templates import Maker
from podyard.workloads.instruments import Instruments
from podyard.workloads.reader import ViewLookup, WorkloadsView, regarded
from podyard.workloads.settings import WorkloadsSettings
from podyard.workloads.writer import Writer

VIEW_CHECK: Final = "view"
WRITES_CHECK: Final = "writes"
"""Not ready while what was written last is not settled: no room in the stream, or NATS silent."""
FLOOR_S: Final = 0.001
"""What is due within so short a time is looked at together."""
FOLLOWED: Final = with_placements((subjects.OBJECTS_WITHOUT_FACTS, subjects.ALL_POD_STATUS, subjects.ALL_NODE_STATUS))


MOST_MESSAGE: Final = 1024
"""Characters of an event's message: as many as Kubernetes keeps. Source: pkg/apis/core/validation/events.go, NoteLengthLimit."""


class Reign:
    """Owned by the task that runs `run`; the informer's callbacks run on the same event loop."""

    def __init__(self, service: Service[WorkloadsSettings], instruments: Instruments, boundary: Boundary) -> None:
        self._service = service
        self._boundary = boundary
        self._now = service.clock.now
        self._instruments = instruments
        self._view = WorkloadsView()
        maker = Maker(ViewLookup(self._view.documents), lambda: str(uuid.uuid4()), random.Random())
        self.core = Workloads(self._view.cluster, self._view.documents, maker)
        self._writer = Writer(service.bus, self._view, self._on_writes, self._now)
        self.informer = Informer(
            service.bus,
            self._view,
            FOLLOWED,
            service=service.name,
            on_changes=self._on_changes,
            on_listed=self._on_listed,
            on_contact=self._on_contact,
            on_unreadable=self._on_unreadable,
            aside=boundary.aside,
        )
        self._tasks = anyio.create_task_group()
        self._driver: Driver[Message, Effect] = Driver(
            self.core,
            now=self._now,
            carry_out=self._carry_out,
            failed=self._failed,
            tick=actions.Tick(),
            wake_at=self._due,
            floor_s=FLOOR_S,
        )

    async def run(self, epoch: int) -> None:
        """Lead until cancelled, or until the core has raised."""
        self._service.log.info("leads", epoch=epoch)
        self._service.health.set_ready(VIEW_CHECK, False, "listing the cluster")
        self._instruments.leading.set(1)
        try:
            async with self._tasks:
                self._tasks.start_soon(self._driver.keep_time)
                self._tasks.start_soon(self.informer.run)
        finally:
            self._driver.end()
            self._service.health.remove(WRITES_CHECK)
            self._instruments.leading.set(0)

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Work():
                    self._instruments.work(effect)
                    self._tasks.start_soon(self._write, effect)
                case Failed():
                    self._report(effect)

    def _failed(self, message: Message, error: Exception) -> None:
        """The core raised: the term ends, without what it was told."""
        self._boundary.raised(self._cause(message), error)
        self._tasks.cancel_scope.cancel()

    def _cause(self, message: Message) -> causes.Cause:
        found = None
        if isinstance(message, actions.Changed):
            found = causes.of(message.changes, self.informer.delivery, self._view.cluster.version_of)
        return found or causes.unknown(type(message).__name__)

    def _due(self) -> float:
        due = self.core.wake_at
        return min(due, self._now() + POLL_S) if self.core.waits_for_view else due

    async def _write(self, work: Work) -> None:
        done = await self._writer.carry_out(work)
        if done.failures:
            self._instruments.failed(work.owner.resource, len(done.failures))
            self._service.log.warning(
                "could not be written", object=str(work.owner), failures=len(done.failures), first=done.failures[0]
            )
        self._driver.step(done)

    def _report(self, failed: Failed) -> None:
        """Tell the log, and whoever looks at the object's events."""
        self._instruments.failed(failed.owner.resource)
        self._service.log.warning(
            "cannot do its work", object=str(failed.owner), reason=failed.reason, detail=failed.detail
        )
        self._announce(failed.owner, failed.reason, failed.detail)

    def _announce(self, key: ObjectKey, reason: str, message: str) -> None:
        event = K8sEvent(
            regarding=ObjectRef(resource=key.resource, namespace=key.namespace, name=key.name),
            type="Warning",
            reason=reason,
            message=message,
            reporter=self._service.name,
            at=self._now(),
        )
        self._service.bus.send(subjects.k8s_event(key.namespace, key.resource, key.name), codec.encode(event))

    def _on_unreadable(self, delivery: Delivery, reason: str) -> None:
        """An object, or what others say about one, cannot be read: told on the object, where people look."""
        key = regarded(delivery.subject)
        if key is not None:
            message = f"{delivery.subject} (sequence {delivery.sequence}) cannot be read: {reason}"
            self._announce(key, "Unreadable", message[:MOST_MESSAGE])

    def _on_changes(self, changes: list[Change]) -> None:
        self._driver.step(actions.Changed(causes.told(changes, self.informer.delivery)))

    def _on_listed(self, reason: str) -> None:
        del reason
        self._driver.step(actions.Listed())

    def _on_contact(self, fresh: bool) -> None:
        self._service.health.set_ready(VIEW_CHECK, fresh, "" if fresh else "nothing heard of the cluster for 2 s")

    def _on_writes(self, trouble: str) -> None:
        self._service.health.set_ready(WRITES_CHECK, not trouble, trouble)
