"""From an old and a new object to the cluster events that kube-scheduler v1.36 derives, in its order.

Source: pkg/scheduler/framework/events.go (NodeSchedulingPropertiesChange, PodSchedulingPropertiesChange).
Semantic equality: quantities by value, absent and empty alike. Checked by tests/conformance/data/classify.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from podyard.objects import kinds, pod_requests, quantity
from podyard.objects.core import Node, Pod
from podyard.objects.errors import QuantityError
from podyard.objects.meta import Condition
from podyard.proto.actions import ActionType

Event: TypeAlias = tuple[str, ActionType]
"""Event resource and one action."""

NODE: Final = "Node"
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"


@lru_cache(maxsize=1024)
def event_resource(resource: str) -> str:
    """How a resource (plural) is called in cluster events: `Node`, `storage.k8s.io/CSINode`; a custom one
    keeps its name."""
    return kinds.kind_of_resource(resource).event_resource


def pod_resource(node_name: str) -> str:
    """The event resource of a pod that is assigned to `node_name`, or to no node if that is empty."""
    return ASSIGNED_POD if node_name else UNSCHEDULABLE_POD


def classify_node(old: Node, new: Node) -> tuple[Event, ...]:
    """What happened to a node, at most one event an aspect; nothing if no aspect that scheduling knows has
    changed.

    Cordoning is no event: it helps no pod. Uncordoning is UpdateNodeTaint, so together with a taint it comes
    twice.
    """
    if old is new:
        return ()
    events: list[Event] = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        events.append((NODE, ActionType.UPDATE_NODE_TAINT))
    if not _same_amounts(old.status.allocatable, new.status.allocatable):
        events.append((NODE, ActionType.UPDATE_NODE_ALLOCATABLE))
    if old.metadata.labels != new.metadata.labels:
        events.append((NODE, ActionType.UPDATE_NODE_LABEL))
    if old.spec.taints != new.spec.taints:
        events.append((NODE, ActionType.UPDATE_NODE_TAINT))
    if _statuses(old.status.conditions) != _statuses(new.status.conditions):
        events.append((NODE, ActionType.UPDATE_NODE_CONDITION))
    if old.metadata.annotations != new.metadata.annotations:
        events.append((NODE, ActionType.UPDATE_NODE_ANNOTATION))
    if old.status.declared_features != new.status.declared_features:
        events.append((NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE))
    return tuple(events)


def classify_pod(old: Pod, new: Pod) -> tuple[Event, ...]:
    """What happened to a pod, as AssignedPod or UnschedulablePod by the new version's node; the general
    update if nothing else."""
    resource = pod_resource(new.spec.node_name)
    events: list[Event] = []
    if old.metadata.labels != new.metadata.labels:
        events.append((resource, ActionType.UPDATE_POD_LABEL))
    if scaled_down(old, new):
        events.append((resource, ActionType.UPDATE_POD_SCALE_DOWN))
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        events.append((resource, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED))
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        events.append((resource, ActionType.UPDATE_POD_TOLERATION))
    if _claims(old) != _claims(new):
        events.append((resource, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM))
    return tuple(events) or ((resource, ActionType.UPDATE),)


def scaled_down(old: Pod, new: Pod) -> bool:
    """Whether any effective request of the pod shrank or went away. Source: events.go,
    extractPodScaleDown."""
    if old.spec is new.spec and old.status is new.status:
        return False
    return pod_requests.shrank(old, new)


def _same_amounts(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    if old == new:
        return True
    return old.keys() == new.keys() and all(_same_amount(text, new[name]) for name, text in old.items())


def _same_amount(old: str, new: str) -> bool:
    """By value; a text that is no quantity differs from every other text."""
    try:
        return old == new or quantity.nano(old) == quantity.nano(new)
    except QuantityError:
        return False


def _statuses(conditions: tuple[Condition, ...]) -> dict[str, str]:
    """Type to status; of a duplicated type the last one counts. Heartbeats, reasons and messages do not
    count."""
    return {condition.type: condition.status for condition in conditions}


def _claims(pod: Pod) -> tuple[object, object]:
    return pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status
