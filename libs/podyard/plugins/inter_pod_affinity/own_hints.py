"""What may help a pod that pod affinity rejected, beside what the reference's hints know (`obstacles` says
what they miss).

No labels of namespaces are looked up: a term that chooses namespaces by labels is taken to choose every
namespace, so that no event is missed.
"""

from collections.abc import Sequence

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, OwnRegistration
from podyard.objects.core import Node, Pod
from podyard.plugins import hinted
from podyard.plugins.inter_pod_affinity import own_index, terms
from podyard.plugins.inter_pod_affinity.obstacles import (
    ANY_KEY,
    ONE_OF_ITS_TERMS,
    OTHERS_OF_ITS_KIND,
    WANTED_BY_NAMESPACE,
    keys_of,
)
from podyard.plugins.inter_pod_affinity.terms import Term
from podyard.proto.actions import ActionType


def after_pod_change(pod: Pod, obstacles: tuple[str, ...], old: object | None, new: object | None) -> HintResult:
    """Queue if a pod that was in the way may be so no more, or one that is wanted may have come."""
    before, after = hinted.changed(Pod, old, new)
    name = "/".join((after or before or pod).key)
    if hinted.on_no_node(before, after):
        return events.skip(f"{name} is on no node")
    own = terms.of_pod(pod)
    became = "is gone" if after is None else "has other labels"
    if OTHERS_OF_ITS_KIND in obstacles and _all_mean(own.affinity, before) and not _all_mean(own.affinity, after):
        return events.queue(f"{name}, of the pod's own kind, {became}: if it was the last, the pod may begin anywhere")
    if WANTED_BY_NAMESPACE in obstacles and _all_mean(own.affinity, after) and not _all_mean(own.affinity, before):
        return events.queue(f"{name} may be in a namespace that the pod's affinity chooses")
    if ONE_OF_ITS_TERMS in obstacles:
        for term in own.anti_affinity:
            if _means(term, before) and not _means(term, after):
                return events.queue(f"{name}, which a term of the pod's anti-affinity may mean, {became}")
    theirs = terms.of_pod(before).anti_affinity if before is not None and after is None else ()
    if keys_of(obstacles) and any(_means(term, pod) for term in theirs):
        return events.queue(f"{name} is gone, of which an anti-affinity term may mean the pod")
    return events.skip(f"{name} stands as much in the pod's way as before")


def after_node_change(pod: Pod, obstacles: tuple[str, ...], old: object | None, new: object | None) -> HintResult:
    """Queue if a node left a domain in which pods were in the way; or is new, if placed pods keep the pod
    out."""
    before, after = hinted.changed(Node, old, new)
    keys = set(keys_of(obstacles))
    if before is None:
        assert after is not None, "hinted.changed gives one of the two"
        if keys:
            return events.queue(f"the new node {after.metadata.name} may hold none of the pods that keep the pod out")
        return events.skip(f"{after.metadata.name} is new, and takes nothing out of the pod's way")
    if OTHERS_OF_ITS_KIND in obstacles:
        keys.update(term.topology_key for term in terms.of_pod(pod).affinity)
    name, had, has = before.metadata.name, before.metadata.labels, {} if after is None else after.metadata.labels
    for key in sorted(had) if ANY_KEY in keys else sorted(keys & had.keys()):
        if had[key] != has.get(key):
            return events.queue(f"{name} left domain {key}={had[key]}, whose pods are in the pod's way")
    return events.skip(f"{name} is in the domains of the pods that are in the pod's way, as before")


def _all_mean(listed: Sequence[Term], pod: Pod | None) -> bool:
    """Whether all of these terms, of which there is at least one, may mean a pod; nobody is meant."""
    return bool(listed) and all(_means(term, pod) for term in listed)


def _means(term: Term, pod: Pod | None) -> bool:
    if pod is None:
        return False
    return terms.may_cover(term, pod.metadata.namespace) and term.selector.matches(pod.metadata.labels)


def registrations() -> tuple[OwnRegistration, ...]:
    """Pods that come, go or get other labels; nodes that come, go or get other labels."""
    pods = ClusterEvent(events.POD, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL)
    nodes = ClusterEvent(events.NODE, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL)
    return (
        OwnRegistration(pods, after_pod_change, own_index.of_pods),
        OwnRegistration(nodes, after_node_change, own_index.of_nodes),
    )
