"""Why the plugin rejected a pod, where the reference's hints do not know all that would help: names for
`own_hints`.

What the reference (kube-scheduler v1.36.2, plugins/interpodaffinity/plugin.go) leaves to its flush after five
minutes:

- a pod that all its own required affinity terms mean may go anywhere once no placed pod is like it
  (filtering.go, satisfyPodAffinity), but the end of the last such pod says Skip (kubernetes#141354);
- whom a placed pod's anti-affinity keeps out is not told of new nodes, nor of nodes that change their domain;
- a pod is taken to be apart from a placed pod only if all terms mean it, though each of several terms rejects
  for itself;
- namespaces that a term chooses by their labels are taken to have none.
"""

from collections.abc import Iterable
from typing import Final

from podyard.plugins.inter_pod_affinity.filtering import FilterState
from podyard.plugins.inter_pod_affinity.terms import NO_LABELS, Term

OTHERS_OF_ITS_KIND: Final = "others of its kind"
"""The pod is one that it wants to be near, and there are others: without them it could begin anywhere."""
WANTED_BY_NAMESPACE: Final = "wanted pods of chosen namespaces"
"""A term of its affinity chooses namespaces by their labels."""
ONE_OF_ITS_TERMS: Final = "one of its anti-affinity terms"
"""It has several of them, or one that chooses namespaces by their labels."""
KEPT_OUT_BY: Final = "kept out by "
"""And the topology key: the anti-affinity of placed pods, a name for each key."""
ANY_KEY: Final = "*"
"""Instead of a topology key: it is not known which."""


def not_near(state: FilterState) -> tuple[str, ...]:
    """Of a node that is near none of the pods that the pod wants to be near."""
    found = [OTHERS_OF_ITS_KIND] if state.pod.first else []
    if _choose_namespaces(state.pod.terms.affinity):
        found.append(WANTED_BY_NAMESPACE)
    return tuple(found)


def not_apart(state: FilterState) -> tuple[str, ...]:
    """Of a node that is near a pod that the pod must be apart from."""
    own = state.pod.terms.anti_affinity
    return (ONE_OF_ITS_TERMS,) if len(own) > 1 or _choose_namespaces(own) else ()


def kept_out(state: FilterState) -> tuple[str, ...]:
    """Of a node that is near a pod that must be apart from the pod."""
    keys = {group.term.topology_key for group in state.groups} or {ANY_KEY}
    return tuple([f"{KEPT_OUT_BY}{key}" for key in sorted(keys)])


def keys_of(obstacles: Iterable[str]) -> frozenset[str]:
    """The topology keys by which placed pods keep the pod out."""
    return frozenset(one.removeprefix(KEPT_OUT_BY) for one in obstacles if one.startswith(KEPT_OUT_BY))


def _choose_namespaces(listed: Iterable[Term]) -> bool:
    """Whether any of the terms chooses namespaces by labels that they must have."""
    return any(
        not term.namespace_selector.nothing and not term.namespace_selector.matches(NO_LABELS) for term in listed
    )
