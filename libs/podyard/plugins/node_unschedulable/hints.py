"""What may help a pod that no node took because they are cordoned.

Source: kube-scheduler v1.36.2, plugins/nodeunschedulable/node_unschedulable.go.
"""

from typing import Final

from podyard.framework import events
from podyard.framework.events import HintResult, Registration
from podyard.objects import taints
from podyard.objects.affinity import Taint
from podyard.objects.core import Node, Pod
from podyard.plugins import hinted, taint_events

CORDON: Final = Taint(key=taints.UNSCHEDULABLE, effect=taints.NO_SCHEDULE)
"""The taint that stands for a cordoned node."""


def after_node_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the node can be scheduled on now."""
    before, node = hinted.present(Node, old, new)
    name = node.metadata.name
    if node.spec.unschedulable:
        return events.skip(f"{name} is cordoned")
    if before is not None and not before.spec.unschedulable:
        return events.skip(f"{name} was not cordoned before either")
    return events.queue(f"{name} is not cordoned" if before is None else f"{name} is no longer cordoned")


def after_toleration(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if this very pod now tolerates cordoned nodes (docs/rules.md, own-toleration-helps)."""
    _, changed = hinted.present(Pod, old, new)
    another = hinted.another(pod, changed)
    if another:
        return events.skip(f"the tolerations of {another}, changed")
    if taints.tolerated(changed.spec.tolerations, CORDON):
        return events.queue("the pod now tolerates cordoned nodes")
    return events.skip("the pod's tolerations do not cover cordoned nodes")


def registrations() -> tuple[Registration, ...]:
    """Nodes added, uncordoned or with other taints; the pod's own tolerations."""
    return taint_events.registrations(after_node_change, after_toleration)
