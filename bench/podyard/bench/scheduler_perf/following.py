"""Follows the commit records: which pods are bound now, and how many were when."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import anyio

from podyard.bench.commits import CommitReader
from podyard.bench.scheduler_perf.figures import Bound
from podyard.bus import Bus
from podyard.proto.placement import CommitRecord


class Place(NamedTuple):
    """A bound pod."""

    namespace: str
    name: str
    labels: Mapping[str, str]


class Wanted(NamedTuple):
    """Pods of some namespaces (none: of all) that have these labels."""

    namespaces: frozenset[str] = frozenset()
    labels: tuple[tuple[str, str], ...] = ()

    def has(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is among them."""
        if self.namespaces and namespace not in self.namespaces:
            return False
        return all(labels.get(key) == value for key, value in self.labels)


class Follower:
    """What the binder has committed, as far as it was read.

    :param heard: is handed each record, and when it was durable
    """

    def __init__(self, bus: Bus, heard: Callable[[CommitRecord, float], None] | None = None) -> None:
        self._heard = heard
        self.live: dict[str, Place] = {}
        """Bound pods by uid."""
        self.nodes: dict[tuple[str, str], str] = {}
        """Nodes of bound pods, by namespace and name."""
        self.in_namespace: dict[str, int] = {}
        """Bound pods by namespace."""
        self.bound = 0
        self.released = 0
        self.commits = 0
        self.last_commit_at = 0.0
        self.measured: Wanted | None = None
        """Whose bindings are noted in `noted`; None: nobody's."""
        self.noted: list[Bound] = []
        self.noted_pods = 0
        """In all of `noted`."""
        self._came = anyio.Event()
        """Set by the next commit, which makes another."""
        self.run: Final = CommitReader(bus, self._committed).run

    def note(self, wanted: Wanted) -> None:
        """Bindings of these pods are noted from now on."""
        self.measured, self.noted, self.noted_pods = wanted, [], 0

    async def until(self, done: Callable[[], bool], stalled_after_s: float) -> bool:
        """Wait until something is the case that commits bring about. Several may wait.

        :return: False: there was no commit for so many seconds
        """
        while not done():
            with anyio.move_on_after(stalled_after_s) as limit:
                await self._came.wait()
            if limit.cancelled_caught:
                return done()
        return True

    def count(self, wanted: Wanted) -> int:
        """Pods among those wanted that are bound now."""
        if not wanted.labels and wanted.namespaces:
            return sum(self.in_namespace.get(one, 0) for one in wanted.namespaces)
        return sum(wanted.has(one.namespace, one.labels) for one in self.live.values())

    def _committed(self, record: CommitRecord, at: float) -> None:
        self.commits += 1
        measured, matching = self.measured, 0
        for one in record.bindings:
            self.live[one.uid] = Place(one.namespace, one.name, one.labels)
            self.nodes[one.namespace, one.name] = one.node
            self.in_namespace[one.namespace] = self.in_namespace.get(one.namespace, 0) + 1
            if measured is not None and measured.has(one.namespace, one.labels):
                matching += 1
        self.bound += len(record.bindings)
        for release in record.releases:
            gone = self.live.pop(release.uid, None)
            if gone is not None:
                self.in_namespace[gone.namespace] -= 1
                self.nodes.pop((gone.namespace, gone.name), None)
        self.released += len(record.releases)
        if record.bindings:
            self.last_commit_at = at
        if matching:
            self.noted.append(Bound(at, matching))
            self.noted_pods += matching
        if self._heard is not None:
            self._heard(record, at)
        came, self._came = self._came, anyio.Event()
        came.set()
