"""Events that nobody sends, since what is stored says them: told when somebody looks. Pure.

So a pod that is made, scheduled, runs and goes costs no message more. They are as long there as what they are
told from, and are in all else as events that are sent.

Sources: kubernetes v1.36.2, pkg/scheduler/schedule_one.go (finishBinding, handleSchedulingFailure),
pkg/controller/controller_utils.go (createPods), pkg/kubelet/kuberuntime/kuberuntime_container.go
(killContainer), pkg/kubelet/nodestatus/setters.go, pkg/kubelet/kubelet_node_status.go
(recordNodeStatusEvent).
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from podyard.memory.latest import Latest
from podyard.objects import times
from podyard.objects.meta import ObjectMeta
from podyard.objects.pod import Pod
from podyard.objects.pod_requests import is_sidecar
from podyard.proto import subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import ContainerFact, NodeStatusFact, PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import ALIKE, ALIKE_S, COMBINED, K8sEvent, Reason, shortened
from podyard.proto.placement import Binding, Tombstone
from podyard.telling.evidence import Evidence

SCHEDULED: Final = Reason("Scheduled")
FAILED_SCHEDULING: Final = Reason("FailedScheduling")
SUCCESSFUL_CREATE: Final = Reason("SuccessfulCreate")
KILLING: Final = Reason("Killing")
BINDING: Final = "Binding"
SCHEDULING: Final = "Scheduling"
"""Actions of the first two."""
FAILURES: Final = ("unschedulable", "error", "bindError")
"""Outcomes of attempts that failed; of a gated pod no event tells."""
CONTROLLERS: Final = {
    "replicasets": "replicaset-controller",
    "replicationcontrollers": "replication-controller",
    "jobs": "job-controller",
    "cronjobs": "cronjob-controller",
    "deployments": "deployment-controller",
    "daemonsets": "daemonset-controller",
    "statefulsets": "statefulset-controller",
}
"""Who reports on these, as Kubernetes calls it."""
MAKERS: Final = {
    "ReplicaSet": "replicasets",
    "ReplicationController": "replicationcontrollers",
    "Job": "jobs",
    "DaemonSet": "daemonsets",
    "StatefulSet": "statefulsets",
}
"""Kinds whose pods `workloads` makes."""
MOST_GROUPS: Final = 4096
"""Groups of alike events that are remembered. Source: client-go v0.36.2, tools/record/events_cache.go,
maxLruCacheEntries."""
DEFAULT: Final = "default"
"""Namespace of events about what is in none. Source: client-go, makeEvent."""
KUBELET: Final = "kubelet"
_KUBELET_HAS: Final = "Kubelet"
"""Reasons of a kubelet's conditions begin so, those of its node's events with `Node` instead."""


def of_pod(evidence: Evidence) -> list[K8sEvent]:
    """Events about one pod, sent ones among them, by the time when they happened last."""
    found = list(evidence.events)
    if evidence.placement is not None:
        found += scheduled(evidence.placement)
    found += failed_scheduling(evidence.attempts)
    if evidence.pod is not None:
        found += killing(evidence.pod, evidence.status)
    return in_order(found)


def in_order(events: Iterable[K8sEvent]) -> list[K8sEvent]:
    """By the time when they happened last; of the same time as they are given."""
    return sorted(events, key=lambda event: event.at)


def scheduled(placement: Binding | Tombstone) -> Iterator[K8sEvent]:
    """The pod was bound. One that was created with its node was not scheduled."""
    if not placement.attempt:
        return
    decision = placement.decision
    pod = _pod(placement.namespace, placement.name, placement.uid)
    profile, scheduler = ("", "") if decision is None else (decision.profile, decision.scheduler)
    yield assigned(pod, placement.node, placement.bound_at, profile=profile, scheduler=scheduler)


def assigned(pod: ObjectRef, node: str, at: float, *, profile: str, scheduler: str = "") -> K8sEvent:
    """A scheduler found the pod a node.

    :param profile: of that scheduler, which the pod names
    :param scheduler: its session; empty: nobody knows
    """
    return _event(
        pod,
        SCHEDULED,
        f"Successfully assigned {pod.namespace}/{pod.name} to {node}",
        at,
        reporter="scheduler",
        action=BINDING,
        controller=profile,
        instance=scheduler,
    )


def failed_scheduling(attempts: Iterable[AttemptRecord]) -> list[K8sEvent]:
    """Attempts of one pod that failed, those with equal messages as one."""
    found: dict[str, K8sEvent] = {}
    for record in attempts:
        if record.outcome in FAILURES:
            found[record.message] = again(found.get(record.message), failed(record))
    return list(found.values())


class Attempt(Protocol):
    """What an event tells of an attempt: an `AttemptRecord`, or as much of one."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def message(self) -> str: ...
    @property
    def profile(self) -> str: ...
    @property
    def scheduler(self) -> str: ...
    @property
    def trace(self) -> str: ...


