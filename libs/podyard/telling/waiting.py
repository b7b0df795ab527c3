"""Why several pods wait, those that wait for the same together. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import replace

from podyard.cluster.pods import PodView
from podyard.proto.decisions import AttemptRecord, Rejection
from podyard.proto.message import DEFAULT_SCHEDULER, Count
from podyard.proto.queue_api import OutsidePod, QueueListReply
from podyard.telling import advice
from podyard.telling.entries import Data
from podyard.telling.queued import nobody_schedules

MOST_NAMED: Final = 3
"""Pods of one cause that are named."""
_INSUFFICIENT: Final = "Insufficient "
IN_A_WORD: Final[Mapping[tuple[str, str], str]] = {
    ("NodeResourcesFit", "Too many pods"): "room for a pod",
    ("TaintToleration", ""): "a node without such taints",
    ("NodeUnschedulable", ""): "a node that is not cordoned",
    ("NodeName", ""): "the node that they name",
    ("NodeAffinity", ""): "a node that they select",
    ("NodePorts", ""): "a free host port",
    ("InterPodAffinity", "node(s) didn't match pod affinity"): "a pod to be near",
    ("InterPodAffinity", ""): "a node apart from other pods",
    ("PodTopologySpread", ""): "an even spread",
    ("VolumeBinding", ""): "a volume",
    ("VolumeZone", ""): "a node in the zone of a volume",
    ("VolumeRestrictions", ""): "a volume that others use",
    ("NodeVolumeLimits", ""): "a node that takes more volumes",
    ("DynamicResources", ""): "devices",
    ("SchedulingGates", ""): "the end of a gate",
}
"""What pods wait for, by plugin and a part of its reason; the first that fits."""


class WaitingPod(Data, frozen=True, kw_only=True):
    """A pod that has no node, and what is known of it."""

    namespace: str
    name: str
    uid: str
    last: AttemptRecord | None = None
    """Its last attempt; None: it was never tried, or that is not known any more."""
    outside: OutsidePod | None = None
    """It waits for somebody who is not here."""


class Cause(Data, frozen=True, kw_only=True):
    """What several pods wait for."""

    awaits: Annotated[str, Meta(description="in a word: `cpu`, `a free host port`")]
    plugin: str = ""
    reason: str = ""
    pods: Count
    examples: Annotated[tuple[str, ...], Meta(description="up to 3 of them, namespace/name")] = ()
    nodes: Annotated[Count, Meta(description="rejected for it, in the attempt that is told")] = 0
    nodes_total: Count = 0
    nearest: Annotated[str, Meta(description="the node that lacks least; empty: not told")] = ""
    detail: Annotated[str, Meta(description="what is in the way there")] = ""
    lacks: Annotated[str, Meta(description="of an amount: how much more would have to be free there")] = ""
    at: Annotated[float, Meta(description="when the attempt that is told ended, seconds since 1970")] = 0.0
    help: Annotated[str, Meta(description="what would help; empty: only the plugin's author knows")] = ""


def of_pod(pod: PodView, last: AttemptRecord | None, queue: QueueListReply | None) -> WaitingPod:
    """
    :param last: its last attempt, if one is known
    :param queue: what it says of its profiles and of pods that nobody schedules; None: no leader answers
    """
    return WaitingPod(
        namespace=pod.namespace, name=pod.name, uid=pod.uid, last=last, outside=_outside(pod, queue) if queue else None
    )


def _outside(pod: PodView, queue: QueueListReply) -> OutsidePod | None:
    """The queue names the first of them only; whose scheduler is not here can be seen."""
    named = next((one for one in queue.outside if one.uid == pod.uid), None)
    scheduler = pod.stored.spec.scheduler_name or DEFAULT_SCHEDULER
    if named is not None or pod.stored.spec.node_name or scheduler in queue.profiles:
        return named
    return OutsidePod(namespace=pod.namespace, name=pod.name, uid=pod.uid, scheduler=scheduler)


def causes(pods: Iterable[WaitingPod], profiles: Sequence[str] = ()) -> tuple[Cause, ...]:
    """What they wait for, that of most pods first; numbers are as of the youngest attempt.

    :param profiles: names of those that the queue has
    """
    groups: dict[tuple[str, str, str], list[tuple[WaitingPod, Cause]]] = {}
    for pod in pods:
        cause = _cause(pod, profiles)
        groups.setdefault((cause.awaits, cause.plugin, cause.reason), []).append((pod, cause))
    found = [_together(group) for group in groups.values()]
    return tuple(sorted(found, key=lambda one: (-one.pods, one.awaits)))


def deciding(record: AttemptRecord) -> Rejection | None:
    """What keeps the pod off the node that is nearest to taking it; without such a node what keeps it off
    most of them. None: no plugin rejected it."""
    near = [one for one in record.rejections if record.nearest and one.nearest == record.nearest]
    return next(iter(near or record.rejections), None)


def in_a_word(plugin: str, reason: str) -> str:
    """What a pod waits for: `cpu`."""
    if plugin == "NodeResourcesFit" and reason.startswith(_INSUFFICIENT):
        return reason.removeprefix(_INSUFFICIENT)
    fitting = (word for (name, part), word in IN_A_WORD.items() if name == plugin and part in reason)
    return next(fitting, plugin or reason)


def _cause(pod: WaitingPod, profiles: Sequence[str]) -> Cause:
    """Of one pod."""
    named, last = (f"{pod.namespace}/{pod.name}",), pod.last
    if pod.outside is not None:
        awaits = "a node of that name" if pod.outside.node else "a scheduler"
        told = advice.of_outside(pod.outside, profiles)
        return Cause(awaits=awaits, reason=nobody_schedules(pod.outside), pods=1, examples=named, help=told.text)
    if last is None or last.outcome == "scheduled":
        return Cause(awaits="its turn", reason="not tried yet", pods=1, examples=named)
    if last.nominated_node:
        reason = f"victims on {last.nominated_node} have to end first"
        return Cause(awaits="its victims", plugin=advice.PREEMPTION, reason=reason, pods=1, examples=named, at=last.at)
    return _rejected(last, named)


def _rejected(last: AttemptRecord, named: tuple[str, ...]) -> Cause:
    one = deciding(last)
    if one is None:
        plugin = next(iter(last.unschedulable_plugins or last.pending_plugins), "")
        awaits = in_a_word(plugin, last.message) if plugin else "a node" if not last.nodes_total else last.outcome
        told = advice.of_message(plugin, last.message) or next((one.text for one in advice.of_waiting(last, None)), "")
        return Cause(awaits=awaits, plugin=plugin, reason=last.message, pods=1, examples=named, at=last.at, help=told)
    return Cause(
        awaits=in_a_word(one.plugin, one.reason),
        plugin=one.plugin,
        reason=one.reason,
        pods=1,
        examples=named,
        nodes=one.nodes,
        nodes_total=last.nodes_total,
        nearest=one.nearest,
        detail=one.detail,
        lacks=one.lacks,
        at=last.at,
        help=advice.of_rejection(one),
    )


def _together(group: Sequence[tuple[WaitingPod, Cause]]) -> Cause:
    youngest = max((cause for _, cause in group), key=lambda one: one.at)
    names = sorted(f"{pod.namespace}/{pod.name}" for pod, _ in group)
    return replace(youngest, pods=len(group), examples=tuple(names[:MOST_NAMED]))
