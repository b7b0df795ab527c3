"""Why pods are not scheduled, brought into the order of CLUSTER: out of the records of attempts, which lie in
another stream. So a watch tells of it as of any other change, with a version to go on from.

Any number of instances do the same: each write is a compare-and-set, and what is stored already is not
written again.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import structlog

from podyard.bus import Bus
from podyard.bus.errors import BusError, Conflict
from podyard.bus.outgoing import Outgoing
from podyard.kube_api.core import relisting
from podyard.kube_api.core.event_telling import FailedAttempt
from podyard.kube_api.core.store import Store
from podyard.proto import codec, subjects
from podyard.proto.facts import PodScheduledFact
from podyard.telling.events import FAILURES
from podyard.telling.pod_conditions import NOTHING, reason_of

REACH_S: Final = 10.0
"""How long the pod of a record is awaited."""
AGAIN_S: Final = 1.0
"""Before what could not be written is written again."""


class Unscheduled:
    """Takes records and writes facts. Owned by the task that runs `run`."""

    def __init__(
        self,
        bus: Bus,
        store: Store,
        reached: Callable[[int], Awaitable[None]],
        log: structlog.stdlib.BoundLogger,
    ) -> None:
        """:param reached: awaits that the store has come to a position"""
        self._bus = bus
        self._store = store
        self._reached = reached
        self._log = log
        self._records: dict[str, FailedAttempt] = {}
        """The last that is not done with, by uid."""
        self._some = anyio.Event()

    async def run(self) -> None:
        """For ever."""
        while True:
            await self._some.wait()
            self._some = anyio.Event()
            records, self._records = self._records, {}
            for record in records.values():
                await self._tell(record)
            for pod in list(self._store.settled.values()):
                await self._take_back(pod)

    def attempted(self, record: FailedAttempt) -> None:
        """An attempt that did not bind; of those of one pod the last counts."""
        if record.outcome in FAILURES:
            self._records[record.uid] = record
            self._some.set()

    def look(self) -> None:
        """Something changed in the store."""
        if self._store.settled:
            self._some.set()

    async def _tell(self, record: FailedAttempt) -> None:
        with anyio.move_on_after(REACH_S):
            await self._reached(record.position)
        if not relisting.is_pending(self._store.objects.view, record.uid):
            return
        known = self._store.objects.evidence.get(record.uid, NOTHING).refusal
        reason = reason_of(record.outcome)
        if known is not None and (known.reason, known.message) == (reason, record.message):
            return
        fact = PodScheduledFact(
            namespace=record.namespace,
            name=record.name,
            uid=record.uid,
            reason=reason,
            message=record.message,
            since=record.at if known is None else known.since,
        )
        subject = subjects.pod_scheduled(record.namespace, record.name, record.uid)
        expect = self._store.refusals.get(record.uid, 0)
        if not await self._write(Outgoing(subject, codec.encode(fact), expect=expect)):
            self._records.setdefault(record.uid, record)

    async def _take_back(self, pod: subjects.PodSubject) -> None:
        subject = subjects.pod_scheduled(*pod)
        expect = self._store.refusals.get(pod.uid, 0)
        self._store.settled.pop(pod.uid, None)
        if not await self._write(Outgoing(subject, b"", expect=expect, deleted=True, expires=True)):
            self._store.settled[pod.uid] = pod

    async def _write(self, message: Outgoing) -> bool:
        """Whether it is done with: another instance may have been faster."""
        try:
            await self._bus.publish(message)
        except Conflict:
            return True
        except BusError as error:
            self._log.warning("not told yet why a pod is not scheduled", subject=message.subject, reason=str(error))
            await anyio.sleep(AGAIN_S)
            self._some.set()
            return False
        return True
