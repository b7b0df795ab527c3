"""What may help a pod that no node took because of pod affinity or anti-affinity.

A pod's own terms are asked without knowing the labels of namespaces: a namespaceSelector then fits every
namespace or none (see the surprises in the requeue suite).

Source: kube-scheduler v1.36.2, plugins/interpodaffinity/plugin.go (isSchedulableAfterPodChange,
isSchedulableAfterNodeChange).
"""

from collections.abc import Iterable, Mapping

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects.core import Node, Pod
from podyard.plugins import hinted
from podyard.plugins.inter_pod_affinity import term_index, terms
from podyard.plugins.inter_pod_affinity.terms import PodTerms, Term
from podyard.proto.actions import ActionType


class UnreadableTermsError(ValueError):
    """The parked pod's affinity cannot be read; the answer then counts as Queue."""


def _terms_of(pod: Pod) -> PodTerms:
    found = terms.of_pod(pod)
    if found.fault:
        raise UnreadableTermsError(found.fault)
    return found


def _meant(by: Iterable[Term], pod: Pod) -> bool:
    return terms.all_match(by, pod.metadata.namespace, pod.metadata.labels)


def after_pod_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if a placed pod came that the pod wants to be near, or one left from which it had to be apart, or
    the other way round.

    Also if the pod itself has other labels: the terms of placed pods may mean it no more.
    """
    before, after = hinted.changed(Pod, old, new)
    if before is not None and after is not None and after.metadata.uid == pod.metadata.uid:
        return events.queue("the pod itself has other labels")
    name = "/".join((after or before or pod).key)
    if hinted.on_no_node(before, after):
        return events.skip(f"{name} is on no node")
    own = _terms_of(pod)
    if before is not None and after is not None:
        return _after_update(own, name, before, after)
    if after is not None:
        if _meant(own.affinity, after):
            return events.queue(f"{name} is on {hinted.place_of(after)}, and the pod wants to be near it")
        return events.skip(f"{name} came, which is no pod that the pod wants to be near")
    assert before is not None, "hinted.changed gives one of the two"
    return _after_deletion(pod, own, name, before)


def _after_update(own: PodTerms, name: str, before: Pod, after: Pod) -> HintResult:
    if not _meant(own.affinity, before) and _meant(own.affinity, after):
        return events.queue(f"{name} now has the labels that the pod wants to be near")
    if _meant(own.anti_affinity, before) and not _meant(own.anti_affinity, after):
        return events.queue(f"{name} no longer has the labels that the pod must be apart from")
    return events.skip(f"{name} has other labels, which make no difference to the pod's affinity")


def _after_deletion(pod: Pod, own: PodTerms, name: str, gone: Pod) -> HintResult:
    left = hinted.left(gone)
    if _meant(own.anti_affinity, gone):
        return events.queue(f"{name}, which the pod must be apart from, {left}")
    if _meant(_terms_of(gone).anti_affinity, pod):
        return events.queue(f"{name}, which had to be apart from the pod, {left}")
    return events.skip(f"{name} {left}; it and the pod need not be apart")


def after_node_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if a node came to, or went from, a topology domain of one of the pod's terms."""
    before, node = hinted.present(Node, old, new)
    own = _terms_of(pod)
    name, labels = node.metadata.name, node.metadata.labels
    had = None if before is None else before.metadata.labels
    for term in own.affinity:
        key = term.topology_key
        if key in labels and (had is None or had.get(key) != labels[key]):
            return events.queue(f"{name} is in domain {key}={labels[key]}, and the pod has affinity by {key}")
    for term in own.anti_affinity:
        key = term.topology_key
        if had is None:
            return events.queue(f"the new node {name} may hold none of the pods that the pod must be apart from")
        if key in had and had[key] != labels.get(key):
            return events.queue(f"{name} left domain {key}={had[key]}, and the pod has anti-affinity by {key}")
    return events.skip(_no_difference(name, labels, own))


def _no_difference(name: str, labels: Mapping[str, str], own: PodTerms) -> str:
    keys = sorted({term.topology_key for term in (*own.affinity, *own.anti_affinity)})
    if not keys:
        return f"{name} changed, and the pod has no terms of its own"
    shown = ", ".join(f"{key}={labels[key]}" if key in labels else f"no {key}" for key in keys)
    return f"{name} ({shown}) is in no domain that helps the pod"


def registrations() -> tuple[Registration, ...]:
    """Pods that come, go or get other labels; nodes added or with other labels."""
    pods = ClusterEvent(events.POD, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL)
    nodes = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    return (
        Registration(pods, after_pod_change, term_index.of_pods),
        Registration(nodes, after_node_change, term_index.of_nodes),
    )
