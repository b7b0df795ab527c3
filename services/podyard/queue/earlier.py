"""What earlier leaders left on the bus: the last record of each pod's attempts, and nomination facts."""

from typing import NamedTuple

import anyio
import structlog

from podyard.bus import Bus, Delivery, WatchSpec
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord


class Earlier(NamedTuple):
    """`records`: by uid, the last of each pod. `nominated`: pods (namespace, name, uid) with a nomination fact."""

    records: dict[str, AttemptRecord]
    nominated: tuple[subjects.PodSubject, ...]


async def read(bus: Bus, log: structlog.stdlib.BoundLogger) -> Earlier:
    """Read both once. Waits for the streams as long as it takes; unreadable records count as none."""
    decisions = await _last_messages(bus, streams.DECISIONS.name, subjects.ALL_DECISIONS)
    nominations = await _last_messages(bus, streams.CLUSTER.name, subjects.ALL_NOMINATIONS)
    records = dict[str, AttemptRecord]()
    for subject, delivery in decisions.items():
        try:
            records[subjects.parse_pod(subject).uid] = codec.decode(AttemptRecord, delivery.payload)
        except (MessageError, ValueError) as error:
            log.warning("a record of an earlier attempt cannot be used", subject=subject, reason=str(error))
    nominated = tuple(subjects.parse_pod(subject) for subject, found in nominations.items() if not found.deleted)
    return Earlier(records, nominated)


async def _last_messages(bus: Bus, stream: str, wildcard: str) -> dict[str, Delivery]:
    """The last message of each subject, as of now."""
    collector = _Collector()
    watch = bus.watch(WatchSpec(stream=stream, list_subjects=(wildcard,), follow_subjects=(wildcard,)), collector)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        await collector.complete.wait()
        tasks.cancel_scope.cancel()
    return collector.found


class _Collector:
    """A sink that keeps the last message of each subject until the listing is complete."""

    def __init__(self) -> None:
        self.found: dict[str, Delivery] = {}
        self.complete = anyio.Event()

    def listing(self, target: int, reason: str) -> None:
        """A listing begins (again)."""
        self.found.clear()

    def deliver(self, delivery: Delivery) -> None:
        """One message; later ones of the same subject win."""
        self.found[delivery.subject] = delivery

    def synced(self, position: int) -> None:
        """The listing is complete."""
        self.complete.set()

    def advanced(self, position: int) -> None:
        """Nothing to do: only the listing counts."""

    def contact(self, fresh: bool) -> None:
        """Nothing to do: the watch itself goes on trying."""