def failed(record: Attempt) -> K8sEvent:
    """An attempt, whose outcome is one of `FAILURES`."""
    return _event(
        _pod(record.namespace, record.name, record.uid),
        FAILED_SCHEDULING,
        shortened(record.message),
        record.at,
        reporter="scheduler",
        warning=True,
        action=SCHEDULING,
        controller=record.profile,
        instance=record.scheduler,
        trace=record.trace,
    )


def again(before: K8sEvent | None, event: K8sEvent) -> K8sEvent:
    """An event that happened once, told with those of the same id before."""
    if before is None:
        return event
    first_at = before.first_at or before.at
    return replace(before, at=event.at, first_at=first_at, count=before.count + 1, trace=event.trace)


def created(metadata: ObjectMeta, stored_at: float = 0.0) -> Iterator[K8sEvent]:
    """The controller of a pod has made it: about that controller's object.

    :param metadata: of the pod
    :param stored_at: when this version was stored, if that is known
    """
    owner = metadata.controller
    second = times.seconds_or(metadata.creation_timestamp, None)
    if owner is None or owner.kind not in MAKERS or second is None:
        return
    at = _within(second, stored_at)
    resource = MAKERS[owner.kind]
    about = ObjectRef(resource=resource, namespace=metadata.namespace, name=owner.name, uid=owner.uid)
    message = pod_message("Create", resource, owner.name, metadata.name)
    yield _event(about, SUCCESSFUL_CREATE, message, at, reporter="workloads", controller=CONTROLLERS[resource])


def pod_message(verb: str, resource: str, owner: str, pod: str) -> str:
    """How a controller words what it did with a pod.

    Source: kubernetes v1.36.2, pkg/controller/controller_utils.go (createPods, DeletePod),
    pkg/controller/statefulset/stateful_pod_control.go (recordPodEvent).

    :param verb: Create or Delete
    """
    if resource == "statefulsets":
        return f"{verb} Pod {pod} in StatefulSet {owner} successful"
    return f"{verb}d pod: {pod}"


def killing(pod: Pod, status: PodStatusFact | None, stored_at: float = 0.0) -> Iterator[K8sEvent]:
    """The containers of a pod that is being deleted, or was, are stopped. Only pods with a node get a
    deletion timestamp; of evictions by the kubelet its own events tell.

    :param status: what is known of its containers; None: they all ran
    :param stored_at: as of `created`
    """
    metadata = pod.metadata
    ends_at = times.seconds_or(metadata.deletion_timestamp, None)
    if ends_at is None:
        return
    second = ends_at - (metadata.deletion_grace_period_seconds or 0)
    if status is not None and status.ended and times.seconds_or(status.at, second) < second:
        return
    at = _within(second, stored_at)
    mains = [("containers", one.name) for one in pod.spec.containers]
    sidecars = [("initContainers", one.name) for one in pod.spec.init_containers if is_sidecar(one)]
    told = {} if status is None else {one.name: one for one in (*status.init_containers, *status.containers)}
    for part, name in (*sidecars, *mains):
        if _ran(told.get(name), second):
            yield _event(
                _pod(metadata.namespace, metadata.name, metadata.uid),
                KILLING,
                f"Stopping container {name}",
                at,
                reporter="node_agent",
                controller=KUBELET,
                instance="" if status is None else status.node,
                field_path=f"spec.{part}{{{name}}}",
            )


def _within(second: float, stored_at: float) -> float:
    """Objects know whole seconds; who was stored in the same second tells more."""
    return stored_at if second <= stored_at < second + 1 else second


