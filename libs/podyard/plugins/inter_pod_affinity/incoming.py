"""A pod to be scheduled as the plugin sees it: its terms with their namespaces resolved, and which placed
pods they mean.

The reference lists the namespaces that a namespaceSelector chooses, but goes on asking the selector itself,
about no labels: one that only excludes (NotIn, DoesNotExist) then means every namespace (kubernetes#141526).
So it is here.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/interpodaffinity/plugin.go
(mergeAffinityTermNamespacesIfNotEmpty, GetNamespaceLabelsSnapshot).
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Final, NamedTuple

from podyard.cluster.pod_columns import PodSelection
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import ObjectsByName, Snapshot
from podyard.objects.selectors import NOTHING, Selector
from podyard.plugins.inter_pod_affinity.domain_counts import SelectedCounts
from podyard.plugins.inter_pod_affinity.placed_terms import PlacedTerms
from podyard.plugins.inter_pod_affinity.terms import NO_LABELS, PodTerms, Subject, Term

NAMESPACES: Final = "namespaces"
"""The resource."""


class Incoming(NamedTuple):
    """One pod, and what its own terms ask for."""

    subject: Subject
    """The pod itself."""
    near: tuple[SelectedCounts, ...]
    """Required affinity: the placed pods that all terms mean, by each topology key once."""
    first: bool
    """Whether the pod itself is one that all its required affinity terms mean."""
    apart: tuple[SelectedCounts, ...]
    """Required anti-affinity: what each term means."""
    liked: tuple[tuple[SelectedCounts, int], ...]
    """Preferences with their weights, those of anti-affinity negative."""
    terms: PodTerms
    """As the pod has them."""

    def refresh(self) -> None:
        """Look at the table as it is now."""
        for counts in self.near:
            counts.refresh()
        for counts in self.apart:
            counts.refresh()
        for counts, _ in self.liked:
            counts.refresh()


def resolve(pod: PodInfo, own: PodTerms, cluster: Snapshot) -> Incoming:
    """The pod in the cluster as it is.

    :param own: the pod's terms
    """
    namespaces = cluster.objects(NAMESPACES)
    index = cluster.nodes.index(PlacedTerms)
    affinity = _all_of(own.affinity, namespaces)
    keys = dict.fromkeys(term.topology_key for term in own.affinity)
    return Incoming(
        subject=Subject(
            pod.namespace,
            pod.labels,
            frozenset(pod.labels.items()),
            labels_of(pod.namespace, namespaces),
            cluster.version(NAMESPACES),
        ),
        near=tuple([index.selected(affinity, key) for key in keys]),
        first=bool(keys) and affinity.takes(pod.namespace, False, pod.labels),
        apart=tuple([index.selected(_selection(term, namespaces), term.topology_key) for term in own.anti_affinity]),
        liked=tuple(
            [
                (index.selected(_selection(term, namespaces), term.topology_key), weight)
                for term, weight in own.preferences
            ]
        ),
        terms=own,
    )


def labels_of(namespace: str, namespaces: ObjectsByName) -> Mapping[str, str]:
    """The labels of a namespace; none if it is not known."""
    found = namespaces.get(("", namespace))
    return NO_LABELS if found is None else found.metadata.labels


def _selection(term: Term, namespaces: ObjectsByName) -> PodSelection:
    return PodSelection(term.selector, _scope(term, namespaces))


def _scope(term: Term, namespaces: ObjectsByName) -> frozenset[str] | None:
    """The namespaces that a term of an incoming pod means; `None`: all."""
    selector = term.namespace_selector
    if selector.nothing:
        return term.namespaces
    if selector.matches(NO_LABELS):
        return None
    chosen = [name for (_, name), found in namespaces.items() if selector.matches(found.metadata.labels)]
    return term.namespaces.union(chosen)


def _all_of(listed: Iterable[Term], namespaces: ObjectsByName) -> PodSelection:
    """The pods that every one of the terms means."""
    return reduce(_both, [_selection(term, namespaces) for term in listed], PodSelection(Selector(), None))


def _both(one: PodSelection, other: PodSelection) -> PodSelection:
    scope = other.namespaces if one.namespaces is None else one.namespaces
    if one.namespaces is not None and other.namespaces is not None:
        scope = one.namespaces & other.namespaces
    if one.selector.nothing or other.selector.nothing:
        return PodSelection(NOTHING, scope)
    requirements = dict.fromkeys((*one.selector.requirements, *other.selector.requirements))
    return PodSelection(Selector(tuple(requirements)), scope)
