"""What may help a pod whose node selector or required node affinity no node matched.

Source: kube-scheduler v1.36.2, plugins/nodeaffinity/node_affinity.go (isSchedulableAfterNodeChange).
"""

from functools import partial

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects import selectors
from podyard.objects.core import Node, Pod
from podyard.objects.selectors import NodeTerms
from podyard.plugins import hinted
from podyard.plugins.node_affinity import label_index
from podyard.proto.actions import ActionType


def after_node_change(added: NodeTerms | None, pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if the node matches now, and did not before.

    :param added: what the plugin's arguments demand of nodes on top (addedAffinity); None: nothing
    :raises SelectorError: if the pod's affinity cannot be read; counts as Queue
    """
    before, node = hinted.present(Node, old, new)
    name = node.metadata.name
    if added is not None and not added.matches(node.metadata.labels, name):
        return events.skip(f"{name} does not match the node affinity that the scheduler adds")
    required = selectors.required_node_affinity(pod)
    if not required.matches(node.metadata.labels, name):
        return events.skip(f"{name} does not match the pod's node selector and affinity")
    if before is None:
        return events.queue(f"the new node {name} matches the pod's node selector and affinity")
    if required.matches(before.metadata.labels, name):
        return events.skip(f"{name} matched the pod's node selector and affinity before")
    return events.queue(f"{name} now matches the pod's node selector and affinity")


def registrations(added: NodeTerms | None = None) -> tuple[Registration, ...]:
    """Nodes added or with other labels.

    :param added: the compiled `addedAffinity.required...` of the plugin's arguments
    """
    event = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    return (Registration(event, partial(after_node_change, added), partial(label_index.new_index, added)),)
