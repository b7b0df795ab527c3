"""How many placed pods a label selector matches, on every node: made once for all pods, then kept up to date
pod by pod.

An index of the node table: `counts = table.index(SelectorCounts)`, then `counts.of(PodSelection(...))` for
counts by row, or `counts.sums(PodSelection(...), topology_key, among)` for sums by topology domain.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.domain_sums import Among, Domains, DomainSums
from podyard.cluster.node_columns import grown
from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.cluster.pod_columns import PlacedFacts, PodColumns, PodSelection
from podyard.memory.latest import Latest
from podyard.memory.sizes import bytes_of
from podyard.objects import selectors
from podyard.objects.selectors import Requirement

MEMORY_BYTES: Final = 64 * 1024 * 1024
"""What the counts may take together; the ones not asked for the longest time go first."""
COUNT_BYTES: Final = 2048
"""What a count takes besides its rows and changes, a short selector among it."""
SELECTORS_BYTES: Final = 16 * 1024 * 1024
"""What the selectors of all counts may take together: one may be nearly as large as an object."""
ENTRY_BYTES: Final = 96
"""What a change takes that a count tells of."""
SUMS_BYTES: Final = 8192
"""What sums by domain take besides ..."""
SUMS_ROW_BYTES: Final = 32
"""... each row's domains, as they were when somebody asked last, and a sum if each node is a domain."""
MOST: Final = 1024
LEAST: Final = 64
"""Counts, and sums, that are kept whatever their rows take."""


class SelectorCount:
    """The number of matching pods on every node.

    Invariant: `rows[row]` is the number of placed pods on the node of that row that `wanted` takes; 0 for
    free rows.
    """

    __slots__ = ("_base", "_log", "asked", "rows", "selector_bytes", "sums", "version", "wanted")

    def __init__(self, wanted: PodSelection, rows: NDArray[np.int64], version: int) -> None:
        self.wanted = wanted
        self.rows = rows
        """By row, as long as the columns of the node table. Not to be changed, and not to be kept: it is
        replaced when the table grows.
        """
        self.asked = True
        """Somebody asked for it since it could have been dropped last. For the index only."""
        self.version = version
        """Grows by one with every change of this count, and is never that of another count: equal versions
        mean equal content.
        """
        self.selector_bytes = bytes_of(wanted)
        self.sums: dict[tuple[str, Among | None], DomainSums] = {}
        """By topology key and choice of nodes: they go with the count. For the index only."""
        self._base = version
        self._log: list[tuple[int, int]] = []

    def since(self, version: int) -> Sequence[tuple[int, int]] | None:
        """What changed after `version`: (row, how many more), in order; `None` if that is too long ago, or of
        another count.
        """
        at = version - self._base
        return self._log[at:] if 0 <= at <= len(self._log) else None

    def note(self, row: int, more: int) -> None:
        """A matching pod came to, or left, the node of `row`. For the index only."""
        self.rows[row] += more
        self.version += 1
        log = self._log
        log.append((row, more))
        if len(log) > _longest(len(self.rows)):
            half = len(log) // 2
            del log[:half]
            self._base += half


