"""The affinity terms of all placed pods, grouped so that an incoming pod finds those that mean it without
looking at the others.

Equal terms of different pods are one group with counts by domain. A group is filed under one equality
requirement of its selector (and under its namespaces if they are few), so a pod looks only into the files of
its own labels.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final, TypeAlias

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.cluster.pod_columns import PodSelection
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.objects.core import Pod
from podyard.objects.selectors import IN, Requirement
from podyard.plugins.inter_pod_affinity import terms
from podyard.plugins.inter_pod_affinity.domain_counts import DomainStamps, GroupCounts, SelectedCounts
from podyard.plugins.inter_pod_affinity.terms import NO_TERMS, PodTerms, Subject, Term

File: TypeAlias = tuple[str | None, str, str]
"""(namespace or None for any, label key, label value); an empty key: whatever the labels."""

FEW_NAMESPACES: Final = 4
"""Up to so many listed namespaces a term is filed under each of them; semi-arbitrary."""

FEW_VALUES: Final = 8
"""Up to so many values of an In requirement a term is filed under each of them; semi-arbitrary."""

ANSWERS_BYTES: Final = 4 * 1024 * 1024
"""What the groups of incoming pods (by namespace and labels) take that are remembered; semi-arbitrary."""

SELECTIONS_BYTES: Final = 4 * 1024 * 1024
"""What (terms of incoming pods, topology key) take that keep their counts by domain; the counts are
`SelectorCounts`'."""

SELECTION_BYTES: Final = 1024
"""What one takes besides its selector."""


class Group:
    """All placed pods that have one term with one weight."""

    __slots__ = ("counts", "files", "pods", "term", "weight")

    def __init__(self, term: Term, weight: int, counts: GroupCounts, files: tuple[File, ...]) -> None:
        self.term = term
        self.weight = weight
        self.counts = counts
        self.files = files
        self.pods = 0


class TermGroups:
    """Groups of one kind of term.

    :param edges: whether only empty or not empty counts (required terms), or the number of pods too (scores)
    """

    def __init__(self, domains: DomainStamps, clock: Iterator[int], *, edges: bool) -> None:
        self._domains = domains
        self._clock = clock
        self._edges = edges
        self._groups: dict[tuple[Term, int], Group] = {}
        self._files: dict[File, dict[tuple[Term, int], Group]] = {}
        self._answers = Kept[tuple[str, frozenset[tuple[str, str]], int], tuple[Group, ...]](ANSWERS_BYTES)
        self._selecting = 0
        """How many groups choose namespaces by their labels."""

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, term: Term, weight: int, row: int, amount: int) -> None:
        """So many pods more (or less) with this term are on the node of a row."""
        group = self._groups.get((term, weight)) or self._open(term, weight)
        group.pods += amount
        group.counts.add(row, amount)
        if not group.pods:
            self._close(group)

    def meaning(self, pod: Subject) -> tuple[Group, ...]:
        """The groups whose term means a pod."""
        if not self._groups:
            return ()
        key = pod.namespace, pod.label_set, pod.namespaces_version if self._selecting else 0
        found = self._answers.get(key)
        if found is None:
            found = tuple(self._search(pod))
            self._answers.keep(key, found, bytes_of(key) + sys.getsizeof(found))
        return found

    def _search(self, pod: Subject) -> Iterator[Group]:
        for scope in (pod.namespace, None):
            for key, value in (("", ""), *pod.labels.items()):
                for group in self._files.get((scope, key, value), {}).values():
                    if pod.meant_by(group.term):
                        yield group

    def _open(self, term: Term, weight: int) -> Group:
        counts = GroupCounts(self._domains, term.topology_key, self._clock, edges=self._edges)
        group = self._groups[term, weight] = Group(term, weight, counts, self._files_of(term))
        for file in group.files:
            self._files.setdefault(file, {})[term, weight] = group
        self._selecting += bool(not term.namespace_selector.nothing)
        self._answers.clear()
        return group

    def _close(self, group: Group) -> None:
        key = group.term, group.weight
        del self._groups[key]
        for file in group.files:
            del self._files[file][key]
            if not self._files[file]:
                del self._files[file]
        self._selecting -= bool(not group.term.namespace_selector.nothing)
        self._answers.clear()

    def _files_of(self, term: Term) -> tuple[File, ...]:
        """Where to look for a term: the smallest files of those that would do. A selector for nothing is in
        no file."""
        if term.selector.nothing:
            return ()
        listed = term.namespace_selector.nothing and len(term.namespaces) <= FEW_NAMESPACES
        scopes: Sequence[str | None] = sorted(term.namespaces) if listed else [None]
        choices = [
            tuple((scope, requirement.key, value) for scope in scopes for value in sorted(requirement.values))
            for requirement in term.selector.requirements
            if _is_narrow(requirement)
        ]
        if not choices:
            return tuple((scope, "", "") for scope in scopes)
        return min(choices, key=lambda files: sum(1 + len(self._files.get(file, ())) for file in files))


def _is_narrow(requirement: Requirement) -> bool:
    return requirement.operator == IN and len(requirement.values) <= FEW_VALUES and bool(requirement.key)


class PlacedTerms:
    """An index of the node table (`table.index(PlacedTerms)`): terms of all placed pods by kind."""

    def __init__(self, table: NodeTable) -> None:
        self.clock: Iterator[int] = count()
        """Versions of all parts: a greater one is a later one."""
        self.domains = DomainStamps(table, self.clock)
        self.anti_affinity = TermGroups(self.domains, self.clock, edges=True)
        self.affinity = TermGroups(self.domains, self.clock, edges=False)
        """Required ones: they count in scores."""
        self.preferences = TermGroups(self.domains, self.clock, edges=False)
        self._table = table
        self._held: dict[str, tuple[Pod, PodTerms]] = {}
        self._selected = Kept[tuple[PodSelection, str], SelectedCounts](SELECTIONS_BYTES)

    def selected(self, selection: PodSelection, key: str) -> SelectedCounts:
        """Counts of the placed pods that a term of an incoming pod means."""
        found = self._selected.get((selection, key))
        if found is None:
            found = SelectedCounts(self._table, selection, key, self.clock)
            self._selected.keep((selection, key), found, SELECTION_BYTES + bytes_of(selection, key))
        else:
            self._selected.use((selection, key))
        return found

    def add(self, pod: PlacedPod, row: int) -> None:
        found = self.terms_of(pod)
        if found is NO_TERMS:
            return
        self._held[pod.uid] = pod.stored, found
        self._count(found, row, 1)

    def remove(self, pod: PlacedPod, row: int) -> None:
        held = self._held.pop(pod.uid, None)
        if held is None:
            return
        _, found = held
        self._count(found, row, -1)

    def _count(self, found: PodTerms, row: int, amount: int) -> None:
        """So many pods more (or less) with these terms."""
        for term in found.anti_affinity:
            self.anti_affinity.add(term, 0, row, amount)
        for term in found.affinity:
            self.affinity.add(term, 0, row, amount)
        for term, weight in found.preferences:
            self.preferences.add(term, weight, row, amount)

    def terms_of(self, pod: PlacedPod) -> PodTerms:
        """The terms of a pod, placed or not."""
        stored = pod.stored
        if stored.spec.affinity is None:
            return NO_TERMS
        held = self._held.get(pod.uid)
        return held[1] if held is not None and held[0] is stored else terms.of_pod(stored)
