"""What would help a pod that waits, in a sentence for each cause. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from podyard.proto.decisions import AttemptRecord, Rejection
from podyard.proto.queue_api import OutsidePod, QueuedPodInfo
from podyard.telling.entries import Data

PREEMPTION: Final = "DefaultPreemption"
NO_NODES: Final = "no nodes available to schedule pods"
"""Message of such an attempt."""
TOO_SMALL: Final = "ask for less, or add a larger node: those that lack it are too small even when empty"
PRESSURE: Final = "wait until the node's pressure has gone, or add a node"
NO_CLAIM: Final = "create what is not found, or name one that there is"
OF_REASONS: Final[Mapping[tuple[str, str], str]] = {
    ("NodeResourcesFit", "Too many pods"): "free a place there, add a node, or raise the node's limit of pods",
    ("NodeResourcesFit", "Insufficient"): "ask for less, add a node, or end pods on a node that is large enough",
    ("TaintToleration", "node.kubernetes.io/unreachable"): "start the node's agent again, or add a node",
    ("TaintToleration", "node.kubernetes.io/not-ready"): "wait until the node's agent reports it ready, or add a node",
    ("TaintToleration", "node.kubernetes.io/memory-pressure"): PRESSURE,
    ("TaintToleration", "node.kubernetes.io/disk-pressure"): PRESSURE,
    ("TaintToleration", "node.kubernetes.io/pid-pressure"): PRESSURE,
    ("TaintToleration", ""): "add a toleration to the pod, or apply the node without the taint (spec.taints)",
    ("NodeUnschedulable", ""): "uncordon the node: apply it without spec.unschedulable",
    ("NodeName", ""): "create a node of that name, or take nodeName out of the pod",
    ("NodeAffinity", "didn't satisfy plugin"): "make room on the nodes that it names, create them, or name others",
    ("NodeAffinity", ""): "give a node these labels, or ask for others",
    ("NodePorts", ""): "another host port, or a node where it is free",
    ("InterPodAffinity", "node(s) didn't match pod affinity"): "place such a pod first, or make the affinity preferred",
    ("InterPodAffinity", ""): "add a node in another domain, or make the anti-affinity preferred",
    ("PodTopologySpread", "node(s) didn't match pod topology spread constraints (missing"): "give the node this label",
    ("PodTopologySpread", ""): "make room in the emptiest domain, raise maxSkew, or choose ScheduleAnyway",
    ("VolumeBinding", "not found"): NO_CLAIM,
    ("VolumeBinding", "is being deleted"): "create the claim anew when it is gone, or name another",
    ("VolumeBinding", "bound to non-existent"): "create the claim anew: its volume is lost",
    ("VolumeBinding", "there is no such class"): "create that storage class, or a claim of one that there is",
    ("VolumeBinding", "has no storage class"): "create a volume that fits it, or a claim with a storageClassName",
    ("VolumeBinding", "pod has unbound immediate"): "create a volume that fits, or a claim of a class that makes one",
    ("VolumeBinding", "node(s)"): "make room where the volume is, or a volume where there is room",
    ("VolumeZone", "not found"): NO_CLAIM,
    ("VolumeZone", ""): "make room in the zone of the volume",
    ("VolumeRestrictions", "not found"): NO_CLAIM,
    ("VolumeRestrictions", ""): "wait for the other pod to end, or give this one a claim of its own",
    ("NodeVolumeLimits", "not found"): NO_CLAIM,
    ("NodeVolumeLimits", ""): "use fewer volumes on the node, or add a node",
    (
        "DynamicResources",
        "cannot allocate devices",
    ): "make the pod without spec.resourceClaims: nobody here has devices",
    ("DynamicResources", ""): "create the resource claim, or make the pod without it",
    ("SchedulingGates", ""): "remove the gate from spec.schedulingGates when the pod may go",
    (PREEMPTION, "preemptionPolicy=Never"): "a priority class whose preemptionPolicy is not Never would let it"
    " take the place of less important pods",
    ("FailedCreate", "exceeded quota"): "raise the quota, or end what uses it in this namespace",
    ("FailedCreate", "usage per "): "ask for what the LimitRange of this namespace allows, or change it",
}
"""By plugin (of a pod that is not made: by event) and a part of its reason, or of what is in the way; the
first that fits."""


class Help(Data, frozen=True, kw_only=True):
    """What would help against what one plugin says."""

    plugin: str = ""
    text: str


def of_rejection(rejection: Rejection) -> str:
    """What would help against this one; empty: only the plugin's author knows.

    Only a request can be too large for every node that lacks it: then preemption cannot help either.
    """
    if rejection.plugin == "NodeResourcesFit" and rejection.unresolvable:
        return TOO_SMALL
    return _found(rejection.plugin, f"{rejection.reason} {rejection.detail}")


def of_message(plugin: str, message: str) -> str:
    """What would help against what a plugin says that looks at no node, as a gate; empty: not known."""
    return _found(plugin, message)


def of_waiting(last: AttemptRecord | None, queued: QueuedPodInfo | None) -> tuple[Help, ...]:
    """For a pod that has no node: what would help against each that keeps it, once each.

    :param last: its last attempt
    """
    if queued is not None and queued.gating_plugin:
        text = _found(queued.gating_plugin, queued.message)
        return (Help(plugin=queued.gating_plugin, text=text),) if text else ()
    if last is None or last.outcome not in ("unschedulable", "error"):
        return ()
    if last.nominated_node:
        text = f"nothing to do: it gets the room on {last.nominated_node} when its victims have gone"
        return (Help(plugin=PREEMPTION, text=text),)
    found = [Help(plugin=one.plugin, text=of_rejection(one)) for one in last.rejections]
    if last.outcome == "unschedulable" and not all(one.unresolvable for one in last.rejections):
        found.append(Help(plugin=PREEMPTION, text=_found(PREEMPTION, last.message)))
    return tuple(dict.fromkeys(one for one in found if one.text)) or _without_nodes(last)


def of_outside(pod: OutsidePod, profiles: Sequence[str]) -> Help:
    """For a pod that nobody schedules.

    :param profiles: names of those that the queue has
    """
    if pod.node:
        return Help(plugin="NodeName", text="create a node of that name, or make the pod anew without spec.nodeName")
    there = " or ".join(profiles)
    text = f"make the pod anew with schedulerName {there}, or add a profile of that name (--scheduler-config)"
    return Help(text=text)


def _without_nodes(last: AttemptRecord) -> tuple[Help, ...]:
    """An attempt without nodes is an error in the reference; other errors have theirs in words."""
    none = not last.nodes_total and (last.outcome == "unschedulable" or NO_NODES in last.message)
    return (Help(text="add a node: there is none"),) if none else ()


def _found(plugin: str, reason: str) -> str:
    fitting = (text for (name, part), text in OF_REASONS.items() if name == plugin and part in reason)
    return next(fitting, "")
