"""What may help a pod that tolerates no node's taints.

Source: kube-scheduler v1.36.2, plugins/tainttoleration/taint_toleration.go.
"""

from podyard.framework import events
from podyard.framework.events import HintResult, Registration
from podyard.objects import taints
from podyard.objects.core import Node, Pod
from podyard.plugins import hinted, taint_events


def after_node_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the pod tolerates the node's taints now, and did not before."""
    before, node = hinted.present(Node, old, new)
    name, tolerations = node.metadata.name, pod.spec.tolerations
    hurdle = taints.untolerated(node.spec.taints, tolerations)
    if hurdle is not None:
        return events.skip(f"the pod does not tolerate taint {taints.spelled(hurdle)} of {name}")
    if before is None:
        return events.queue(f"the pod tolerates all taints of the new node {name}")
    gone = taints.untolerated(before.spec.taints, tolerations)
    if gone is None:
        return events.skip(f"the pod tolerated all taints of {name} before")
    return events.queue(f"taint {taints.spelled(gone)}, which the pod does not tolerate, is gone from {name}")


def after_toleration(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if this very pod's tolerations changed; they can only be added to."""
    _, changed = hinted.present(Pod, old, new)
    another = hinted.another(pod, changed)
    if another:
        return events.skip(f"the tolerations of {another}, changed")
    return events.queue("the pod has new tolerations")


def registrations() -> tuple[Registration, ...]:
    """Nodes added or with other taints; the pod's own tolerations."""
    return taint_events.registrations(after_node_change, after_toleration)
