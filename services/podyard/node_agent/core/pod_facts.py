"""How a pod's status is worded, and what an agent that starts takes over of it.

Sources: kubernetes v1.36.2, pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go
(convertToAPIContainerStatuses).
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from podyard.node_agent.core import resizing
from podyard.node_agent.core.admission import Refusal
from podyard.node_agent.core.containers import CRASH_LOOP, End, Role, VirtualContainer, restarts
from podyard.node_agent.core.resizing import Pending
from podyard.node_agent.core.virtual_pod import Ending, VirtualPod
from podyard.objects import go_syntax, pod_requests, times
from podyard.objects.times import rfc3339, rfc3339_micro
from podyard.proto.facts import (
    MOST_CONTAINERS,
    REFUSED,
    Condition,
    ContainerEnd,
    ContainerFact,
    ContainerResources,
    PodStatusFact,
)

TERMINATION_BY_KUBELET = "TerminationByKubelet"
"""Reason of the condition DisruptionTarget. Source: api/core/v1, PodReasonTerminationByKubelet."""
NOT_READY: Final = "ContainersNotReady"
NOT_INITIALIZED: Final = "ContainersNotInitialized"


def alive(pod: VirtualPod, now: float) -> PodStatusFact:
    """Some of its containers run, or will."""
    return PodStatusFact(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=pod.node,
        phase="Running" if pod.containers.begun else "Pending",
        conditions=(*_conditions(pod), *_resize(pod)),
        start_time=rfc3339(pod.accepted_at),
        containers=_told(pod, pod.containers.mains),
        init_containers=_told(pod, (one for one in pod.containers if one.role is not Role.MAIN)),
        at=rfc3339_micro(now),
    )


def refused(pod: VirtualPod, refusal: Refusal, now: float) -> PodStatusFact:
    """Its node did not take it. Source: pkg/kubelet/kubelet.go, rejectPod."""
    return PodStatusFact(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=pod.node,
        phase="Failed",
        reason=refusal.reason,
        message=f"{REFUSED}{refusal.message}",
        start_time=rfc3339(pod.accepted_at),
        ended=True,
        at=rfc3339_micro(now),
    )


def ended(pod: VirtualPod, ending: Ending, now: float) -> PodStatusFact:
    """Nothing of it runs any more."""
    return PodStatusFact(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=pod.node,
        phase=ending.phase,
        reason=ending.reason,
        message=ending.message,
        conditions=(_initialized(pod, ending), *_ended(ending, rfc3339(now))),
        start_time=rfc3339(pod.accepted_at),
        containers=_told(pod, pod.containers.mains),
        init_containers=_told(pod, (one for one in pod.containers if one.role is not Role.MAIN)),
        ended=True,
        at=rfc3339_micro(now),
    )


def full_name(pod: VirtualPod) -> str:
    """As the kubelet's messages name a pod. Source: pkg/kubelet/util/format, Pod."""
    return f"{pod.name}_{pod.namespace}({pod.uid})"


def restore(pod: VirtualPod, fact: PodStatusFact, at: float, now: float) -> None:
    """Take over what an agent before this one said of the containers. Who waited for a restart waits no more:
    the back-off is not stored, as with the kubelet.

    :param at: when it said that
    """
    told = (*fact.init_containers, *fact.containers)
    pod.allocated = resizing.restored(pod.pod, told)
    pod.resized = any(one.resources is not None for one in told)
    waits = next((one for one in fact.conditions if one.type == resizing.PENDING), None)
    if waits is not None:
        pod.resize = Pending(waits.message, min(times.seconds_or(waits.last_transition_time, at), now))
    if pod.allocated is not pod.pod:
        pod.usage = pod_requests.usage(pod.allocated)
    said = {one.name: one for one in told}
    for one in pod.containers:
        found = said.get(one.name)
        if found is not None:
            _restore(one, found, pod, now)
        elif fact.phase == "Running" and one.role is not Role.INIT:  # by an agent that told of no containers
            one.run(at)
        elif fact.phase == "Running":
            one.end, one.waits = End(0, at, at), ""
    ready = next((one for one in fact.conditions if one.type == "Ready"), None)
    since = at if ready is None else min(times.seconds_or(ready.last_transition_time, at), now)
    pod.containers.resume(since, ready=ready is not None and ready.status == "True")


def _restore(one: VirtualContainer, said: ContainerFact, pod: VirtualPod, now: float) -> None:
    one.restarts = said.restarts
    one.last = None if said.last is None else _end(said.last, now)
    one.waits = said.reason
    if said.end is not None:
        one.end, one.waits = _end(said.end, now), ""
        if restarts(one, pod.pod, one.end.code):
            one.starts_at = now + one.pace.start_s
    elif said.started_at:
        one.started_at = min(times.seconds_or(said.started_at, now), now)
        one.ready, one.waits = said.ready or one.role is Role.INIT, ""
    elif one.last is not None:
        one.starts_at = now + one.pace.start_s


