"""Pod affinity terms, compiled: which pods a term means, and whether a pod is one of them. Pure.

A term means pods of some labels in some namespaces. Its namespaces are listed, or chosen by labels, or both;
with neither the term means the namespace of the pod that has it.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/types.go (newAffinityTerm,
getNamespacesFromPodAffinityTerm), the keys of matchLabelKeys and mismatchLabelKeys as
pkg/registry/core/pod/strategy.go merges them.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from podyard.objects import selectors
from podyard.objects.affinity import PodAffinityTerm, WeightedPodAffinityTerm
from podyard.objects.errors import SelectorError
from podyard.objects.pod import Pod
from podyard.objects.selectors import IN, NOT_IN, Requirement, Selector

NO_LABELS: Final[Mapping[str, str]] = {}


class Term(NamedTuple):
    """One compiled term. Equal terms mean the same pods: requirements are in one order."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str] = frozenset()
    namespace_selector: Selector = selectors.NOTHING

    def covers(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        """Whether pods of a namespace with these labels are meant."""
        return namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod is meant. Source: AffinityTerm.Matches."""
        return self.covers(namespace, namespace_labels) and self.selector.matches(labels)


class Subject(NamedTuple):
    """A pod as the terms of other pods see it."""

    namespace: str
    labels: Mapping[str, str]
    label_set: frozenset[tuple[str, str]]
    """The labels again, as part of a key."""
    namespace_labels: Mapping[str, str]
    namespaces_version: int
    """Another number if any namespace has other labels."""

    def meant_by(self, term: Term) -> bool:
        """Whether a term of another pod means this one."""
        return term.matches(self.namespace, self.labels, self.namespace_labels)


class Preference(NamedTuple):
    """A term that counts in scores. `weight` is negative for anti-affinity."""

    term: Term
    weight: int


class PodTerms(NamedTuple):
    """All affinity terms of one pod, in the order of its spec."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferences: tuple[Preference, ...] = ()
    fault: str = ""
    """Why they cannot be read; it then has none."""


NO_TERMS: Final = PodTerms()


def of_pod(pod: Pod) -> PodTerms:
    """The terms of `pod`. Selectors that the API server would refuse make a fault."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    namespace, labels = pod.metadata.namespace, pod.metadata.labels
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    try:
        wanted = () if near is None else near.required_during_scheduling_ignored_during_execution
        refused = () if apart is None else apart.required_during_scheduling_ignored_during_execution
        liked = () if near is None else near.preferred_during_scheduling_ignored_during_execution
        disliked = () if apart is None else apart.preferred_during_scheduling_ignored_during_execution
        return PodTerms(
            tuple([compiled(term, namespace, labels) for term in wanted]),
            tuple([compiled(term, namespace, labels) for term in refused]),
            (*_weighted(liked, 1, namespace, labels), *_weighted(disliked, -1, namespace, labels)),
        )
    except SelectorError as error:
        return PodTerms(fault=str(error))


def _weighted(
    listed: Iterable[WeightedPodAffinityTerm], sign: int, namespace: str, labels: Mapping[str, str]
) -> list[Preference]:
    return [Preference(compiled(one.pod_affinity_term, namespace, labels), sign * one.weight) for one in listed]


def compiled(term: PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> Term:
    """One term of a pod of this namespace and these labels.

    :raises SelectorError: if one of its selectors cannot be read
    """
    listed = frozenset(term.namespaces)
    if not listed and term.namespace_selector is None:
        listed = frozenset((namespace,))
    return Term(
        term.topology_key, _merged(term, labels), listed, _in_order(selectors.compile_labels(term.namespace_selector))
    )


def _merged(term: PodAffinityTerm, labels: Mapping[str, str]) -> Selector:
    """The selector with the pod's own values of the named labels.

    The API server merges them when the pod is created. A key that is in the selector in this way already was
    merged then, with the value of that time. An absent selector stays absent.
    """
    selector = selectors.compile_labels(term.label_selector)
    if selector.nothing or not (term.match_label_keys or term.mismatch_label_keys):
        return _in_order(selector)
    held = {(requirement.key, requirement.operator) for requirement in selector.requirements}
    added = [
        Requirement(key, operator, frozenset((labels[key],)))
        for keys, operator in ((term.match_label_keys, IN), (term.mismatch_label_keys, NOT_IN))
        for key in keys
        if key in labels and (key, operator) not in held
    ]
    return _in_order(Selector((*selector.requirements, *added)))


def _in_order(selector: Selector) -> Selector:
    """The same selector with every requirement once, in one order."""
    if len(selector.requirements) < 2:
        return selector
    return Selector(tuple(sorted(set(selector.requirements), key=_place)))


def _place(requirement: Requirement) -> tuple[str, str, list[str]]:
    return requirement.key, requirement.operator, sorted(requirement.values)


def may_choose_any(term: Term) -> bool:
    """Whether the term chooses namespaces by labels, whichever: as long as nobody looks those up it may mean
    pods of every namespace."""
    return not term.namespace_selector.nothing


def may_cover(term: Term, namespace: str) -> bool:
    """Whether pods of a namespace may be meant, whatever its labels are."""
    return may_choose_any(term) or namespace in term.namespaces


def all_match(terms: Iterable[Term], namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether a pod is meant by every one of the terms, of which there is at least one.

    Their namespace selectors are asked about no labels, as the reference does with the terms of a pod to be
    scheduled.

    Source: filtering.go, podMatchesAllAffinityTerms.
    """
    found = False
    for term in terms:
        if not term.matches(namespace, labels, NO_LABELS):
            return False
        found = True
    return found
