"""Everything the services store, as it comes, and waiting until it shows something."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar, cast

import anyio
import msgspec

from podyard.bus import Bus, Delivery, WatchSpec
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.proto import codec, streams, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.operations import K8sEvent
from podyard.proto.requeues import RequeueRecord
from podyard.shell.informer import Informer, with_placements

T = TypeVar("T")
READER: Final = "demo"


class NotSeenError(Exception):
    """What a step waits for was not stored in time. `what` says it in words."""

    def __init__(self, what: str, within_s: float) -> None:
        self.what = what
        super().__init__(f"not seen within {within_s:.0f} s: {what}")


class Evidence:
    """The cluster as the CLUSTER stream tells it, and all records, in the order in which they were stored."""

    def __init__(self) -> None:
        self.view = ClusterView()
        self.requeues: list[RequeueRecord] = []
        self.attempts: list[AttemptRecord] = []
        self.events: list[K8sEvent] = []
        self._changed = anyio.Event()

    def pods(self, app: str) -> list[PodView]:
        """Living pods with the label `app`, by name."""
        found = [pod for pod in self.view.pods.values() if pod.labels.get("app") == app and not pod.gone]
        return sorted(found, key=lambda pod: pod.name)

    def running(self, app: str) -> list[PodView]:
        """Those of them that their agent runs."""
        return [
            pod
            for pod in self.pods(app)
            if pod.status is not None and pod.status.phase == "Running" and not pod.deleting
        ]

    def forget_records(self) -> None:
        """Begin anew with records; what the cluster is like stays."""
        for records in (self.requeues, self.attempts, self.events):
            records.clear()

    def note(self) -> None:
        """Something was stored: look again."""
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, what: str, question: Callable[[], T | None], within_s: float) -> T:
        """The first answer of `question` that is not None or empty, asked again whenever something is stored.

        :param what: what is waited for, in words
        :raises NotSeenError: if there is none in time
        """
        with anyio.move_on_after(within_s):
            while True:
                changed = self._changed
                if answer := question():
                    return answer
                await changed.wait()
        raise NotSeenError(what, within_s)


class _RecordSink:
    """Appends the records of a stream to a list; a relisting does not repeat them."""

    def __init__(self, evidence: Evidence, message: type[msgspec.Struct], records: list[msgspec.Struct]) -> None:
        self._evidence = evidence
        self._message = message
        self._records = records
        self._last = 0

    def listing(self, target: int, reason: str) -> None: ...

    def deliver(self, delivery: Delivery) -> None:
        if delivery.sequence > self._last:
            self._last = delivery.sequence
            self._records.append(codec.decode(self._message, delivery.payload))
            self._evidence.note()

    def synced(self, position: int) -> None: ...

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...


@asynccontextmanager
async def gather(bus: Bus) -> AsyncGenerator[Evidence]:
    """Follow everything that is stored, from before the first action to the end of the block."""
    evidence = Evidence()
    informer = Informer(
        bus,
        evidence.view,
        with_placements([subjects.ALL_OBJECTS]),
        service=READER,
        on_changes=lambda _changes: evidence.note(),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        for stream, message, records in (
            (streams.REQUEUES, RequeueRecord, evidence.requeues),
            (streams.DECISIONS, AttemptRecord, evidence.attempts),
            (streams.K8SEVENTS, K8sEvent, evidence.events),
        ):
            spec = WatchSpec(stream=stream.name, list_subjects=stream.subjects, follow_subjects=stream.subjects)
            sink = _RecordSink(evidence, message, cast("list[msgspec.Struct]", records))
            tasks.start_soon(bus.watch(spec, sink).run)
        await informer.synced()
        yield evidence
        tasks.cancel_scope.cancel()