def _end(said: ContainerEnd, now: float) -> End:
    finished_at = min(times.seconds_or(said.finished_at, now), now)
    reason = "" if said.reason in ("Error", "Completed") else said.reason
    return End(said.exit_code, min(times.seconds_or(said.started_at, finished_at), finished_at), finished_at, reason)


# ---- containers --------------------------------------------------------------------------------------------


def _told(pod: VirtualPod, containers: Iterable[VirtualContainer]) -> tuple[ContainerFact, ...]:
    has = _resources(pod)
    return tuple([_container(pod, one, has.get(one.name)) for one in containers][:MOST_CONTAINERS])


def _resources(pod: VirtualPod) -> dict[str, ContainerResources]:
    """What each container has, once its pod was asked to be resized."""
    spec = pod.allocated.spec
    return {one.name: resizing.told(one) for one in (*spec.init_containers, *spec.containers)} if pod.resized else {}


def _container(pod: VirtualPod, one: VirtualContainer, has: ContainerResources | None) -> ContainerFact:
    """An init container is ready when it has succeeded; the pod's state is none of its."""
    message = ""
    if one.waits == CRASH_LOOP:
        wait = go_syntax.duration_text(one.backoff_s)
        message = f"back-off {wait} restarting failed container={one.name} pod={full_name(pod)}"
    ready = one.end is not None and not one.end.code if one.role is Role.INIT else one.ready
    return ContainerFact(
        name=one.name,
        started_at="" if one.started_at is None else rfc3339(one.started_at),
        end=None if one.end is None else _said(one.end),
        reason=one.waits,
        message=message,
        ready=ready,
        restarts=one.restarts,
        last=None if one.last is None else _said(one.last),
        resources=has,
    )


def _said(end: End) -> ContainerEnd:
    return ContainerEnd(
        exit_code=end.code,
        reason=end.reason or ("Error" if end.code else "Completed"),
        started_at=rfc3339(end.started_at),
        finished_at=rfc3339(end.finished_at),
    )


# ---- conditions --------------------------------------------------------------------------------------------


def _conditions(pod: VirtualPod) -> tuple[Condition, ...]:
    containers = pod.containers
    at = rfc3339(containers.ready_since)
    if containers.ready and containers.initialized_at is not None:
        return _ready(rfc3339(containers.initialized_at), at, rfc3339(pod.accepted_at))
    unready = " ".join(one.name for one in containers if one.role is not Role.INIT and not one.ready)
    not_ready = tuple(
        Condition(
            type=kind,
            status="False",
            reason=NOT_READY,
            message=f"containers with unready status: [{unready}]",
            last_transition_time=at,
        )
        for kind in ("Ready", "ContainersReady")
    )
    return (_initialized(pod), *not_ready, _holds_since("PodScheduled", rfc3339(pod.accepted_at)))


def _resize(pod: VirtualPod) -> tuple[Condition, ...]:
    if pod.resize is None:
        return ()
    return (
        Condition(
            type=resizing.PENDING,
            status="True",
            reason="Deferred",
            message=pod.resize.why,
            last_transition_time=rfc3339(pod.resize.since),
        ),
    )


def _initialized(pod: VirtualPod, ending: Ending | None = None) -> Condition:
    """Source: kubernetes v1.36.2, pkg/kubelet/status/generate.go (GeneratePodInitializedCondition)."""
    containers = pod.containers
    if containers.initialized_at is not None:
        done = _holds_since("Initialized", rfc3339(containers.initialized_at))
        succeeded = ending is not None and ending.phase == "Succeeded"
        return replace(done, reason="PodCompleted") if succeeded else done
    incomplete = " ".join(one.name for one in containers if one.holds_up)
    return Condition(
        type="Initialized",
        status="False",
        reason=NOT_INITIALIZED,
        message=f"containers with incomplete status: [{incomplete}]",
        last_transition_time=rfc3339(pod.accepted_at),
    )


def _holds_since(kind: str, at: str) -> Condition:
    return Condition(type=kind, status="True", last_transition_time=at)


@lru_cache(maxsize=8)
def _ready(initialized_at: str, ready_at: str, bound_at: str) -> tuple[Condition, ...]:
    """Many pods become ready within one second."""
    ready = (_holds_since("Ready", ready_at), _holds_since("ContainersReady", ready_at))
    return (_holds_since("Initialized", initialized_at), *ready, _holds_since("PodScheduled", bound_at))


def _ended(ending: Ending, at: str) -> tuple[Condition, ...]:
    reason = "PodCompleted" if ending.phase == "Succeeded" else "PodFailed"
    found = tuple(
        Condition(type=kind, status="False", reason=reason, last_transition_time=at)
        for kind in ("Ready", "ContainersReady")
    )
    if not ending.disruption:
        return found
    return (
        *found,
        Condition(
            type="DisruptionTarget",
            status="True",
            reason=TERMINATION_BY_KUBELET,
            message=ending.disruption,
            last_transition_time=at,
        ),
    )
