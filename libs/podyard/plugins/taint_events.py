"""What may help a pod that taints keep out: the events are the same for all plugins that look at taints."""

from podyard.framework import events
from podyard.framework.events import ClusterEvent, Hint, Registration
from podyard.plugins.hint_indexes import only_itself
from podyard.proto.actions import ActionType


def registrations(after_node_change: Hint, after_toleration: Hint) -> tuple[Registration, ...]:
    """Nodes added, or with other taints (a cordon is one); the pod's own tolerations."""
    return (
        Registration(ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), after_node_change),
        Registration(ClusterEvent(events.POD, ActionType.UPDATE_POD_TOLERATION), after_toleration, only_itself),
    )
