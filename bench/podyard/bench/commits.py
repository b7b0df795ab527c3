"""Follows the commit records until a number of pods is bound."""

from typing import Final

import anyio

from podyard.bus import Bus, Delivery, WatchSpec
from podyard.proto import codec, streams, subjects
from podyard.proto.placement import CommitRecord

SUBJECTS: Final = (subjects.ALL_COMMITS,)


class CommitCounter:
    """Counts durable bindings of a namespace as commits tell them; a relisting counts nothing twice."""

    def __init__(self, bus: Bus, namespace: str) -> None:
        self._namespace = namespace
        self._wanted = 0
        self._last_n = 0
        self._enough = anyio.Event()
        self.bound = 0
        self.commits = 0
        self.last_commit_at = 0.0
        """When the server stored the last counted commit, seconds since 1970, UTC."""
        self.per_second: dict[int, int] = {}
        """Bindings by whole second of the server's clock."""
        spec = WatchSpec(stream=streams.CLUSTER.name, list_subjects=SUBJECTS, follow_subjects=SUBJECTS)
        self.run = bus.watch(spec, self).run

    async def until(self, bound: int) -> None:
        """Wait until so many pods are bound."""
        self._wanted = bound
        self._enough = anyio.Event()
        if self.bound < bound:
            await self._enough.wait()

    def deliver(self, delivery: Delivery) -> None:
        record = codec.decode(CommitRecord, delivery.payload)
        if record.n <= self._last_n:
            return
        self._last_n = record.n
        count = sum(1 for binding in record.bindings if binding.namespace == self._namespace)
        if not count:
            return
        self.commits += 1
        self.bound += count
        self.last_commit_at = delivery.stored_at
        second = int(delivery.stored_at)
        self.per_second[second] = self.per_second.get(second, 0) + count
        if self.bound >= self._wanted:
            self._enough.set()

    def listing(self, target: int, reason: str) -> None: ...

    def synced(self, position: int) -> None: ...

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...