def _ran(fact: ContainerFact | None, at: float) -> bool:
    """Whether a container ran at a time, as far as is known."""
    if fact is None or fact.started_at:
        return True
    return fact.end is not None and times.seconds_or(fact.end.finished_at, at) >= at


def of_node(fact: NodeStatusFact) -> Iterator[K8sEvent]:
    """What a node's kubelet said when its conditions became what they are. When one turns an event is sent,
    too; what a node says first stands here alone."""
    about = ObjectRef(resource=subjects.NODES, name=fact.node, uid=fact.node_uid)
    for one in fact.conditions:
        at = times.seconds_or(one.last_transition_time, None)
        if at is None or not one.reason.startswith(_KUBELET_HAS):
            continue
        reason = f"Node{one.reason.removeprefix(_KUBELET_HAS)}"
        message = f"Node {fact.node} status is now: {reason}"
        yield _event(about, Reason(reason), message, at, reporter="node_agent", controller=KUBELET, instance=fact.node)


def unsent(told: Iterable[K8sEvent], sent: Iterable[K8sEvent]) -> list[K8sEvent]:
    """Those that no event says which was sent: of the same reason, about the same object, not before."""
    last: dict[tuple[str, str, str], float] = {}
    for event in sent:
        key = _same(event)
        last[key] = max(event.at, last.get(key, event.at))
    return [event for event in told if last.get(_same(event), -1.0) < event.at]


def combined(events: Iterable[K8sEvent]) -> list[K8sEvent]:
    """As a recorder would have sent them: of those that differ in their message alone, within ten minutes of
    each other, the tenth and all that follow are one.

    :param events: each happened once
    """
    found: list[K8sEvent] = []
    places: dict[str, int] = {}
    combiner = Combiner()
    for event in in_order(events):
        told = combiner.add(event)
        if told.id == event.id:
            found.append(told)
        elif told.count == 1:
            places[told.id] = len(found)
            found.append(told)
        else:
            found[places[told.id]] = told
    return in_order(found)


class Combiner:
    """What a recorder remembers of events that differ in their message alone."""

    def __init__(self) -> None:
        self._groups = Latest[tuple[str, str, str], _Group](MOST_GROUPS)

    def add(self, event: K8sEvent) -> K8sEvent:
        """What is told of an event that happened now, once: it alone, or all that it is combined with."""
        key = _same(event)
        known = self._groups.get(key)
        if known is None or event.at - known.last_at > ALIKE_S:
            known = _Group(0, event.at, None)
        number, told = known.number + 1, known.told
        if number >= ALIKE:
            message = shortened(COMBINED + event.message)
            if told is None:
                told = replace(event, id=_id(COMBINED, event.id), message=message)
            else:
                told = replace(told, at=event.at, message=message, count=told.count + 1)
        self._groups.keep(key, _Group(number, event.at, told))
        return event if told is None else told


class _Group(NamedTuple):
    """Events that differ in their message alone."""

    number: int
    last_at: float
    told: K8sEvent | None
    """The one that combines them, once one does."""


def _same(event: K8sEvent) -> tuple[str, str, str]:
    about = event.regarding
    return event.reason, event.controller, about.uid or f"{about.namespace}/{about.name}"


def _pod(namespace: str, name: str, uid: str) -> ObjectRef:
    return ObjectRef(resource=subjects.PODS, namespace=namespace, name=name, uid=uid)


def _event(
    about: ObjectRef,
    reason: Reason,
    message: str,
    at: float,
    *,
    reporter: str,
    warning: bool = False,
    action: str = "",
    controller: str = "",
    instance: str = "",
    field_path: str = "",
    trace: str = "",
) -> K8sEvent:
    return K8sEvent(
        regarding=about,
        type="Warning" if warning else "Normal",
        reason=reason,
        message=message,
        reporter=reporter,
        at=at,
        trace=trace,
        id=_id(about.uid, about.name, reason, message, field_path),
        first_at=at,
        action=action,
        controller=controller,
        instance=instance,
        field_path=field_path,
    )


def _id(*parts: str) -> str:
    """The same whenever the same is told."""
    return blake2b("\0".join(parts).encode(errors="replace"), digest_size=8).hexdigest()
