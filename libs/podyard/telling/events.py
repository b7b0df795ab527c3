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
from typing import Final, NamedTuple

from msgspec.structs import replace

from podyard.objects import times
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
    yield _event(
        _pod(placement.namespace, placement.name, placement.uid),
        SCHEDULED,
        f"Successfully assigned {placement.namespace}/{placement.name} to {placement.node}",
        placement.bound_at,
        reporter="scheduler",
        action=BINDING,
        controller="" if decision is None else decision.profile,
        instance="" if decision is None else decision.scheduler,
    )


def failed_scheduling(attempts: Iterable[AttemptRecord]) -> list[K8sEvent]:
    """Attempts of one pod that failed, those with equal messages as one."""
    found: dict[str, K8sEvent] = {}
    for record in attempts:
        if record.outcome not in FAILURES:
            continue
        message, before = shortened(record.message), found.get(record.message)
        if before is not None:
            found[record.message] = replace(before, at=record.at, count=before.count + 1, trace=record.trace)
            continue
        found[record.message] = _event(
            _pod(record.namespace, record.name, record.uid),
            FAILED_SCHEDULING,
            message,
            record.at,
            reporter="scheduler",
            warning=True,
            action=SCHEDULING,
            controller=record.profile,
            instance=record.scheduler,
            trace=record.trace,
        )
    return list(found.values())


def created(pod: Pod, stored_at: float = 0.0) -> Iterator[K8sEvent]:
    """The controller of the pod has made it: about that controller's object.

    :param stored_at: when this version was stored, if that is known
    """
    metadata, owner = pod.metadata, pod.metadata.controller
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
    groups: dict[tuple[str, str, str], _Group] = {}
    for event in in_order(events):
        known = groups.get(_same(event))
        if known is None or event.at - known.last_at > ALIKE_S:
            known = _Group(0, event.at, -1)
        group = groups[_same(event)] = _Group(known.number + 1, event.at, known.place)
        if group.number < ALIKE:
            found.append(event)
        elif group.number == ALIKE:
            groups[_same(event)] = group._replace(place=len(found))
            found.append(replace(event, id=_id(COMBINED, event.id), message=shortened(COMBINED + event.message)))
        else:
            before = found[group.place]
            message = shortened(COMBINED + event.message)
            found[group.place] = replace(before, at=event.at, message=message, count=before.count + 1)
    return in_order(found)


class _Group(NamedTuple):
    """Events that differ in their message alone."""

    number: int
    last_at: float
    place: int
    """Where the one stands that combines them, once one does."""


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
