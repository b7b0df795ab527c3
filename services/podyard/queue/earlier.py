"""What earlier leaders left on the bus: the last record of each pod's attempts, and nomination facts."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import anyio
import structlog

from podyard.bus import Bus, Delivery, WatchSpec
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import Nomination
from podyard.proto.placement import BoundPod, Release

MOST_DIGITS: Final = 18
"""Of an epoch in an attempt's id: any such number is an int64."""


class Earlier(NamedTuple):
    """`records`: by uid, the last of each pod. `nominated`: pods (namespace, name, uid) with a nomination
    fact. `epoch`: the highest one that a record or nomination names."""

    records: dict[str, AttemptRecord]
    nominated: tuple[subjects.PodSubject, ...]
    epoch: int = 0


def epoch_above(lease_epoch: int, found: Earlier, placements: Iterable[BoundPod | Release], known: int = 0) -> int:
    """A new leader's epoch: the lease's, but above all that earlier leaders are known to have had.

    The lease's epoch begins anew when the stream LEASES is made again, and schedulers never listen to a lower
    one than they know.

    :param placements: of the view: bindings name the attempts that made them
    :param known: the highest of which schedulers told this process
    """
    bound = max((_epoch_of(one.attempt) for one in placements if isinstance(one, BoundPod)), default=0)
    return max(lease_epoch, 1 + max(found.epoch, bound, known))


def _epoch_of(attempt: str) -> int:
    """Of an attempt's id, `<epoch>-<n>`; 0 for what is none."""
    epoch = attempt.partition("-")[0]
    return int(epoch) if epoch.isdecimal() and len(epoch) <= MOST_DIGITS else 0


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
    epochs = [_epoch_of(record.attempt) for record in records.values()]
    epochs += [_nomination_epoch(found.payload) for found in nominations.values()]
    return Earlier(records, nominated, max(epochs, default=0))


def _nomination_epoch(payload: bytes) -> int:
    """Of a nomination, or of the marker in its place; 0 if it cannot be read."""
    try:
        return codec.decode(Nomination, payload).epoch
    except MessageError:
        return 0


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
