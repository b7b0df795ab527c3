"""Required affinity and anti-affinity: what PreFilter remembers and which nodes Filter takes.

Counts are read as they are now, so what PreFilter remembers stays right as long as the plugin's token does
not change; a trial's pods more or less are kept beside them.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from podyard.cluster.domain_sums import Edges
from podyard.cluster.node_columns import ABSENT
from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.framework.interfaces import Rows, Verdicts
from podyard.plugins.inter_pod_affinity.domain_counts import ByDomain, Counts
from podyard.plugins.inter_pod_affinity.domain_places import Places
from podyard.plugins.inter_pod_affinity.incoming import Incoming
from podyard.plugins.inter_pod_affinity.placed_terms import Group
from podyard.plugins.inter_pod_affinity.terms import PodTerms

NOT_NEAR: Final = 3
"""The pod's required affinity."""
NOT_APART: Final = 2
"""The pod's required anti-affinity."""
KEPT_OUT: Final = 1
"""The required anti-affinity of a placed pod. Of several reasons the one with the greatest number is told: it
is asked about first."""

FEW_EDGES: Final = 8
"""If more domains changed, or a domain has more nodes, all nodes are judged again."""

NOBODY: Final[Mapping[int, int]] = {}


class Tally(NamedTuple):
    """Counts of one topology key: the sum of some sources, and a trial's changes by domain."""

    key: str
    sources: tuple[Counts, ...]
    trial: Mapping[int, int] = NOBODY

    def by_domain(self, nodes: NodeTable) -> ByDomain:
        """All counts; not to be changed."""
        if len(self.sources) == 1 and not self.trial:
            return self.sources[0].by_domain()
        total = np.zeros(len(nodes.label_column(self.key).values), dtype=np.int64)
        for source in self.sources:
            total += source.by_domain()
        for domain, more in self.trial.items():
            total[domain] += more
        return total

    def at(self, domain: int) -> int:
        """The count of one domain, 0 for ABSENT."""
        return self.trial.get(domain, 0) + sum([source.by_domain().item(domain) for source in self.sources])

    def plus(self, domain: int, more: int) -> "Tally":
        """The same with so many pods more (or less) in a domain."""
        if domain == ABSENT:
            return self
        return self._replace(trial={**self.trial, domain: self.trial.get(domain, 0) + more})


class FilterState(NamedTuple):
    """What PreFilter remembers."""

    pod: Incoming
    near: tuple[Tally, ...]
    apart: tuple[Tally, ...]
    """One for each term."""
    kept_out: tuple[Tally, ...]
    """Domains of placed pods whose anti-affinity means this pod, by topology key."""
    groups: tuple[Group, ...] = ()
    """Those placed pods, as the index gave them."""


def made(pod: Incoming, groups: tuple[Group, ...]) -> FilterState | None:
    """What PreFilter remembers; `None` if no node can be rejected, so that Filter need not be asked.

    :param groups: required anti-affinity of placed pods that means the pod
    """
    by_key: dict[str, list[Counts]] = {}
    for group in groups:
        by_key.setdefault(group.term.topology_key, []).append(group.counts)
    if not pod.near and not pod.apart and not any(counts.occupied for each in by_key.values() for counts in each):
        return None
    return FilterState(
        pod,
        near=tuple([Tally(counts.key, (counts,)) for counts in pod.near]),
        apart=tuple([Tally(counts.key, (counts,)) for counts in pod.apart]),
        kept_out=tuple([Tally(key, tuple(each)) for key, each in by_key.items()]),
        groups=groups,
    )


class Looked(NamedTuple):
    """How far the edges of all counts of one state have been followed."""

    made: FilterState
    edges: tuple[tuple[Edges, int], ...]
    """By source: its edges as an object, and their end then."""


def looked(state: FilterState) -> Looked:
    """They are followed up to now."""
    return Looked(state, tuple([(edges, edges.end) for edges in [counts.edges for counts in _sources(state)]]))


def touched(before: Looked, nodes: NodeTable) -> set[int] | None:
    """Rows whose verdict may be another since `before`; `None`: too many.

    Only for anti-affinity: affinity may look at all domains at once.
    """
    state = before.made
    if state.near:
        return None
    domains: set[tuple[str, int]] = set()
    for counts, (edges, end) in zip(_sources(state), before.edges, strict=True):
        since = edges.since(end) if counts.edges is edges else None
        if since is None or len(since) > FEW_EDGES:
            return None
        domains.update([(counts.key, domain) for domain in since])
    rows: set[int] = set()
    for key, domain in domains:
        found = (nodes.label_column(key).cells == domain).nonzero()[0]
        if len(found) > FEW_EDGES:
            return None
        rows.update(found.tolist())
    return rows


