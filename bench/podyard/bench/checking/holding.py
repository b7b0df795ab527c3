"""What a stream still holds, read for the checker."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import anyio

from podyard.bench.checking.checker import Checker, Read
from podyard.bus import Bus, Delivery, WatchSpec
from podyard.proto import streams

SPEC: Final = WatchSpec(
    stream=streams.CLUSTER.name, list_subjects=streams.CLUSTER.subjects, follow_subjects=streams.CLUSTER.subjects
)


class _Holding:
    """A sink of a watch, until it has listed."""

    def __init__(self) -> None:
        self.found: dict[int, Delivery] = {}
        self.listed = anyio.Event()

    def listing(self, target: int, reason: str) -> None:
        self.found.clear()

    def deliver(self, delivery: Delivery) -> None:
        self.found[delivery.sequence] = delivery

    def synced(self, position: int) -> None:
        self.listed.set()

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...


async def check(bus: Bus) -> Checker:
    """What the checker says of what CLUSTER holds now. Takes a while, in a thread."""
    sink = _Holding()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bus.watch(SPEC, sink).run)
        await sink.listed.wait()
        tasks.cancel_scope.cancel()
    return await anyio.to_thread.run_sync(judged, [sink.found[sequence] for sequence in sorted(sink.found)])


def judged(deliveries: Sequence[Delivery]) -> Checker:
    """The same of these messages, in their order. Pure."""
    checker = Checker(complete=False)
    checker.held(list(batches(_read(one) for one in deliveries)))
    return checker


def _read(one: Delivery) -> Read:
    return Read(one.subject, one.payload, one.sequence, one.headers, deleted=one.deleted)


def batches(reads: Iterable[Read]) -> Iterator[list[Read]]:
    """What was stored at once, together."""
    batch: list[Read] = []
    for read in reads:
        if batch and read.batch != batch[0].batch:
            yield batch
            batch = []
        batch.append(read)
        if read.ends_batch:
            yield batch
            batch = []
    if batch:
        yield batch
