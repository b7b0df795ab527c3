"""What may help a pod that needs a feature which no node declares.

Source: kube-scheduler v1.36.2, plugins/nodedeclaredfeatures/nodedeclaredfeatures.go
(isSchedulableAfterNodeChange, isSchedulableAfterPodUpdate).
"""

from collections.abc import Iterable
from functools import partial

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects.core import Node, Pod
from podyard.plugins import hinted
from podyard.plugins.hint_indexes import only_itself, same_for_all
from podyard.plugins.node_declared_features import features
from podyard.proto.actions import ActionType


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no features"


def after_node_change(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the node declares something else than before, whatever it is."""
    before, node = hinted.present(Node, old, new)
    name, declared = node.metadata.name, node.status.declared_features
    if before is None:
        return events.queue(f"the new node {name} declares {_listed(declared)}")
    if before.status.declared_features == declared:
        return events.skip(f"{name} declares the same features as before")
    return events.queue(f"{name} now declares {_listed(declared)}, the pod needs {_listed(features.needed(pod.spec))}")


def after_pod_update(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if this very pod needs other features than before."""
    before, changed = hinted.present(Pod, old, new)
    another = hinted.another(pod, changed)
    if another:
        return events.skip(f"{another}, changed")
    needed = features.needed(changed.spec)
    if before is not None and features.needed(before.spec) == needed:
        return events.skip(f"the pod still needs {_listed(needed)}")
    return events.queue(f"the pod now needs {_listed(needed)}")


def registrations() -> tuple[Registration, ...]:
    """Nodes added or with other declared features; any update of a pod."""
    nodes = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE)
    return (
        Registration(nodes, after_node_change, partial(same_for_all, after_node_change)),
        Registration(ClusterEvent(events.POD, ActionType.UPDATE), after_pod_update, only_itself),
    )