class SelectorCounts:
    """All counts that somebody asked for lately."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._pods = PodColumns()
        self._counts = Latest[PodSelection, SelectorCount]()
        self._by_identity: dict[int, tuple[PodSelection, SelectorCount]] = {}
        """The same for selections that were asked for, as objects: the hash of a selection takes longer than
        all else here.
        """
        self._by_label: dict[tuple[str, str], dict[PodSelection, SelectorCount]] = {}
        """Counts whose selector asks for one of some values of a label, by these: a pod concerns those of its
        own labels, ...
        """
        self._by_none: dict[PodSelection, SelectorCount] = {}
        """... and these: the others."""
        self._made = 0
        self._selector_bytes = 0
        """Of `_counts`."""
        self._domains = Latest[tuple[str, Among | None], Domains](LEAST)
        self._sums = Latest[tuple[PodSelection, str, Among | None], SelectorCount]()
        """Whose sums there are, the ones made again the longest time ago first."""
        self._sums_by_identity: dict[tuple[int, str, int], tuple[PodSelection, Among | None, DomainSums]] = {}

    def of(self, wanted: PodSelection) -> SelectorCount:
        """The count of these pods, up to date until the next change of the table; ask again then."""
        asked = self._by_identity.get(id(wanted))
        count = asked[1] if asked is not None else self._find(wanted)
        count.asked = True
        if len(count.rows) != self._nodes.capacity:
            count.rows = grown(count.rows, self._nodes.capacity)
        return count

    def sums(self, wanted: PodSelection, topology_key: str, among: Among | None = None) -> DomainSums:
        """The count of these pods in every domain of a topology, up to date until the next change of the
        table; ask again then.

        :param topology_key: the node label whose values are the domains
        :param among: the nodes whose pods count; `None`: all
        """
        count = self.of(wanted)
        key = id(wanted), topology_key, id(among)
        asked = self._sums_by_identity.get(key)
        if asked is None:
            sums = self._find_sums(count, topology_key, among)
            if len(self._sums_by_identity) >= LEAST:
                self._sums_by_identity.clear()
            self._sums_by_identity[key] = wanted, among, sums
        else:
            sums = asked[2]
        domains = sums.domains
        if domains.topology_version != self._nodes.topology_version:
            domains = self._domains_of(topology_key, among)
        sums.refresh(domains, count)
        return sums

    # ---- told by the table ---------------------------------------------------------------------------------

    def add(self, pod: PlacedPod, row: int) -> None:
        facts = PlacedFacts(row, pod.namespace, pod.deleting, pod.labels)
        self._pods.add(pod.uid, facts)
        self._note(facts, 1)

    def remove(self, pod: PlacedPod, row: int) -> None:
        self._note(self._pods.remove(pod.uid), -1)

    # ---- inside --------------------------------------------------------------------------------------------

    def _note(self, facts: PlacedFacts, more: int) -> None:
        row, namespace, ending, labels = facts
        for count in self._concerned(labels):
            if count.wanted.takes(namespace, ending, labels):
                if row >= len(count.rows):
                    count.rows = grown(count.rows, self._nodes.capacity)
                count.note(row, more)

    def _concerned(self, labels: Mapping[str, str]) -> list[SelectorCount]:
        """Counts that may match a pod of these labels, each once."""
        found = [*self._by_none.values()]
        for label in labels.items():
            counts = self._by_label.get(label)
            if counts:
                found += counts.values()
        return found

    def _find(self, wanted: PodSelection) -> SelectorCount:
        count = self._counts.get(wanted)
        if count is None:
            count = self._make(wanted)
        if len(self._by_identity) >= MOST:
            self._by_identity.clear()
        self._by_identity[id(wanted)] = wanted, count
        return count

    def _find_sums(self, count: SelectorCount, topology_key: str, among: Among | None) -> DomainSums:
        key = topology_key, among
        sums = count.sums.get(key)
        if sums is not None:
            self._sums.use((count.wanted, *key))
            return sums
        sums = count.sums[key] = DomainSums(self._domains_of(topology_key, among), count)
        self._sums[count.wanted, *key] = count
        if len(self._sums) > self._most_sums():
            (_, oldest, nodes), whose = self._sums.pop_oldest()
            del whose.sums[oldest, nodes]
            self._sums_by_identity.clear()
        return sums

    def _make(self, wanted: PodSelection) -> SelectorCount:
        self._made += 1
        rows = np.bincount(self._pods.rows(wanted), minlength=self._nodes.capacity)
        count = SelectorCount(wanted, rows.astype(np.int64, copy=False), self._made << 40)
        for shelf in self._shelves(wanted):
            shelf[wanted] = count
        self._counts[wanted] = count
        self._selector_bytes += count.selector_bytes
        while len(self._counts) > self._bound() or (self._selector_bytes > SELECTORS_BYTES and len(self._counts) > 1):
            self._drop()
        return count

    def _drop(self) -> None:
        """The count that nobody asked for since it was passed over, or made, and its sums."""
        wanted, count = self._counts.oldest()
        while count.asked:
            count.asked = False
            self._counts.use(wanted)
            wanted, count = self._counts.oldest()
        del self._counts[wanted]
        self._selector_bytes -= count.selector_bytes
        self._by_identity.clear()
        for key in count.sums:
            del self._sums[wanted, *key]
        self._sums_by_identity.clear()
        for shelf in self._shelves(wanted):
            del shelf[wanted]
        for label in _anchor(wanted):
            if not self._by_label[label]:
                del self._by_label[label]

    def _shelves(self, wanted: PodSelection) -> list[dict[PodSelection, SelectorCount]]:
        """Where a pod that may match finds the count."""
        if wanted.selector.nothing:
            return []
        labels = _anchor(wanted)
        return [self._by_label.setdefault(label, {}) for label in labels] if labels else [self._by_none]

    def _bound(self) -> int:
        rows = self._nodes.capacity
        return max(LEAST, min(MOST, MEMORY_BYTES // (COUNT_BYTES + 8 * rows + ENTRY_BYTES * _longest(rows))))

    def _most_sums(self) -> int:
        return max(LEAST, min(MOST, MEMORY_BYTES // (SUMS_BYTES + SUMS_ROW_BYTES * self._nodes.capacity)))

    def _domains_of(self, topology_key: str, among: Among | None) -> Domains:
        key = topology_key, among
        domains = self._domains.get(key)
        if domains is None or domains.topology_version != self._nodes.topology_version:
            domains = Domains(self._nodes, topology_key, among)
            self._domains.keep(key, domains)
        else:
            self._domains.use(key)
        return domains


def _longest(rows: int) -> int:
    """Changes that a count tells of, at most."""
    return rows // 8 + 256


def _anchor(wanted: PodSelection) -> list[tuple[str, str]]:
    """Labels of which a matching pod has exactly one: the selector's shortest list of values; empty if it
    asks for none.
    """
    asked: list[Requirement] = [one for one in wanted.selector.requirements if one.operator == selectors.IN]
    if not asked or wanted.selector.nothing:
        return []
    shortest = min(asked, key=lambda one: len(one.values))
    return [(shortest.key, value) for value in shortest.values]
