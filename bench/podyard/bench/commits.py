"""Follows the commit records; counts until a number of pods is bound."""

from collections.abc import Callable
from typing import Final

import anyio

from podyard.bus import Bus, Delivery, WatchSpec
from podyard.proto import codec, streams, subjects
from podyard.proto.placement import CommitRecord

SUBJECTS: Final = (subjects.ALL_COMMITS,)


class CommitReader:
    """Hands on each commit record once, in order; a relisting hands on nothing twice.

    :param told: gets a record, and when the server stored it, seconds since 1970, UTC
    """

    def __init__(self, bus: Bus, told: Callable[[CommitRecord, float], None]) -> None:
        self._told = told
        self._last_n = 0
        spec = WatchSpec(stream=streams.CLUSTER.name, list_subjects=SUBJECTS, follow_subjects=SUBJECTS)
        self.run: Final = bus.watch(spec, self).run

    def deliver(self, delivery: Delivery) -> None:
        record = codec.decode(CommitRecord, delivery.payload)
        if record.n > self._last_n:
            self._last_n = record.n
            self._told(record, delivery.stored_at)

    def listing(self, target: int, reason: str) -> None: ...

    def synced(self, position: int) -> None: ...

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...


class CommitCounter:
    """Counts durable bindings of a namespace as commits tell them."""

    def __init__(self, bus: Bus, namespace: str) -> None:
        self._namespace = namespace
        self._wanted = 0
        self._enough = anyio.Event()
        self.bound = 0
        self.commits = 0
        self.last_commit_at = 0.0
        """When the server stored the last counted commit, seconds since 1970, UTC."""
        self.per_second: dict[int, int] = {}
        """Bindings by whole second of the server's clock."""
        self.run: Final = CommitReader(bus, self._committed).run

    async def until(self, bound: int) -> None:
        """Wait until so many pods are bound."""
        self._wanted = bound
        self._enough = anyio.Event()
        if self.bound < bound:
            await self._enough.wait()

    def _committed(self, record: CommitRecord, at: float) -> None:
        count = sum(1 for binding in record.bindings if binding.namespace == self._namespace)
        if not count:
            return
        self.commits += 1
        self.bound += count
        self.last_commit_at = at
        second = int(at)
        self.per_second[second] = self.per_second.get(second, 0) + count
        if self.bound >= self._wanted:
            self._enough.set()