def _sources(state: FilterState) -> list[Counts]:
    return [source for tally in (*state.apart, *state.kept_out) for source in tally.sources]


def verdicts(state: FilterState, nodes: NodeTable, places: Places, rows: Rows) -> Verdicts:
    """The greatest code that rejects a node, else 0: judged by domain, then looked up by row."""
    codes: Verdicts | None = None
    for key, by_domain in _by_key(state, nodes).items():
        found = by_domain.take(
            places.of(key, nodes, rows).domains, mode="clip"
        )  # all are in range, so this only saves the check
        codes = found if codes is None else np.maximum(codes, found)
    return np.zeros(len(rows), dtype=np.int64) if codes is None else codes


def _by_key(state: FilterState, nodes: NodeTable) -> dict[str, Verdicts]:
    """For each topology key: the code of each domain, and of nodes without one at ABSENT."""
    found: dict[str, Verdicts] = {}
    first = bool(state.near) and _may_be_first(state, nodes)
    for code, tallies in ((KEPT_OUT, state.kept_out), (NOT_APART, state.apart)):
        for tally in tallies:
            np.copyto(_codes(found, tally.key, nodes), code, where=tally.by_domain(nodes) > 0)
    for tally in state.near:
        codes = _codes(found, tally.key, nodes)
        if not first:
            np.copyto(codes, NOT_NEAR, where=tally.by_domain(nodes) <= 0)
        codes[ABSENT] = NOT_NEAR
    return found


def _codes(found: dict[str, Verdicts], key: str, nodes: NodeTable) -> Verdicts:
    if key not in found:
        found[key] = np.zeros(len(nodes.label_column(key).values), dtype=np.int64)
    return found[key]


def _may_be_first(state: FilterState, nodes: NodeTable) -> bool:
    """Nobody is what the pod wants to be near, but the pod is so itself: else a group could never begin.

    It then may be on any node that has all the topology keys.
    """
    if not state.pod.first:
        return False
    for tally in state.near:
        if tally.trial:
            if tally.by_domain(nodes).any():
                return False
        elif any(source.occupied for source in tally.sources):
            return False
    return True


def verdict_one(state: FilterState, nodes: NodeTable, row: int) -> int:
    """The same for one row."""
    if state.near:
        domains = [domain_of(nodes, tally.key, row) for tally in state.near]
        if ABSENT in domains:
            return NOT_NEAR
        held = all(tally.at(domain) > 0 for tally, domain in zip(state.near, domains, strict=True))
        if not held and not _may_be_first(state, nodes):
            return NOT_NEAR
    if _any_held(state.apart, nodes, row):
        return NOT_APART
    return KEPT_OUT if _any_held(state.kept_out, nodes, row) else 0


def _any_held(tallies: Sequence[Tally], nodes: NodeTable, row: int) -> bool:
    return any(tally.at(domain_of(nodes, tally.key, row)) > 0 for tally in tallies)


def domain_of(nodes: NodeTable, key: str, row: int) -> int:
    """The number of the domain that a row's node is in; ABSENT for none."""
    return nodes.label_column(key).cells.item(row)


class Change(NamedTuple):
    """A pod more (1) or less (-1) on the node of a row."""

    pod: PlacedPod
    terms: PodTerms
    row: int
    more: int


def after(state: FilterState, change: Change, namespace_labels: Mapping[str, str], nodes: NodeTable) -> FilterState:
    """What PreFilter would remember after a change. Source: preFilterState.updateWithPod.

    :param namespace_labels: of the incoming pod's namespace, as they are now
    """
    pod, near, apart, kept_out, groups = state
    _, terms, row, more = change
    namespace, labels = change.pod.namespace, change.pod.labels
    if near and pod.near[0].selection.takes(namespace, False, labels):
        near = tuple([tally.plus(domain_of(nodes, tally.key, row), more) for tally in near])
    if apart:
        meant = [counts.selection.takes(namespace, False, labels) for counts in pod.apart]
        apart = tuple(
            [
                tally.plus(domain_of(nodes, tally.key, row), more) if hit else tally
                for tally, hit in zip(apart, meant, strict=True)
            ]
        )
    for term in terms.anti_affinity:
        if term.matches(pod.subject.namespace, pod.subject.labels, namespace_labels):
            kept_out = _plus(kept_out, term.topology_key, domain_of(nodes, term.topology_key, row), more)
    return FilterState(pod, near, apart, kept_out, groups)


def _plus(tallies: tuple[Tally, ...], key: str, domain: int, more: int) -> tuple[Tally, ...]:
    if not any(tally.key == key for tally in tallies):
        tallies = (*tallies, Tally(key, ()))
    return tuple([tally.plus(domain, more) if tally.key == key else tally for tally in tallies])
