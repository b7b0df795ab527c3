"""What is on a node, how full it is, and why pods that wait do not go there. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta

from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView, requested_by
from podyard.cluster.view import ClusterView
from podyard.objects import taints
from podyard.objects.node import Node
from podyard.objects.pod_requests import CPU, MEMORY, PODS
from podyard.objects.spoken_amounts import number, spoken
from podyard.proto.decisions import AttemptRecord, Rejection
from podyard.proto.message import Count
from podyard.proto.queue_api import QueueListReply
from podyard.telling import node_fit, waiting
from podyard.telling.cells import node_status
from podyard.telling.entries import Data
from podyard.telling.pod_cells import pod_status
from podyard.telling.queued import nobody_schedules

MOST_LOOKED_AT: Final = 256
"""Waiting pods whose last attempts are read, the most important first; semi-arbitrary."""
MOST_NAMED: Final = 3
"""Pods of one reason that are named."""
MAY_COME: Final = "nothing here is in its way any more: it may come at its next attempt"
NOT_TOLD: Final = "rejected, with others, by {plugin}; the record does not name each node"
NOT_TRIED: Final = "not tried yet"


class Room(Data, frozen=True, kw_only=True):
    """How much of one resource is asked for."""

    resource: str
    requested: str
    allocatable: str
    percent: Annotated[int | None, Meta(description="rounded down; null: there is none of it")] = None


class PodOnNode(Data, frozen=True, kw_only=True):
    """One that takes room on the node."""

    namespace: str
    name: str
    status: str
    priority: int = 0
    requests: Annotated[str, Meta(description="`500m cpu, 1Gi memory`; empty: nothing")] = ""


class KeptOff(Data, frozen=True, kw_only=True):
    """Waiting pods that do not go to the node, for one reason."""

    why: str
    pods: Count
    examples: Annotated[tuple[str, ...], Meta(description="up to 3 of them, namespace/name")] = ()


class NodeStory(Data, frozen=True, kw_only=True):
    """A node for people."""

    name: str
    state: Annotated[str, Meta(description="as `get nodes` says it")]
    taints: tuple[str, ...] = ()
    room: tuple[Room, ...] = ()
    pods: Annotated[tuple[PodOnNode, ...], Meta(description="those that ask for most cpu first")] = ()
    nominated: Annotated[tuple[str, ...], Meta(description="pods for which room is kept here, namespace/name")] = ()
    waiting: Annotated[Count, Meta(description="pods of the whole cluster that have no node")] = 0
    looked_at: Count = 0
    kept_off: tuple[KeptOff, ...] = ()


def waiting_pods(view: ClusterView) -> list[PodView]:
    """All that have no node, the most important first."""
    found = [
        pod
        for pod in view.pods.values()
        if pod.bound is None and not (pod.release or pod.unknown_place or pod.deleting or pod.ended)
    ]
    return sorted(found, key=lambda pod: (-pod.priority, pod.sequence))


def story(
    view: ClusterView, found: NodeView, attempts: Mapping[str, AttemptRecord], queue: QueueListReply | None
) -> NodeStory:
    """Put together.

    :param attempts: the last ones of the first `MOST_LOOKED_AT` waiting pods, by uid
    :param queue: what it says of pods that nobody schedules; None: no leader answers
    """
    node, pods = found.node, list(view.pods_on(found.name).values())
    requested, waits = requested_by(pods), waiting_pods(view)
    looked_at = waits[:MOST_LOOKED_AT]
    reasons = [(pod, _why(pod, node, pods, requested, attempts.get(pod.uid), queue)) for pod in looked_at]
    return NodeStory(
        name=found.name,
        state=node_status(node),
        taints=tuple(map(taints.spelled, node.spec.taints)),
        room=tuple(_room(node, len(pods), requested)),
        pods=tuple(map(_on_node, sorted(pods, key=lambda pod: (-pod.usage.requests.get(CPU, 0), pod.key)))),
        nominated=tuple(f"{pod.namespace}/{pod.name}" for pod in waits if pod.nominated_node == found.name),
        waiting=len(waits),
        looked_at=len(looked_at),
        kept_off=tuple(_grouped(reasons)),
    )


def _room(node: Node, pods: int, requested: Mapping[str, int]) -> Iterator[Room]:
    """cpu, memory and pods first, then what else the node has."""
    others = sorted({*node.status.allocatable, *requested})
    for resource in dict.fromkeys((CPU, MEMORY, PODS, *others)):
        taken, whole = pods if resource == PODS else requested.get(resource, 0), node_fit.allocatable(node, resource)
        if taken or whole:
            percent = taken * 100 // whole if whole else None
            yield Room(
                resource=resource,
                requested=number(resource, taken),
                allocatable=number(resource, whole),
                percent=percent,
            )


def _on_node(pod: PodView) -> PodOnNode:
    requests = ", ".join(spoken(resource, amount) for resource, amount in pod.usage.requests.items() if amount)
    status = "Terminating" if pod.gone else pod_status(pod.pod)
    return PodOnNode(namespace=pod.namespace, name=pod.name, status=status, priority=pod.priority, requests=requests)


def _why(
    pod: PodView,
    node: Node,
    pods: Sequence[PodView],
    requested: Mapping[str, int],
    last: AttemptRecord | None,
    queue: QueueListReply | None,
) -> str:
    """Why one pod does not go there: of what plugins said in its last attempt the first that holds of this
    node now."""
    outside = waiting.of_pod(pod, last, queue).outside
    if outside is not None:
        return nobody_schedules(outside)
    if last is None or last.outcome == "scheduled":
        return NOT_TRIED
    if last.nominated_node:
        here = last.nominated_node == node.metadata.name
        return "comes when its victims here have ended" if here else f"waits for its victims on {last.nominated_node}"
    if not last.rejections:
        plugin = next(iter((*last.unschedulable_plugins, *last.pending_plugins)), "")
        return f"{plugin}: {last.message}" if plugin else last.message or last.outcome
    plugins = {one.plugin for one in last.rejections}
    now = node_fit.in_the_way(pod, node, pods, requested)
    held = [f"{plugin}: {text}" for plugin, text in now.items() if plugin in plugins]
    return held[0] if held else _recorded(last, node.metadata.name)


def _recorded(last: AttemptRecord, node: str) -> str:
    """What the record says of a node that nothing of itself closes to the pod."""
    spanning = [one for one in last.rejections if one.plugin not in node_fit.DECIDED_HERE or _is_of_all(one)]
    for one in spanning:
        if one.nearest == node and one.detail:
            return f"{one.plugin}: {one.detail}"
        if node in one.examples:
            return f"{one.plugin}: {one.reason}"
    everywhere = [one for one in spanning if _is_of_all(one)]
    if everywhere:
        only = everywhere[0]
        return f"{only.plugin}: {only.detail or only.reason}"
    if spanning:
        return NOT_TOLD.format(plugin=" or ".join(dict.fromkeys(one.plugin for one in spanning)))
    return MAY_COME


def _is_of_all(one: Rejection) -> bool:
    """Whether PreFilter said it: of all nodes that were not looked at, no node by name."""
    return not one.examples and not one.nearest


def _grouped(reasons: Iterable[tuple[PodView, str]]) -> Iterator[KeptOff]:
    """Equal reasons together, those of most pods first."""
    groups: dict[str, list[str]] = {}
    for pod, why in reasons:
        groups.setdefault(why, []).append(f"{pod.namespace}/{pod.name}")
    for why, names in sorted(groups.items(), key=lambda one: (-len(one[1]), one[0])):
        yield KeptOff(why=why, pods=len(names), examples=tuple(names[:MOST_NAMED]))
