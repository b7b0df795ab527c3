"""Which pods, and which terms, keep a pod off a node: in words."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from podyard.cluster.node_columns import ABSENT
from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.framework import details
from podyard.framework.interfaces import Detail
from podyard.plugins.inter_pod_affinity import terms
from podyard.plugins.inter_pod_affinity.filtering import FilterState, domain_of
from podyard.plugins.inter_pod_affinity.terms import Term

MOST_PODS: Final = 256
"""Pods of a domain that are looked at for one name; semi-arbitrary."""


def not_near(state: FilterState, nodes: NodeTable, row: int) -> Detail | None:
    """Nobody is in the node's domain whom the pod wants to be near."""
    wanted = " and ".join(str(term.selector) for term in state.pod.terms.affinity)
    for tally in state.near:
        domain = domain_of(nodes, tally.key, row)
        if domain == ABSENT:
            return Detail(f"has no label {tally.key}")
        if tally.at(domain) <= 0:
            return Detail(f"no pod with {wanted} is in {_place(nodes, tally.key, domain)}")
    return None


def not_apart(state: FilterState, nodes: NodeTable, row: int) -> Detail | None:
    """Somebody is in the node's domain whom the pod wants to be apart from."""
    for tally, term in zip(state.apart, state.pod.terms.anti_affinity, strict=True):
        domain = domain_of(nodes, tally.key, row)
        if tally.at(domain) > 0:
            other = _first(nodes, term, domain, lambda placed, term=term: _means(term, placed))
            return Detail(
                f"must be apart from pods with {term.selector}; {other} is in {_place(nodes, tally.key, domain)}"
            )
    return None


def kept_out(state: FilterState, nodes: NodeTable, row: int) -> Detail | None:
    """Somebody is in the node's domain who wants to be apart from the pod."""
    for group in state.groups:
        term = group.term
        domain = domain_of(nodes, term.topology_key, row)
        if domain != ABSENT and group.counts.by_domain().item(domain) > 0:
            other = _first(
                nodes, term, domain, lambda placed, term=term: term in terms.of_pod(placed.stored).anti_affinity
            )
            place = _place(nodes, term.topology_key, domain)
            return Detail(f"{other} is in {place} and must be apart from pods with {term.selector}")
    return None


def _means(term: Term, placed: PlacedPod) -> bool:
    return placed.namespace in term.namespaces and term.selector.matches(placed.labels)


def _place(nodes: NodeTable, key: str, domain: int) -> str:
    return f"{key}={nodes.label_column(key).values[domain]}"


def _first(nodes: NodeTable, term: Term, domain: int, wanted: Callable[[PlacedPod], bool]) -> str:
    """The name of one of those in a domain, if it is among the first that are looked at."""
    found = next(filter(wanted, islice(_in_domain(nodes, term.topology_key, domain), MOST_PODS)), None)
    return "another pod" if found is None else f"{found.namespace}/{found.name}"


def _in_domain(nodes: NodeTable, key: str, domain: int) -> Iterator[PlacedPod]:
    rows = (nodes.label_column(key).cells == domain).nonzero()[0]
    first: list[int] = rows[: details.MOST_LOOKED_AT].tolist()
    for row in first:
        yield from nodes.pods_on(nodes.names[row]).values()
