"""What may have happened to a node or a placed pod so that some pod should not be where it is any more: the
registrations and hints that several plugins share."""

from collections.abc import Callable
from typing import Final

from podyard.descheduler.core.framework import EventHint, Registration
from podyard.descheduler.core.state import is_ready
from podyard.framework import events
from podyard.framework.events import ClusterEvent
from podyard.objects import taints
from podyard.objects.affinity import Taint
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.proto.actions import ActionType


def _always(reason: str) -> EventHint:
    return lambda old, new: reason


POD_LEFT: Final = Registration(events.ASSIGNED_POD_DELETE, _always("a pod left its node"))
"""Its domain has fewer now."""


def labels_changed(old: object | None, new: object | None) -> str:
    """Hint of nodes and pods: labels that are other than before."""
    was, now = _labels(old), _labels(new)
    keys = sorted(key for key in {*was, *now} if was.get(key) != now.get(key))
    return f"labels changed: {', '.join(keys)}" if keys else ""


def _labels(one: object | None) -> dict[str, str]:
    return one.metadata.labels if isinstance(one, Node | Pod) else {}


NODE_LABELS: Final = Registration(ClusterEvent(events.NODE, ActionType.UPDATE_NODE_LABEL), labels_changed)
NODE_ROOM: Final = Registration(
    ClusterEvent(events.NODE, ActionType.UPDATE_NODE_ALLOCATABLE), _always("the node's allocatable changed")
)
POD_LABELS: Final = Registration(ClusterEvent(events.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL), labels_changed)


def _takes_pods(node: object | None) -> bool:
    if not isinstance(node, Node) or node.spec.unschedulable or not is_ready(node):
        return False
    return not any(taint.effect in (taints.NO_SCHEDULE, taints.NO_EXECUTE) for taint in node.spec.taints)


def _came(old: object | None, new: object | None) -> str:
    return "a node takes pods that did not" if _takes_pods(new) and not _takes_pods(old) else ""


NODE_CAME: Final = Registration(
    ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_CONDITION | ActionType.UPDATE_NODE_TAINT), _came
)
"""A new one, one that is ready now, or whose taints went: others may have too many pods now. A new node is
seldom ready when it is added."""


def node_taints(considers: Callable[[Taint], bool]) -> Registration:
    """A node has a taint that it did not have before.

    :param considers: whether the plugin looks at such a taint
    """

    def hint(old: object | None, new: object | None) -> str:
        had = old.spec.taints if isinstance(old, Node) else ()
        has = new.spec.taints if isinstance(new, Node) else ()
        added = [f"{taint.key}:{taint.effect}" for taint in has if taint not in had and considers(taint)]
        return f"taints were added: {', '.join(added)}" if added else ""

    return Registration(events.NODE_UPDATE_TAINT, hint)
